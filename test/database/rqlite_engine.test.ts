import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { buffer } from "node:stream/consumers";
import { after, describe, type TestContext, test } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { parseConfig } from "../../src/config.ts";
import { createEngine, type Engine } from "../../src/database/engine.ts";
import { NEWEST_VERSION } from "../../src/database/migrations.ts";
import { acquireRqlitePresence } from "../../src/database/rqlite_presence.ts";
import { checkSeal } from "../../src/database/settings.ts";
import { sql } from "../../src/database/sql.ts";
import { insertKey } from "../../src/store/key_ring.ts";
import { insertUser } from "../../src/store/users.ts";
import { makeFolder } from "../helpers/database.ts";
import { writeOldDatabase } from "../helpers/old_database.ts";
import { runRqlited, startRqlited } from "../helpers/rqlited.ts";
import { mountSmallDisk } from "../helpers/small_disk.ts";

const cluster = await runRqlited();
after(() => cluster.stop());
/** The folder of SQLite's temporary files, in this process from now on. */
const TEMPORARY = process.env["SQLITE_TMPDIR"] = makeFolder({ after });
const SEAL = createSeal(undefined);
const COPYING = AbortSignal.any([]);

function engineOf(address: string, credentials = ""): Promise<Engine> {
  const result = parseConfig({
    GATEPOST_DATABASE: address,
    GATEPOST_DATABASE_CREDENTIALS: credentials,
  });
  assert.ok(result.ok);
  return createEngine(result.config);
}

/** Loads into the cluster what `make` writes to a file, or nothing; returns its engine. */
async function stage(t: TestContext, make: (path: string) => void = () => {}): Promise<Engine> {
  const path = join(makeFolder(t), "content.db");
  new DatabaseSync(path).exec("PRAGMA user_version = 0; VACUUM");
  make(path);
  const response = await fetch(`${cluster.nodes[0]?.url}/db/load`, {
    method: "POST",
    body: new Uint8Array(readFileSync(path)),
  });
  assert.equal(response.status, 200, await response.text());
  return engineOf(cluster.address);
}

/** The cluster with users u1 and u2, and a copy of it that was made before u2. */
async function stageCopy(t: TestContext) {
  const copy = join(makeFolder(t), "copy.db");
  const direct = await stage(t);
  await addUser(direct, "u1");
  await direct.backUp(copy, COPYING);
  await addUser(direct, "u2");
  return { copy, direct };
}

/** A copy of a database file with user u1. */
async function copyFile(t: TestContext) {
  const folder = makeFolder(t);
  const copy = join(folder, "copy.db");
  const file = await engineOf(join(folder, "gatepost.db"));
  await addUser(file, "u1");
  await file.backUp(copy, COPYING);
  return { folder, copy };
}

async function reasonOf(engine: Engine, seal = SEAL): Promise<string> {
  const state = await engine.judge(seal);
  return state.kind === "unusable" ? state.reason : state.kind;
}

/** Opens the database, stores a user, and closes it. */
async function addUser(engine: Engine, id: string): Promise<void> {
  const database = await engine.open();
  const user = { id, username: id, phc: "$phc", scopes: [], createdAtMs: 1 };
  await database.write([insertUser(user)]).finally(database.close);
}

async function listUsers(engine: Engine): Promise<string[]> {
  const rows = await engine.look(({ query }) =>
    query<{ id: string }>(sql`SELECT id FROM users ORDER BY id`)
  );
  return rows.map(({ id }) => id);
}

/** Opens the database, stores a signing key that this seal encrypted, and closes it. */
async function addKey(engine: Engine, seal: ReturnType<typeof createSeal>): Promise<void> {
  const database = await engine.open();
  const times = { createdAtMs: 1, signsFromMs: 1, tokenTtlMs: 1 };
  const key = { kid: "k1", alg: "ES256", private: seal.encrypt("", "k1"), ...times } as const;
  await database.write([insertKey(key)]).finally(database.close);
}

test("an empty cluster has no database until open() makes one", async (t) => {
  const engine = await stage(t);
  assert.deepEqual([await engine.exists(), await engine.judge(SEAL)], [false, { kind: "missing" }]);
  await addUser(engine, "u1");
  const state = await engine.judge(SEAL);
  assert.ok(state.kind === "usable");
  assert.deepEqual([state.schemaVersion, state.isSealed], [NEWEST_VERSION, false]);
  assert.ok(state.bytes > 100_000);
  assert.deepEqual([await engine.exists(), await listUsers(engine)], [true, ["u1"]]);
});

