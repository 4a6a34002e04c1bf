import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, describe, test } from "node:test";
import type { Log } from "../../src/base/log.ts";
import { createSeal, type Seal } from "../../src/base/seal.ts";
import type { Engine } from "../../src/database/engine.ts";
import { NEWEST_VERSION } from "../../src/database/migrations.ts";
import { checkSeal } from "../../src/database/settings.ts";
import { sql } from "../../src/database/sql.ts";
import { insertKey } from "../../src/store/key_ring.ts";
import { listen } from "../helpers/listen.ts";
import { writeOldDatabase } from "../helpers/old_database.ts";
import { startRqlited } from "../helpers/rqlited.ts";
import {
  addUser,
  cluster,
  engineOf,
  listUsers,
  passOn,
  reasonOf,
  SEAL,
  stage,
} from "./rqlite_engine_stage.ts";

const LOG: Log = { debug() {}, info() {}, warn() {}, error() {} };

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
  const database = await engine.open(undefined, LOG);
  const beats = () => engine.look(({ query }) => query(sql`SELECT name FROM processes`));
  assert.equal((await beats()).length, 1);
  await database.close();
  assert.deepEqual(await beats(), []);
});

test("a server sends no request after it stopped", async (t) => {
  await addUser(await stage(t), "u1");
  let asked = 0;
  const address = await passOn(t, () => asked++ < 0);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const database = await (await engineOf(address)).open(undefined, LOG);
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
  const database = await engine.open(undefined, LOG);
  assert.equal(database.state(), "clock_skewed");
  await database.close();
});

/** Opens the database, stores a signing key that this seal encrypted, and closes it. */
async function addKey(engine: Engine, seal: Seal): Promise<void> {
  const database = await engine.open();
  const times = { createdAtMs: 1, signsFromMs: 1, tokenTtlMs: 1 };
  const key = { kid: "k1", alg: "ES256", private: seal.encrypt("", "k1"), ...times } as const;
  await database.write([insertKey(key)]).finally(database.close);
}

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

/** A node with one user who may do everything, one who may only read, one who may only write. */
const auth = { username: "gatepost", password: "right:horse" };
const users = [["read", "query"], ["write", "execute"]].map(([username = "", perm = ""]) =>
  ({ username, password: "horse", perms: [perm, "status", "ready"] }));
const guarded = await startRqlited({ after }, { auth, users });

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

  test("refuses the credentials", async () => {
    const { address } = guarded;
    const wrong = await engineOf(address, "gatepost:wrong");
    assert.match(await reasonOf(wrong), /^[\d.:]+ refuses GATEPOST_DATABASE_CREDENTIALS[^\n]*$/);
    await assert.rejects(wrong.open(), (error: Error) => !error.message.includes("wrong"));
    assert.equal(await reasonOf(await engineOf(address, "gatepost:right:horse")), "missing");
  });

  for (const { username, password } of users) {
    test(`allows the credentials only to ${username}`, async () => {
      const reason = await reasonOf(await engineOf(guarded.address, `${username}:${password}`));
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
    });
    assert.match(await reasonOf(await engineOf(`rqlite://${await listen(t, server)}`)), /8\.26/);
  });
}

test("judge() warns that a node does not answer if its proxy responds with 503", async (t) => {
  const server = createServer((_, response) =>
    void response.writeHead(503).end("no healthy upstream"));
  const down = await listen(t, server);
  const { warnings } = await (await engineOf(`${cluster.address},${down}`)).judge(createSeal());
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
    });
    const node = await listen(t, server);
    const { warnings } = await (await engineOf(`${cluster.address},${node}`)).judge(createSeal());
    assert.equal(warnings?.[0], `${node} ${says}`);
  });
}
