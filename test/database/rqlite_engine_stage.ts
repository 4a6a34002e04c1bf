import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { createEngine, type Engine } from "../../src/database/engine.ts";
import { sql } from "../../src/database/sql.ts";
import { insertUser } from "../../src/store/users.ts";
import { configOf } from "../helpers/config.ts";
import { makeFolder } from "../helpers/database.ts";
import { type HandleProxied, startRqliteProxy } from "../helpers/rqlite_proxy.ts";
import { startRqlited } from "../helpers/rqlited.ts";

/** The cluster of all tests of a file: one node, without a database until `stage`. */
export const cluster = await startRqlited({ after });
const url = cluster.nodes[0]?.url ?? "";
export const SEAL = createSeal(undefined);
export const COPYING = AbortSignal.any([]);

export function engineOf(address: string, credentials = ""): Promise<Engine> {
  return createEngine(configOf({
    GATEPOST_DATABASE: address,
    GATEPOST_DATABASE_CREDENTIALS: credentials,
  }));
}

/** Loads into the cluster what `make` writes to a file, or nothing; returns its engine. */
export async function stage(
  t: TestContext,
  make: (path: string) => void = () => {},
): Promise<Engine> {
  const path = join(makeFolder(t), "content.db");
  new DatabaseSync(path).exec("PRAGMA user_version = 0; VACUUM");
  make(path);
  const response = await fetch(`${url}/db/load`, {
    method: "POST",
    body: new Uint8Array(readFileSync(path)),
  });
  assert.equal(response.status, 200, await response.text());
  return engineOf(cluster.address);
}

/** The cluster with users u1 and u2, and a copy of it, in a folder, that was made before u2. */
export async function stageCopy(t: TestContext) {
  const folder = makeFolder(t);
  const copy = join(folder, "copy.db");
  const direct = await stage(t);
  await addUser(direct, "u1");
  await direct.backUp(copy, COPYING);
  await addUser(direct, "u2");
  return { folder, copy, direct };
}

export async function reasonOf(engine: Engine, seal = SEAL): Promise<string> {
  const state = await engine.judge(seal);
  return state.kind === "unusable" ? state.reason : state.kind;
}

/** Opens the database, stores a user, and closes it. */
export async function addUser(engine: Engine, id: string): Promise<void> {
  const database = await engine.open();
  const user = { id, username: id, phc: "$phc", scopes: [], createdAtMs: 1 };
  await database.write([insertUser(user)]).finally(database.close);
}

export async function listUsers(engine: Engine): Promise<string[]> {
  const rows = await engine.look(({ query }) =>
    query<{ id: string }>(sql`SELECT id FROM users ORDER BY id`)
  );
  return rows.map(({ id }) => id);
}

/** The address of a proxy of the node. It forwards a request unless `handle` returns true. */
export async function passOn(t: TestContext, handle: HandleProxied): Promise<string> {
  return `rqlite://${(await startRqliteProxy(t, url, handle)).host}`;
}
