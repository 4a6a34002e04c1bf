import assert from "node:assert/strict";
import { test } from "node:test";
import { ownResendOperations, resendOperations } from "../../src/api/resend.ts";
import { newId } from "../../src/base/id.ts";
import { sql } from "../../src/database/sql.ts";
import type { Services } from "../../src/services.ts";
import { findResend, insertResend, newResend } from "../../src/store/resends.ts";
import { openDatabase } from "../helpers/database.ts";
import { backendCaller, sampleRequest } from "../helpers/http_request.ts";

const NOW_MS = Date.UTC(2026, 0, 1);

test("a caller stops a resend that runs, and no one else's of the subscription", async (t) => {
  const database = openDatabase(t);
  const caller = { ...backendCaller(Infinity), clientId: "login" };
  const [id, other] = [newId("s", NOW_MS), newId("s", NOW_MS)];
  for (const each of [id, other]) {
    await database.write([
      sql`INSERT INTO subscriptions
        (id, principal, app, event, endpoint, status, secret, createdAtMs) VALUES
        (${each}, ${caller.sub}, 'login', ${each}, 'https://a.example/', 'active', '', 1)`,
    ]);
  }
  const add = async (actor: string, subscription: string) => {
    const resend = newResend(newId("w", NOW_MS), actor, { status: "failed", subscription });
    await database.write([insertResend(resend)]);
    return resend.id;
  };
  const own = await add(caller.sub, id);
  const foreign = await add("u1", other);
  const revocations = { refresh: async () => {} };
  const services = { database, revocations, wake() {}, now: () => NOW_MS } as unknown as Services;
  const remove = ownResendOperations(services).find(({ method }) => method === "DELETE");
  assert.ok(remove);
  const stop = (subscription: string, resend: string) =>
    remove.handle({
      request: sampleRequest(),
      params: { id: subscription, resend },
      caller,
      query: {},
      body: undefined,
      authenticateAgain: async () => {},
    });
  await assert.rejects(stop(other, foreign), { status: 404 });
  await assert.rejects(stop(other, own), { status: 404 });
  assert.equal((await stop(id, own)).status, 204);
  assert.equal((await findResend(database, own))?.state, "stopped");
  assert.equal((await findResend(database, foreign))?.state, "running");
  await assert.rejects(stop(id, own), { status: 409 });
});

test("what a resend comes to is counted where it holds up no request", async (t) => {
  const stored = openDatabase(t);
  const database = { ...stored, query: () => assert.fail("counts beside the requests") };
  const services = { database, heavy: stored, now: () => NOW_MS } as unknown as Services;
  const start = resendOperations(services).find(({ method }) => method === "POST");
  assert.ok(start);
  const response = await start.handle({
    request: sampleRequest(),
    params: {},
    caller: backendCaller(Infinity),
    query: {},
    body: { status: "failed", dry_run: true },
    authenticateAgain: async () => {},
  });
  assert.equal(response.body, '{"count":0}');
});