for (const [which, make] of [["an empty", undefined], ["an old", writeOldDatabase]] as const) {
  test(`six simultaneous open() of ${which} cluster make the newest schema`, async (t) => {
    const engine = await stage(t, make);
    const opened = await Promise.all(Array.from({ length: 6 }, () => engine.open()));
    await Promise.all(opened.map((database) => database.close()));
    const found = await engine.look(({ query }) => query(sql`PRAGMA user_version`));
    assert.deepEqual(found, [{ user_version: NEWEST_VERSION }]);
    // The old database is sealed; nothing else is wrong with it.
    assert.match(await reasonOf(engine), /^usable$|GATEPOST_SECRET_KEY is missing/);
  });
}

const UNUSABLE: readonly [name: string, reason: RegExp, change: string, isOpened?: true][] = [
  ["of another program", /another program/, "PRAGMA application_id = 7"],
  ["of a newer program", /schema version is 99/, "PRAGMA user_version = 99"],
  ["without a table", /keys\.kid is missing/, "DROP TABLE keys", true],
];

for (const [name, reason, change, isOpened] of UNUSABLE) {
  test(`judge() refuses a database ${name}, which stays unchanged`, async (t) => {
    const engine = await stage(t);
    await addUser(engine, "u1");
    await cluster.nodes[0]?.call("/db/execute", [change]);
    const before = await cluster.nodes[0]?.call("/db/query?q=SELECT+*+FROM+sqlite_schema");
    assert.match(await reasonOf(engine), reason);
    if (isOpened) await (await engine.open()).close();
    else {
      const refusal = { name: "UnusableDatabaseError", message: reason };
      await assert.rejects(engine.open(), refusal);
      await assert.rejects(engine.exists(), refusal);
    }
    const now = await cluster.nodes[0]?.call("/db/query?q=SELECT+*+FROM+sqlite_schema");
    assert.equal(now, before);
  });
}

test("open() refuses a database that cannot be migrated and leaves it unchanged", async (t) => {
  const engine = await stage(t);
  await addUser(engine, "u1");
  await cluster.nodes[0]?.call("/db/execute", ["PRAGMA user_version = 1"]);
  const message = /^Database rqlite:\S+: \S[^\n]*$/;
  await assert.rejects(engine.open(), { name: "UnusableDatabaseError", message });
  const found = await engine.look(({ query }) => query(sql`PRAGMA user_version`));
  assert.deepEqual([found, await listUsers(engine)], [[{ user_version: 1 }], ["u1"]]);
});

test("a server has a heartbeat until it stops", async (t) => {
  const engine = await stage(t);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const database = await engine.open(undefined, log);
  const beats = () => engine.look(({ query }) => query(sql`SELECT name FROM processes`));
  assert.equal((await beats()).length, 1);
  await database.close();
  assert.deepEqual(await beats(), []);
});

test("a server sends no request after it stopped", async (t) => {
  await addUser(await stage(t), "u1");
  let asked = 0;
  const address = await passOn(t, () => asked++ < 0);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  t.mock.timers.enable({ apis: ["setInterval"] });
  const database = await (await engineOf(address)).open(undefined, log);
  await database.close();
  const before = asked;
  t.mock.timers.tick(10_000);
  await fetch(`${address.replace("rqlite:", "http:")}/readyz`);
  assert.equal(asked, before + 1);
});

test("with a wrong clock a command is refused and a server is not ready", async (t) => {
  const engine = await stage(t);
  await addUser(engine, "u1");
  const trueNow = Date.now;
  t.mock.method(Date, "now", () => trueNow() + 3_600_000);
  const message = /this machine's clock differs by 3[56]\d{5} ms from those of the cluster: set it/;
  await assert.rejects(addUser(engine, "u2"), { name: "UnusableDatabaseError", message });
  assert.deepEqual(await listUsers(engine), ["u1"]);
  const { warnings = [] } = await engine.judge(SEAL);
  assert.match(warnings.join(), message);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const database = await engine.open(undefined, log);
  assert.equal(database.state(), "clock_skewed");
  await database.close();
});

