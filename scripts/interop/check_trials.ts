import assert from "node:assert/strict";
import { alter } from "./expect.ts";
import type { Stage } from "./stage.ts";
import type { Trial } from "./token_trials.ts";

const OTHER_SECRET = `whsec_${btoa("a secret that no subscription has")}`;

/** RFC 9068 §4, with the keys that the server publishes. */
export const tryVerification: Trial = (client, stage) => {
  const { verify } = client;
  if (verify === undefined) return undefined;
  return async () => {
    const { token } = await stage.post("user", "/consumer/login", stage.user);
    const accessToken = String(token);
    const header = JSON.parse(atob(accessToken.slice(0, accessToken.indexOf("."))));
    assert.deepEqual([header.alg, header.typ], [stage.signingAlg, "at+jwt"]);
    const claims = await verify(accessToken, stage.issuer);
    assert.deepEqual([claims["iss"], claims["sub"]], [stage.issuer, stage.user.id]);
    await assert.rejects(verify(accessToken, "https://other.example"), /unexpected .*\baud\b/i);
    await assert.rejects(verify(alter(accessToken), stage.issuer), /signature/);
  };
};

/** Standard Webhooks: a callback's signature is right, and wrong once a byte has changed. */
export const tryCallback: Trial = (client, stage) => {
  const { verifyCallback } = client;
  if (verifyCallback === undefined) return undefined;
  return async () => {
    const { secret, callback: { body, headers }, data } = await receiveCallback(stage, "signed");
    assert.deepEqual(await verifyCallback(secret, body, headers), data);
    await assert.rejects(verifyCallback(secret, body.replace("7", "8"), headers), /signature/);
    await assert.rejects(verifyCallback(OTHER_SECRET, body, headers), /signature/);
  };
};

/** For 24 hours after a new secret was made, the old one signs beside it. */
export const tryRotation: Trial = (client, stage) => {
  const { verifyCallback } = client;
  if (verifyCallback === undefined) return undefined;
  return async () => {
    const first = await receiveCallback(stage, "rotated");
    const path = `/consumer/subscription/${first.id}/secret`;
    const { secret } = await stage.post("user", path);
    assert.notEqual(secret, first.secret);
    const data = { id: 8 };
    await stage.post("admin", "/backend/event", { name: "rotated", data });
    const { body, headers } = await stage.receiver.next();
    for (const each of [first.secret, String(secret)]) {
      assert.deepEqual(await verifyCallback(each, body, headers), data);
    }
    await assert.rejects(verifyCallback(OTHER_SECRET, body, headers), /signature/);
  };
};

/** Subscribes, dispatches and waits for the callback. */
async function receiveCallback(stage: Stage, event: string) {
  const { receiver, post } = stage;
  const subscription = await post("user", "/consumer/subscription", {
    event,
    endpoint: receiver.url,
  });
  const data = { id: 7, text: "grün € 🌲", nested: [1.5, null, { "a/b": "\u2028" }] };
  await post("admin", "/backend/event", { name: event, data });
  const { id, secret } = subscription;
  return { id: String(id), secret: String(secret), callback: await receiver.next(), data };
}
