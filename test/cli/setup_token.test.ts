import assert from "node:assert/strict";
import { chownSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { writeFolder } from "../helpers/folder.ts";
import { type CommandLine, openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { bearer } from "../helpers/requests.ts";

let gatepost: Gatepost;
let cli: CommandLine;

before(async () => {
  gatepost = await startGatepost();
  const env = { GATEPOST_BASE_URL: gatepost.issuer };
  cli = await openCommandLine({ after }, { folder: gatepost.server.folder, env });
});
after(() => gatepost.stop());

const logIn = async (password: string) =>
  (await gatepost.api.postJson("/consumer/login", { username: "admin", password })).status;

test("token prints a token that the server accepts, with one scope, and is audited", async () => {
  const printed = await cli.run("token");
  const token = printed.stdout.trim();

  const listed = await gatepost.api.get("/backend/cronjob", bearer(token));
  const refused = await gatepost.api.get("/consumer/subscription", bearer(token));
  const audit = readItems(await cli.run("audit", "list", "--action", "user.token", "--json"));

  assert.equal(printed.code, 0, printed.stderr);
  assert.deepEqual([listed.status, refused.status], [200, 403]);
  assert.deepEqual(audit.map(({ actor }) => actor), ["cli"]);
  assert.ok(!JSON.stringify(audit).includes(token));
});

test("token makes a token for any user and scope, for 10 minutes or until revoked", async () => {
  const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
  const args = ["token", "--user", user.username, "--scope", "consumer", "--json"];
  const { token, scopes, expires_at: expiresAt } = readJson(await cli.run(...args));

  assert.deepEqual(scopes, ["consumer"]);
  assert.ok(Math.abs(Date.parse(String(expiresAt)) - Date.now() - 600_000) < 60_000);
  assert.equal(await gatepost.isAlive(String(token)), true);
  await cli.run("grant", "revoke", "--user", user.username);
  const endMs = performance.now() + 2_000;
  while (await gatepost.isAlive(String(token))) assert.ok(performance.now() < endMs);
});

test("token refuses a scope that the user lacks, and an unknown issuer", async () => {
  const user = await gatepost.createUser();

  const refused = await cli.run("token", "--user", user.username);
  const env = { GATEPOST_BASE_URL: undefined, GATEPOST_PORT: "0" };
  const unnamed = await cli.runWith({ env }, "token");

  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /lacks one of these scopes: backend/);
  assert.equal((await cli.run("token", "--scope", "")).code, 2);
  assert.deepEqual([unnamed.code, unnamed.stdout], [1, ""]);
  assert.match(unnamed.stderr, /GATEPOST_BASE_URL/);
});

test("setup gives admin a password for one login; one that is set later lasts", async () => {
  const printed = await cli.run("setup");
  const [, password = ""] = /^ {2}password +(\S+)$/m.exec(printed.stdout) ?? [];

  const logins = [await logIn(password), await logIn(password)];
  const lasting = "a lasting password";
  await cli.runWith({ stdin: lasting }, "user", "set", "admin", "--password-stdin");
  logins.push(await logIn(password), await logIn(lasting), await logIn(lasting));

  assert.equal(printed.code, 0, printed.stderr);
  assert.deepEqual(logins, [200, 401, 401, 200, 200]);
  const audit = readItems(await cli.run("audit", "list", "--action", "user.setup", "--json"));
  assert.deepEqual(audit.map(({ actor }) => actor), ["cli"]);
  assert.ok(!JSON.stringify(audit).includes(password));
});

test("one of several simultaneous logins with the one-time password succeeds", async () => {
  const { password } = readJson(await cli.run("setup", "--json"));

  const statuses = await Promise.all([1, 2, 3, 4].map(() => logIn(String(password))));

  assert.deepEqual(statuses.sort(), [200, 401, 401, 401]);
});

test("the one-time password expires after 24 hours", async () => {
  const { password, expires_at: expiresAt } = readJson(await cli.run("setup", "--json"));
  assert.ok(Math.abs(Date.parse(String(expiresAt)) - Date.now() - 86_400_000) < 60_000);
  const database = new DatabaseSync(cli.databasePath);
  database.exec("UPDATE users SET passwordUntilMs = passwordUntilMs - 86400000");
  database.close();

  assert.equal(await logIn(String(password)), 401);
});

test("setup gives a password that works although admin's logins are throttled", async () => {
  const fromHere = async (password: string) => {
    const response = await fetch(`${gatepost.issuer}/consumer/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username: "admin", password }),
    });
    await response.body?.cancel();
    return response.status;
  };
  const guesses: number[] = [];
  for (let count = 0; count < 11; count++) guesses.push(await fromHere("a wrong password"));
  const { password } = readJson(await cli.run("setup", "--json"));

  assert.equal(guesses.at(-1), 429);
  assert.equal(await fromHere(String(password)), 200);
});

test("setup makes a missing database with its admin, and says so", async (t) => {
  const alone = await openCommandLine(t, { isNew: true });

  const printed = await alone.run("setup");

  assert.equal(printed.code, 0, printed.stderr);
  assert.ok(printed.stderr.includes(alone.databasePath));
  const [admin] = readItems(await alone.run("user", "list", "--json"));
  assert.deepEqual([admin?.["username"], admin?.["scopes"]], ["admin", ["backend", "consumer"]]);
});

test("commands refuse an empty file as a database, but setup makes one of it", async (t) => {
  const alone = await openCommandLine(t, { isNew: true });
  writeFileSync(alone.databasePath, "");

  for (const words of [["user", "add", "ann"], ["backup", `${alone.databasePath}.copy`]]) {
    const refused = await alone.run(...words);
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /no database/);
  }
  assert.equal(statSync(alone.databasePath).size, 0);
  assert.match((await alone.run("check")).stdout, /none yet/);

  assert.match((await alone.run("setup")).stderr, /has been created/);
  const [admin] = readItems(await alone.run("user", "list", "--json"));
  assert.equal(admin?.["username"], "admin");
});

test("simultaneous setups of a database succeed, or say that nothing was changed", async (t) => {
  const alone = await openCommandLine(t, { isNew: true });
  const all = await Promise.all([1, 2, 3].map(() => alone.run("setup", "--json")));
  assert.ok(all.some(({ code }) => code === 0));
  for (const { code, stderr } of all) {
    assert.equal(code === 0, !/nothing was changed/.test(stderr), stderr);
    assert.doesNotMatch(stderr, /Error|^ +at /m);
  }
});

test("setup refuses a disabled admin, and says how to enable the user again", async (t) => {
  const alone = await openCommandLine(t);
  await alone.run("setup");
  await alone.run("user", "disable", "admin");

  const refused = await alone.run("setup");

  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /user set admin --status active/);
});

test("setup refuses an admin without scope backend, and says how to give it back", async (t) => {
  const alone = await openCommandLine(t);
  await alone.run("setup");
  const set = await alone.run("user", "set", "admin", "--scope", "consumer");
  assert.equal(set.code, 0, set.stderr);
  const refused = await alone.run("setup");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /gatepost user set admin --scope "consumer backend"/);
  assert.equal((await alone.run("user", "set", "admin", "--scope", "consumer backend")).code, 0);
  assert.equal((await alone.run("setup")).code, 0);
});

test("setup by root gives a new database to the owner of its folder", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("nobody else may give a file away");
  const folder = await writeFolder(t, {});
  chownSync(folder, 65_534, 65_534);
  const env = { GATEPOST_DATABASE: join(folder, "gatepost.db") };
  const made = await cli.runWith({ env }, "setup");
  assert.equal(made.code, 0, made.stderr);
  const files = readdirSync(folder).map((file) => statSync(join(folder, file)));
  assert.deepEqual(new Set(files.map(({ uid, gid }) => `${uid}:${gid}`)), new Set(["65534:65534"]));
});