test("judge() accepts a sealed database only with all of its keys", async (t) => {
  const engine = await stage(t);
  const seal = createSeal(new Uint8Array(32).fill(1));
  const database = await engine.open();
  await checkSeal(database, seal);
  assert.match(database.forgetOverwritten() ?? "", /snapshots/);
  await database.close();
  assert.match(await reasonOf(engine), /GATEPOST_SECRET_KEY is missing/);
  assert.match(await reasonOf(engine, createSeal(new Uint8Array(32).fill(2))), /not the key/);
  assert.equal(await reasonOf(engine, seal), "usable");

  const added = new Uint8Array(32).fill(3);
  await addKey(engine, createSeal(added));
  assert.match(await reasonOf(engine, seal), /^Its signing key k1 is sealed, and [^\n]* lacks/);
  assert.equal(await reasonOf(engine, createSeal(new Uint8Array(32).fill(1), added)), "usable");
});

describe("no server starts on a cluster that", { concurrency: true }, () => {
  test("cannot be reached", async () => {
    const engine = await engineOf("rqlite://127.0.0.1:1,127.0.0.1:2");
    const message = /^Database rqlite:.* cannot be reached: .*ECONNREFUSED[^\n]*$/;
    await assert.rejects(engine.open(), { name: "UnusableDatabaseError", message });
  });

  test("does not use TLS: the error of OpenSSL is shown without its line break", async () => {
    const engine = await engineOf(cluster.address.replace("rqlite:", "rqlites:"));
    const message = /^Database rqlites:.* cannot be reached: [^\n]*SSL[^\n]*$/;
    await assert.rejects(engine.open(), { name: "UnusableDatabaseError", message });
  });

  test("refuses the credentials", async (t) => {
    const auth = { username: "gatepost", password: "right:horse" };
    const { address } = await startRqlited(t, { auth });
    const wrong = await engineOf(address, "gatepost:wrong");
    assert.match(await reasonOf(wrong), /^[\d.:]+ refuses GATEPOST_DATABASE_CREDENTIALS[^\n]*$/);
    await assert.rejects(wrong.open(), (error: Error) => !error.message.includes("wrong"));
    assert.equal(await reasonOf(await engineOf(address, "gatepost:right:horse")), "missing");
  });

  for (const [what, perm] of [["read", "query"], ["write", "execute"]] as const) {
    test(`allows the credentials only to ${what}`, async (t) => {
      const auth = { username: "one", password: "horse", perms: [perm, "status", "ready"] };
      const { address } = await startRqlited(t, { auth });
      const reason = await reasonOf(await engineOf(address, "one:horse"));
      assert.match(reason, /^[\d.:]+ refuses GATEPOST_DATABASE_CREDENTIALS, or [^\n]* few rights/);
    });
  }

  test("has a node that ignores foreign keys", async (t) => {
    const { address } = await startRqlited(t, { withoutFk: [0] });
    assert.match(await reasonOf(await engineOf(address)), /-fk/);
  });

  test("has an unlisted node that ignores foreign keys", async (t) => {
    const { nodes } = await startRqlited(t, { nodes: 2, withoutFk: [1] });
    const [listed, other] = nodes.map((node) => new URL(node.url).host);
    const reason = await reasonOf(await engineOf(`rqlite://127.0.0.1:1,${listed}`));
    assert.ok(reason.startsWith(`${other} ignores foreign keys`), reason);
  });

  test("is in fact two clusters", async (t) => {
    const [one, other] = [cluster, await startRqlited(t)].map(({ address }) =>
      new URL(address).host
    );
    const reason = await reasonOf(await engineOf(`rqlite://${one},127.0.0.1:1,${other}`));
    assert.equal(reason, `${one} and ${other} are of different clusters.`);
  });
});

// Not beside the tests above: on a loaded machine this process would then respond too late.
for (const [version, what] of [["v8.25.9", "too old"], [undefined, "not rqlite"]] as const) {
  test(`judge() refuses a cluster with a node that is ${what}`, async (t) => {
    const server = createServer((_, response) => {
      if (version) response.setHeader("X-Rqlite-Version", version);
      response.end("{}");
    }).listen(0, "127.0.0.1");
    t.after(() => server.close().closeAllConnections());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    assert.match(await reasonOf(await engineOf(`rqlite://127.0.0.1:${port}`)), /8\.26/);
  });
}

