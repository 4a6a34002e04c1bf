import { after, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../src/database/database.ts";
import { openRqliteDatabase } from "../../src/database/rqlite.ts";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { RQLITE_LEDGER } from "../../src/database/rqlite_ledger.ts";
import { sql } from "../../src/database/sql.ts";
import { startRqliteProxy } from "../helpers/rqlite_proxy.ts";
import { startRqlited } from "../helpers/rqlited.ts";

const [node] = (await startRqlited({ after })).nodes;
/** The one node of all tests of a file. */
export const url = node?.url ?? "";
await node?.call("/db/execute?transaction", [
  RQLITE_LEDGER.sql,
  "CREATE TABLE counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT",
]);

type Mode =
  | ("pass" | "slow" | "lose" | "depose" | "hold" | "leaderless" | "redirect")
  | ("disk full" | "locked" | "denied" | "no reads");

/** A database behind a proxy of the node, which handles requests by its mode. */
export async function stage(t: TestContext) {
  let mode: Mode = "pass";
  let following: Mode | undefined;
  const paths: string[] = [];
  const held: (() => Promise<unknown>)[] = [];
  const { host, disconnect } = await startRqliteProxy(t, url, async (path, response, pass) => {
    const respond = (status: number, content = "", headers = {}) => {
      response.writeHead(status, headers).end(content);
      return true;
    };
    if (path.startsWith("/readyz")) return respond(200);
    paths.push(path);
    const now = following ?? mode;
    following = undefined;
    switch (now) {
      case "hold":
        held.push(pass);
        return true;
      case "leaderless":
        return respond(503, "leader not found");
      case "no reads":
        return path.startsWith("/db/query") && respond(503, "leader not found");
      case "redirect":
        return respond(301, "", { Location: `${url}${path}` });
      case "lose":
        await pass();
        response.destroy();
        return true;
      case "depose":
        await pass();
        return respond(200, '{"results":[],"error":"leadership lost while committing log"}');
      case "disk full":
        return respond(200, '{"results":[{"error":"database or disk is full"}]}');
      case "locked":
        return respond(200, '{"results":[{"error":"database is locked"}]}');
      case "denied":
        return respond(401);
      case "slow":
        await sleep(1_500);
        return false;
      case "pass":
        return false;
    }
  });
  const client = createRqliteClient({ nodes: [host], isTls: false, credentials: undefined });
  const database = openRqliteDatabase(client);
  t.after(() => {
    mode = "pass";
    return database.close();
  });
  return {
    database,
    /** The paths of all requests. */
    asked: () => paths,
    /** Closes all connections, as when a node ends. */
    async disconnect(): Promise<void> {
      disconnect();
      await sleep(100);
    },
    /** Sets the mode of the next request. */
    next: (one: Mode) => void (following = one),
    /** Sets the mode of all requests from now on. */
    always: (all: Mode) => void (mode = all),
    async releaseHeld(): Promise<number> {
      await Promise.all(held.map((release) => release()));
      return held.length;
    },
  };
}

export function add(database: Database, name: string): Promise<number[]> {
  return database.write([
    sql`INSERT INTO counters (name, n) VALUES (${name}, 1) ON CONFLICT DO UPDATE SET n = n + 1`,
  ]);
}

export async function read(database: Database, name: string): Promise<number | undefined> {
  const rows = await database.query<{ n: number }>(
    sql`SELECT n FROM counters WHERE name = ${name}`,
  );
  return rows[0]?.n;
}
