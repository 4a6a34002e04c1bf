import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { writeOldDatabase } from "../helpers/old_database.ts";

const MINUTE_MS = 60_000;

test("key rotate makes a key that signs in ten minutes, or now with --at-once", async (t) => {
  const cli = await openCommandLine(t);

  const later = readJson(await cli.run("key", "rotate", "--json"));
  const now = readJson(await cli.run("key", "rotate", "--at-once", "--json"));

  const leadMs = (key: Readonly<Record<string, unknown>>) =>
    Date.parse(String(key["signs_from"])) - Date.parse(String(key["created_at"]));
  assert.equal(leadMs(later), 10 * MINUTE_MS);
  assert.equal(leadMs(now), 0);
});

test("key list shows only the public parts of keys", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("key", "rotate");

  const json = await cli.run("key", "list", "--json");
  const table = await cli.run("key", "list");

  assert.deepEqual(readItems(json).map(({ status }) => status).sort(), ["pending", "signing"]);
  for (const { jwk } of readItems(json)) {
    const members = Object.keys(Object(jwk));
    assert.deepEqual(members.filter((name) => /^(d|p|q|dp|dq|qi|k)$/.test(name)), []);
  }
  assert.doesNotMatch(json.stdout, /PRIVATE/);
  assert.match(table.stdout, /^KID +ALG +STATUS +SIGNS FROM +PUBLISHED UNTIL$/m);
  assert.match(table.stdout, /^k\w+ +ES256 +signing /m);
});

test("key rotate makes a key of the configured algorithm", async (t) => {
  const cli = await openCommandLine(t, { env: { GATEPOST_SIGNING_ALG: "EdDSA" } });

  assert.equal(readJson(await cli.run("key", "rotate", "--json"))["alg"], "EdDSA");
});

test("grant revoke needs a user or an app that exists", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");

  const missing = await cli.run("grant", "revoke");
  const unknown = await cli.run("grant", "revoke", "--user", "bob");
  const malformed = await cli.run("grant", "revoke", "--app", "shop");
  const known = await cli.run("grant", "revoke", "--user", "alice");

  assert.deepEqual([missing.code, unknown.code, malformed.code, known.code], [2, 1, 2, 0]);
  assert.match(malformed.stderr, /^ {2}app: /m);
});

test("grant list says which apps --app may name", async (t) => {
  const cli = await openCommandLine(t);
  const { code, stderr } = await cli.run("grant", "list", "--app", "nobody");
  assert.equal(code, 2);
  assert.match(stderr, /app: Must be a client_id, or one of login, personal, console\.$/m);
});

test("after key reseal the old secret key is not needed", async (t) => {
  const cli = await openCommandLine(t);
  const [first, second] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"));
  const list = async (key: string | undefined) =>
    (await cli.runWith({ env: { GATEPOST_SECRET_KEY: key } }, "key", "list")).code;
  assert.equal(await list(first), 0);

  const env = { GATEPOST_SECRET_KEY: `${second},${first}` };
  const resealed = await cli.runWith({ env }, "key", "reseal", "--json");
  const without = await cli.run("key", "reseal");

  assert.deepEqual(readJson(resealed), { resealed: 1 });
  assert.deepEqual([await list(second), await list(first), await list(env.GATEPOST_SECRET_KEY)], [
    0,
    1,
    0,
  ]);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /GATEPOST_SECRET_KEY/);
});

test("a command without the secret key leaves a database of version 0.1.0 unchanged", async (t) => {
  const cli = await openCommandLine(t);
  writeOldDatabase(cli.databasePath);
  const before = readFileSync(cli.databasePath);

  const { code, stdout, stderr } = await cli.run("user", "list");

  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /sealed, and GATEPOST_SECRET_KEY is missing/);
  assert.ok(readFileSync(cli.databasePath).equals(before));
});