test("judge() warns that a node does not answer if its proxy responds with 503", async (t) => {
  const server = createServer((_, response) =>
    void response.writeHead(503).end("no healthy upstream")).listen(0, "127.0.0.1");
  t.after(() => server.close().closeAllConnections());
  await once(server, "listening");
  const down = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { address } = await startRqlited(t);
  const { warnings } = await (await engineOf(`${address},${down}`)).judge(createSeal());
  assert.deepEqual(warnings, [`${down} does not answer: HTTP 503 no healthy upstream`]);
});

for (const [what, found, says] of [
  ["is no longer part of the cluster", '{"results":[{"values":[[1]]}]}',
    "follows no leader: it was removed from the cluster, or is cut off from it"],
  ["has lost its file", '{"results":[],"error":"unable to open database file"}',
    "has no database: unable to open database file"],
]) {
  test(`judge() warns of a node that runs but ${what}`, async (t) => {
    const server = createServer(({ url }, response) => {
      response.setHeader("X-Rqlite-Version", "v8.26.8");
      if (url === "/readyz") return void response.writeHead(503).end("[+]leader does not exist");
      response.end(url?.startsWith("/nodes") ? "{}" : found);
    }).listen(0, "127.0.0.1");
    t.after(() => server.close().closeAllConnections());
    await once(server, "listening");
    const node = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { address } = await startRqlited(t);
    const { warnings } = await (await engineOf(`${address},${node}`)).judge(createSeal());
    assert.equal(warnings?.[0], `${node} ${says}`);
  });
}

test("a file can be moved into a cluster and back; replaced content is kept", async (t) => {
  const folder = makeFolder(t);
  const [old, out, back] = ["old.db", "out.db", "back.db"].map((name) => join(folder, name));
  assert.ok(old && out && back);
  const file = await engineOf(join(folder, "gatepost.db"));
  await addUser(file, "u1");
  await file.backUp(out, COPYING);
  const engine = await stage(t);
  await addUser(engine, "u2");

  const { bytes, keptAs } = await engine.restore(out, SEAL, Date.UTC(2026, 0, 1), COPYING);

  assert.deepEqual([bytes, keptAs], [statSync(out).size, `${out}.before-20260101T000000Z`]);
  assert.deepEqual(await listUsers(engine), ["u1"]);
  await addUser(engine, "u3");
  assert.deepEqual(await listUsers(await engineOf(keptAs ?? "")), ["u2"]);
  assert.equal(await engine.backUp(back, COPYING), statSync(back).size);
  assert.equal(statSync(back).mode & 0o777, 0o600);
  await file.restore(back, SEAL, 0, COPYING);
  assert.deepEqual(await listUsers(file), ["u1", "u3"]);
  const kept = `out.db.before-20260101T000000Z`;
  const moved = "gatepost.db.before-19700101T000000Z";
  assert.deepEqual(readdirSync(folder).sort(), ["back.db", "gatepost.db", moved, "out.db", kept]);
});

for (const [how, reason] of [["is lost", "socket hang up"], ["is not awaited", "Stop"]]) {
  test(`if the response to a restore ${how}, the error names the kept file`, async (t) => {
    const { copy, direct } = await stageCopy(t);
    const controller = new AbortController();
    const engine = await engineOf(await passOn(t, async (path, { socket }, pass) => {
      if (path !== "/db/load") return false;
      await pass();
      if (reason === "Stop") controller.abort(new Error(reason));
      else socket?.destroy();
      return true;
    }));
    const { signal } = controller;
    await assert.rejects(engine.restore(copy, SEAL, 0, signal), (error: Error) => {
      const kept = `${copy}.before-19700101T000000Z`;
      const end = ` was replaced (${reason}); what was there is in ${kept}.`;
      assert.match(error.message, /^It is not known whether rqlite:\/\/[\d.:]+ was replaced/);
      assert.equal(error.name, "UnusableDatabaseError");
      return error.message.endsWith(end) && existsSync(kept);
    });
    assert.deepEqual(await listUsers(direct), ["u1"]);
  });
}

