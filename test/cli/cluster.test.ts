import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { startServer } from "../helpers/process.ts";
import { startRqlited } from "../helpers/rqlited.ts";
import { until } from "../helpers/until.ts";

test("three servers start at once on an empty cluster, with commands beside them", async (t) => {
  const { address } = await startRqlited(t);
  const env = { GATEPOST_DATABASE: address };
  const cli = await openCommandLine(t, { isNew: true, ownProcess: true, env });

  const before = await cli.run("check");
  assert.equal(before.code, 0, before.stderr);
  assert.match(before.stdout, /there is none yet/);
  for (const line of [["user", "list"], ["backup", join(cli.folder, "none.db")]]) {
    const refused = await cli.run(...line);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^gatepost: There is no database at rqlite:/);
  }

  const started = Array.from({ length: 3 }, () => startServer({ entry: SOURCE_ENTRY, env }));
  const servers = await Promise.all(started);
  t.after(() => Promise.all(servers.map((server) => server.kill())));
  for (const server of servers) {
    await until(async () => (await fetch(`${server.url}/system/ready`)).status === 200);
  }
  const passwords = servers.filter((server) => server.stderr().includes("Created user admin"));
  assert.equal(passwords.length, 1, "by the first alone");
  assert.equal(readItems(await cli.run("key", "list", "--json")).length, 1);

  assert.equal((await cli.run("user", "add", "alice")).code, 0);
  const { database } = readJson(await cli.run("check", "--json"));
  assert.partialDeepStrictEqual(database, { path: address, state: "usable", users: 2, apps: 0 });
  const copy = join(cli.folder, "copy.db");
  assert.equal((await cli.run("backup", copy)).code, 0);
  const restored = await cli.run("restore", copy);
  assert.equal(restored.code, 1);
  assert.match(restored.stderr, /^gatepost: A process works on rqlite:[^\n]*\n$/);
  assert.deepEqual(readdirSync(cli.folder), ["copy.db"]);

  const codes = await Promise.all(servers.map((server) => server.stop()));
  assert.deepEqual(codes, [0, 0, 0]);
  assert.equal((await cli.run("restore", copy)).code, 0);
});

test("restore is refused beside a server whose cronjobs are off", async (t) => {
  const { address } = await startRqlited(t);
  const env = { GATEPOST_DATABASE: address, GATEPOST_CRON: "off" };
  const cli = await openCommandLine(t, { isNew: true, ownProcess: true, env });
  const server = await startServer({ entry: SOURCE_ENTRY, env });
  t.after(() => server.kill());
  const copy = join(cli.folder, "copy.db");
  assert.equal((await cli.run("backup", copy)).code, 0);
  const restored = await cli.run("restore", copy);
  assert.equal(restored.code, 1);
  assert.match(restored.stderr, /^gatepost: A process works on rqlite:[^\n]*\n$/);
  assert.equal(await server.stop(), 0);
  assert.equal((await cli.run("restore", copy)).code, 0);
});

test("restore into a cluster removes the file that a killed restore has left", async (t) => {
  const { address } = await startRqlited(t);
  const cli = await openCommandLine(t, { env: { GATEPOST_DATABASE: address } });
  const source = join(cli.folder, "source.db");
  await openSqliteDatabase(source).close();
  const copies = () => readdirSync(cli.folder).filter((name) => name.startsWith("source.db"));
  const child = cli.start("restore", source);
  const exited = once(child, "exit");
  await until(() => copies().includes("source.db.load"));
  child.kill("SIGKILL");
  await exited;
  assert.ok(copies().includes("source.db.load"), "it was killed too late");

  const restored = await cli.run("restore", source);

  assert.equal(restored.code, 0, restored.stderr);
  assert.deepEqual(copies(), ["source.db"]);
});

test("check and the server warn of one node of two that does not respond", async (t) => {
  const { address } = await startRqlited(t);
  const env = { GATEPOST_DATABASE: `${address},127.0.0.1:1` };
  const cli = await openCommandLine(t, { isNew: true, env });
  const reason = "does not answer: connect ECONNREFUSED 127.0.0.1:1";
  for (const state of ["missing", "usable"]) {
    const checked = await cli.run("check", "--json");
    assert.equal(checked.code, 0, checked.stderr);
    const { database, warnings } = readJson(checked);
    assert.partialDeepStrictEqual(database, { state });
    assert.match(String(warnings), new RegExp(`GATEPOST_DATABASE: 127.0.0.1:1 ${reason}`));
    await cli.run("setup");
  }
  const server = await startServer({ entry: SOURCE_ENTRY, env });
  await server.stop();
  const { lines } = server;
  const before = lines.slice(0, lines.findIndex((line) => line.includes("listening")));
  assert.match(String(before), new RegExp(`GATEPOST_DATABASE: 127.0.0.1:1 ${reason}`));
});

test("a server and a command say in one line that no node can be reached", async (t) => {
  const env = { GATEPOST_DATABASE: "rqlite://127.0.0.1:1" };
  const cli = await openCommandLine(t, { isNew: true, ownProcess: true, env });
  const line = /^[^\n]*Database rqlite:\/\/127\.0\.0\.1:1: [^\n]*ECONNREFUSED[^\n]*$/m;
  const [command, check] = await Promise.all([cli.run("user", "list"), cli.run("check")]);
  assert.deepEqual([command.code, check.code], [1, 1]);
  assert.match(command.stderr, line);
  assert.match(check.stderr, line);
  await assert.rejects(startServer({ entry: SOURCE_ENTRY, env }), (error: Error) => {
    assert.match(error.message, /\(exit 1\)/);
    assert.match(error.message, line);
    return true;
  });
});
