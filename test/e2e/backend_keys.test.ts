import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Gatepost, PASSWORD, startGatepost, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { bearer } from "../helpers/requests.ts";
import { decodeJwt, expectStatus, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

let gatepost: Gatepost;
let other: Gatepost; // another process on the same database
let user: TestUser;

before(async () => {
  const env = { GATEPOST_BASE_URL: "http://127.0.0.1:9999" };
  gatepost = await startGatepost({ env });
  other = await startGatepost({ env, folder: gatepost.server.folder });
  user = await gatepost.createUser();
});

after(async () => {
  await other.stop();
  await gatepost.stop();
});

type Item = Readonly<Record<string, unknown>>;

/** Sends as an administrator who has just logged in, since withdrawing a key ends tokens. */
async function send(method: string, path: string, body?: unknown): Promise<ClientResponse> {
  const token = await gatepost.login({ id: "", username: "admin", password: PASSWORD });
  return gatepost.api.sendJson(method, path, body, bearer(token));
}

async function listKeys(query = ""): Promise<Item[]> {
  const response = await expectStatus(200, send("GET", `/backend/key${query}`));
  return readObject(response)["items"] as Item[];
}

async function publishedKids(of: Gatepost): Promise<unknown[]> {
  const { keys } = readObject(await of.api.get("/.well-known/jwks.json"));
  return (keys as Item[]).map(({ kid }) => kid);
}

/** Waits at most 1 s, the limit that is promised for every other process. */
const withinASecond = (holds: () => Promise<boolean>, what: string) =>
  until(holds, () => `not within a second: ${what}`, 1000);

const kidOf = (token: string) => decodeJwt(token).header["kid"];

test("keys need a token with scope backend", async () => {
  const token = bearer(await gatepost.login(user));
  for (const [method, path] of [["GET", ""], ["POST", ""], ["DELETE", "/k0"]] as const) {
    const target = `/backend/key${path}`;
    assert.equal((await gatepost.api.send(method, target)).status, 401);
    assert.equal((await gatepost.api.send(method, target, { headers: token })).status, 403);
  }
});

test("keys are listed with their status and only their public parts", async () => {
  const keys = await listKeys();
  assert.deepEqual(keys.filter(({ status }) => status === "signing").length, 1);
  assert.deepEqual(
    keys.map(({ kid }) => kid).toSorted(),
    (await publishedKids(gatepost)).toSorted(),
  );
  for (const key of keys) {
    assert.deepEqual(Object.keys(key), [
      "kid",
      "alg",
      "status",
      "created_at",
      "signs_from",
      "published_until",
      "jwk",
    ]);
    const jwk = key["jwk"] as Item;
    assert.deepEqual([jwk["kty"], jwk["crv"], jwk["kid"], "d" in jwk], [
      "EC",
      "P-256",
      key["kid"],
      false,
    ]);
  }
});

test("a new key is published in every process 10 minutes before it signs", async () => {
  const response = await expectStatus(201, send("POST", "/backend/key"));
  const { kid, status, signs_from: signsFrom } = readObject(response);
  assert.equal(new URL(response.location ?? "").pathname, `/backend/key/${kid}`);
  const waitMs = Date.parse(String(signsFrom)) - Date.now();
  assert.equal(status, "pending");
  assert.ok(waitMs > 590_000 && waitMs <= 600_000, String(waitMs));
  assert.notEqual(kidOf(await gatepost.login(user)), kid);
  assert.ok((await publishedKids(gatepost)).includes(kid));
  const isThere = async () => (await publishedKids(other)).includes(kid);
  await withinASecond(isThere, "it is published there");
  const signing = (await listKeys()).find((key) => key["status"] === "signing");
  const until = Date.parse(String(signing?.["published_until"])) - Date.parse(String(signsFrom));
  assert.ok(until >= 3_600_000 && until < 3_610_000, "until its last token (1 h) has expired");
  await expectStatus(204, send("DELETE", `/backend/key/${kid}`));
});

test("a key made with at_once signs in every process, and older tokens stay valid", async () => {
  const old = await gatepost.login(user);
  const response = await expectStatus(201, send("POST", "/backend/key", { at_once: true }));
  const { kid, status } = readObject(response);
  assert.equal(status, "signing");
  const token = await gatepost.login(user);
  assert.equal(kidOf(token), kid);
  assert.equal(await gatepost.isAlive(old), true);
  await withinASecond(() => other.isAlive(token), "the new key is known there");
  assert.equal(kidOf(await other.login(user)), kid);
  const retired = (await listKeys()).find((key) => key["kid"] === kidOf(old));
  assert.equal(retired?.["status"], "retired");
});

test("withdrawing a key ends its tokens in every process, and a new key signs", async () => {
  const token = await gatepost.login(user);
  const known = (await listKeys()).map((key) => key["kid"]);
  const kid = kidOf(token);
  assert.equal(await other.isAlive(token), true);
  await expectStatus(204, send("DELETE", `/backend/key/${kid}`));
  assert.equal(await gatepost.isAlive(token), false);
  assert.ok(!(await publishedKids(gatepost)).includes(kid));
  const next = kidOf(await gatepost.login(user));
  assert.ok(!known.includes(next), "a new key: an older one never signs again");
  await withinASecond(async () => !await other.isAlive(token), "the token is invalid there");
  assert.equal(kidOf(await other.login(user)), next);
  await expectStatus(404, send("DELETE", `/backend/key/${kid}`));
});

test("a token that was accepted before is refused once its key is withdrawn", async () => {
  const token = await gatepost.login(user);
  for (let i = 0; i < 3; i++) assert.equal(await gatepost.isAlive(token), true);
  await expectStatus(204, send("DELETE", `/backend/key/${kidOf(token)}`));
  for (let i = 0; i < 3; i++) assert.equal(await gatepost.isAlive(token), false);
});

test("keys are listed newest first, in pages", async () => {
  await expectStatus(201, send("POST", "/backend/key", { at_once: true }));
  const kids = (await listKeys()).map(({ kid }) => kid);
  assert.deepEqual(kids, kids.toSorted().reverse());
  const first = readObject(await send("GET", "/backend/key?limit=1"));
  assert.ok(typeof first["next_cursor"] === "string");
  const [second] = await listKeys(`?limit=1&cursor=${first["next_cursor"]}`);
  assert.equal(second?.["kid"], kids[1]);
  for (const cursor of ["zz", String(kids[0])]) {
    await expectStatus(400, send("GET", `/backend/key?cursor=${cursor}`));
  }
});

test("rotations and withdrawals of keys are audited", async () => {
  const { kid } = readObject(await expectStatus(201, send("POST", "/backend/key", {})));
  await expectStatus(204, send("DELETE", `/backend/key/${kid}`));
  const response = await send("GET", `/backend/audit?target=${kid}`);
  const entries = readObject(response)["items"] as Item[];
  assert.deepEqual(entries.map(({ action }) => action), ["key.withdraw", "key.rotate"]);
});

test("a request for a new key is refused if it has more than a boolean at_once", async () => {
  const count = (await listKeys()).length;
  for (const body of [{ at_once: "yes" }, { now: true }, [], null]) {
    await expectStatus(400, send("POST", "/backend/key", body));
  }
  assert.equal((await listKeys()).length, count);
});