test("a restore sends no deleted content and makes no temporary file", async (t) => {
  const folder = makeFolder(t);
  const [path, copy] = [join(folder, "gatepost.db"), join(folder, "copy.db")];
  const file = await engineOf(path);
  await addUser(file, "u1");
  const connection = new DatabaseSync(path);
  connection.exec(`INSERT INTO settings (name, value)
    VALUES ('x', hex(zeroblob(1000000))), ('kept', hex(zeroblob(5000000)))`);
  connection.exec("DELETE FROM settings WHERE name = 'x'");
  connection.close();
  await file.backUp(copy, COPYING);
  const engine = await stage(t);
  const beside: unknown[] = [];
  const watching = watch(TEMPORARY, (_, name) => beside.push(name));
  t.after(() => watching.close());
  const { bytes } = await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual(beside, []);
  assert.ok(bytes < statSync(copy).size - 2_000_000, `${bytes} of ${statSync(copy).size}`);
  assert.deepEqual(await listUsers(engine), ["u1"]);
});

test("a restore that is stopped before it is sent fails with the reason alone", async (t) => {
  const { copy } = await copyFile(t);
  await stage(t);
  const controller = new AbortController();
  const paths: string[] = [];
  const engine = await engineOf(await passOn(t, (path) => {
    paths.push(path);
    controller.abort(new Error("Stop"));
    return false;
  }));
  await assert.rejects(engine.restore(copy, SEAL, 0, controller.signal), { message: "Stop" });
  assert.ok(paths.length > 0 && !paths.includes("/db/load"), `${paths}`);
});

test("a restore waits for a leader that is silent while it stores the copy", async (t) => {
  const { copy, direct } = await stageCopy(t);
  const elapsedMs = performance.now.bind(performance);
  let silent = 0;
  let isLoaded = false;
  const engine = await engineOf(await passOn(t, async (path, response, pass) => {
    if (path === "/db/load") {
      await pass();
      isLoaded = true;
      response.end("");
      return true;
    }
    if (!isLoaded || silent === 3) return false;
    if (path.startsWith("/db/query")) silent++;
    t.mock.method(performance, "now", () => elapsedMs() + silent * 6_000); // the request times out
    return true;
  }));
  await engine.restore(copy, SEAL, 0, COPYING);
  assert.equal(silent, 3);
  assert.deepEqual(await listUsers(direct), ["u1"]);
});

test("a restore is sent again if the node stops leading while it reads it", async (t) => {
  const { copy, direct } = await stageCopy(t);
  // The texts of rqlite 8.26.
  const refusals = ["remote node failed to load: not leader\n", "store not ready\n"];
  const engine = await engineOf(await passOn(t, (path, response) => {
    const refusal = path === "/db/load" ? refusals.shift() : undefined;
    if (refusal !== undefined) response.writeHead(500).end(refusal);
    return response.writableEnded;
  }));
  await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual(refusals, []);
  assert.deepEqual(await listUsers(direct), ["u1"]);
});

test("a restore fails if the leader returns an error or then has other content", async (t) => {
  const { copy, direct } = await stageCopy(t);
  for (const [spoil, reason] of [
    [undefined, '{"error":"not the leader"}'],
    ["PRAGMA user_version = 99", "schema version is 99"],
  ] as const) {
    const engine = await engineOf(await passOn(t, async (path, response, pass) => {
      if (path !== "/db/load") return false;
      if (spoil) {
        await pass();
        await cluster.nodes[0]?.call("/db/execute", [spoil]);
      }
      response.end(spoil ? "" : reason);
      return true;
    }));
    await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), ({ name, message }: Error) =>
      name === "UnusableDatabaseError" && message.includes(reason) &&
        message.startsWith("It is not known whether rqlite:"));
    if (spoil === undefined) assert.deepEqual(await listUsers(direct), ["u1", "u2"]);
  }
});

test("a restore to an empty cluster that the leader refuses names no kept file", async (t) => {
  const { copy } = await copyFile(t);
  await stage(t);
  const engine = await engineOf(await passOn(t, (path, response) =>
    path === "/db/load" && response.writeHead(503).end("busy") !== undefined));
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), {
    name: "UnusableDatabaseError",
    message: /^It is not known [^\n]+ replaced \([\d.:]+ refuses to copy: HTTP 503 busy\)\.$/,
  });
});

test("a restore that finds no leader fails and changes nothing", async (t) => {
  const { copy, direct } = await stageCopy(t);
  const elapsedMs = performance.now.bind(performance);
  let isLost = false;
  const engine = await engineOf(await passOn(t, (path, response) => {
    if (isLost && path.startsWith("/db/query")) {
      response.writeHead(503).end("leader not found");
      t.mock.method(performance, "now", () => elapsedMs() + 6_000); // the request times out
    }
    isLost ||= path.startsWith("/db/backup");
    return response.writableEnded;
  }));
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), {
    name: "UnavailableError",
    message: /leader not found/,
  });
  assert.deepEqual(await listUsers(direct), ["u1", "u2"]);
});

/** The address of a proxy of the node. It forwards a request unless `answer` returns true. */
async function passOn(
  t: TestContext,
  answer: (
    path: string,
    response: ServerResponse,
    pass: () => Promise<Response>,
  ) => boolean | Promise<boolean>,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const { url = "", method = "" } = request;
    const body = method === "GET" ? null : new Uint8Array(await buffer(request));
    const headers = { "Content-Type": request.headers["content-type"] ?? "" };
    const pass = () => fetch(`${cluster.nodes[0]?.url}${url}`, { method, headers, body });
    if (await answer(url, response, pass)) return;
    const passed = await pass();
    response.writeHead(passed.status, {
      "X-Rqlite-Version": passed.headers.get("x-rqlite-version") ?? "",
    });
    response.end(await passed.bytes());
  }).listen(0, "127.0.0.1");
  t.after(() => server.close().closeAllConnections());
  await once(server, "listening");
  return `rqlite://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a restore to an empty cluster makes no file of the old content", async (t) => {
  const { folder, copy } = await copyFile(t);
  const engine = await stage(t);
  const { keptAs } = await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual([keptAs, await listUsers(engine)], [undefined, ["u1"]]);
  assert.deepEqual(readdirSync(folder).sort(), ["copy.db", "gatepost.db"]);
});

for (const sent of ["", "not the leader"]) {
  test(`backup and restore fail if the leader sends "${sent}" as its copy`, async (t) => {
    const folder = makeFolder(t);
    const copy = join(folder, "copy.db");
    const direct = await stage(t);
    await addUser(direct, "u1");
    await direct.backUp(copy, COPYING);
    await addUser(direct, "u2");
    const engine = await engineOf(await passOn(t, (path, response) =>
      path.startsWith("/db/backup") && response.end(sent) !== undefined));
    const refusal = { name: "UnavailableError", message: /not sent all of its copy/ };
    await assert.rejects(engine.backUp(join(folder, "other.db"), COPYING), refusal);
    await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), refusal);
    assert.deepEqual(await listUsers(direct), ["u1", "u2"]);
    assert.deepEqual(readdirSync(folder), ["copy.db"]);
  });
}

test("a restore of a file with a log beside it is refused: it is no backup", async (t) => {
  const engine = await stage(t);
  await addUser(engine, "u1");
  const copy = join(makeFolder(t), "copy.db");
  await engine.backUp(copy, COPYING);
  writeFileSync(`${copy}-wal`, "what the file lacks");
  const message = /copy\.db has a log beside it/;
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), { message });
});

test("a restore with refused credentials fails and names the cluster", async (t) => {
  const copy = join(makeFolder(t), "copy.db");
  const direct = await stage(t);
  await addUser(direct, "u1");
  await direct.backUp(copy, COPYING);
  const address = await passOn(t, (_, response) => response.writeHead(401).end() !== undefined);
  const message = new RegExp(`^Database ${address}: [\\d.:]+ refuses GATEPOST_DATABASE_CRED`);
  const engine = await engineOf(address);
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), {
    name: "UnusableDatabaseError",
    message,
  });
});

test("a backup to a full disk fails with ENOSPC and leaves no file", async (t) => {
  const disk = mountSmallDisk(t, 2 ** 16);
  if (disk === undefined) return;
  const engine = await stage(t);
  await addUser(engine, "u1");
  const backup = engine.backUp(join(disk.folder, "copy.db"), COPYING);
  await assert.rejects(backup, { code: "ENOSPC" });
  assert.deepEqual(readdirSync(disk.folder), []);
});

test("a restore may replace the database of a newer program", async (t) => {
  const folder = makeFolder(t);
  const copy = join(folder, "copy.db");
  const engine = await stage(t);
  await addUser(engine, "u1");
  await engine.backUp(copy, COPYING);
  await cluster.nodes[0]?.call("/db/execute", ["PRAGMA user_version = 99"]);
  const { keptAs } = await engine.restore(copy, SEAL, 0, COPYING);
  assert.deepEqual(await listUsers(engine), ["u1"]);
  assert.match(await reasonOf(await engineOf(keptAs ?? "")), /schema version is 99/);
});

test("simultaneous backups during writes contain no deleted content", async (t) => {
  const folder = makeFolder(t);
  const engine = await stage(t);
  const database = await engine.open();
  t.after(() => database.close());
  const put = (name: string) =>
    database.write([sql`INSERT INTO settings (name, value) VALUES (${name}, 'forget me')`]);
  await put("gone");
  await database.write([sql`DELETE FROM settings WHERE name = 'gone'`]);
  const targets = ["a.db", "b.db", "c.db"].map((name) => join(folder, name));
  await Promise.all([
    ...targets.map((target) => engine.backUp(target, COPYING)),
    ...targets.map((target) => addUser(engine, `u${target}`)),
  ]);
  for (const target of targets) assert.ok(!readFileSync(target).includes("forget me"));
});

test("a backup never replaces a file, and leaves no file when it fails", async (t) => {
  const folder = makeFolder(t);
  const engine = await stage(t);
  await addUser(engine, "u1");
  const target = join(folder, "there.db");
  writeFileSync(target, "mine");
  await assert.rejects(engine.backUp(target, COPYING), { code: "EEXIST" });
  const ended = AbortSignal.abort(new Error("interrupted"));
  await assert.rejects(engine.backUp(join(folder, "new.db"), ended));
  const gone = await engineOf("rqlite://127.0.0.1:1");
  await assert.rejects(gone.backUp(join(folder, "new.db"), COPYING), { name: "UnavailableError" });
  assert.deepEqual(readdirSync(folder), ["there.db"]);
  writeFileSync(join(folder, "new.db.download"), "of one that was killed");
  const message = /new\.db\.download is there already: .*remove it\.$/;
  await assert.rejects(engine.backUp(join(folder, "new.db"), COPYING), { message });
});

test("a backup that is interrupted before the leader responds ends at once", async (t) => {
  const folder = makeFolder(t);
  const controller = new AbortController();
  const reason = new Error("Interrupted.");
  const server = createServer(({ url = "" }, response) => {
    if (url.startsWith("/db/backup")) controller.abort(reason);
    else response.end('{"results":[{}]}');
  }).listen(0, "127.0.0.1");
  t.after(() => server.close().closeAllConnections());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const engine = await engineOf(`rqlite://127.0.0.1:${port}`);
  const { signal } = controller;
  await assert.rejects(engine.backUp(join(folder, "new.db"), signal), reason);
  assert.deepEqual(readdirSync(folder), []);
});

for (const [sent, what] of [["SQLite format 3", "within"], ["", "before"]] as const) {
  test(`a backup fails if the leader stalls ${what} it`, { timeout: 10_000 }, async (t) => {
    const folder = makeFolder(t);
    let isSilent = false;
    const server = createServer(({ url = "" }, response) => {
      if (isSilent) return;
      isSilent = url.startsWith("/db/backup");
      if (!isSilent) response.end('{"results":[{}]}');
      else if (sent) response.write(sent);
    }).listen(0, "127.0.0.1");
    t.after(() => server.close().closeAllConnections());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { backUp } = await engineOf(`rqlite://127.0.0.1:${port}`);
    const backup = backUp(join(folder, "new.db"), COPYING);
    const message = "The leader has not sent all of its copy";
    await assert.rejects(backup, { name: "UnavailableError", message });
    assert.deepEqual(readdirSync(folder), []);
  });
}

test("a restore from a damaged file, or while a process is present, is refused", async (t) => {
  const folder = makeFolder(t);
  const engine = await stage(t);
  await addUser(engine, "u1");
  const copy = join(folder, "copy.db");
  await engine.backUp(copy, COPYING);
  await addUser(engine, "u2");
  const database = await engine.open();
  const presence = await acquireRqlitePresence(database, "c1");
  await assert.rejects(engine.restore(copy, SEAL, 0, COPYING), { message: /process works on/ });
  await presence.close();
  await database.close();
  const broken = join(folder, "broken.db");
  writeFileSync(broken, readFileSync(copy).fill(7, 8192));
  await assert.rejects(engine.restore(broken, SEAL, 0, COPYING), { name: "UnusableDatabaseError" });
  assert.deepEqual(await listUsers(engine), ["u1", "u2"]);
  assert.ok(!existsSync(`${copy}.before-19700101T000000Z`));
  assert.deepEqual(readdirSync(folder).sort(), ["broken.db", "copy.db"]);
});
