import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type RqliteCluster, runRqlited } from "./rqlited.ts";

type Row = Readonly<Record<string, unknown>>;

/** Whether the tested engine is rqlite. */
export const isOnRqlite = process.env["GATEPOST_TEST_ENGINE"] === "rqlite";
/** How long it takes until other processes take over the work of a killed one. */
export const TAKEOVER_MS = isOnRqlite ? 10_000 : 5_000;

/** The clusters by the path of the database file that each replaces. */
const clusters = new Map<string, Promise<RqliteCluster>>();

/**
 * The value of GATEPOST_DATABASE for the database at a path. With GATEPOST_TEST_ENGINE=rqlite it is
 * the address of a node of its own, which is started at the first call; else it is the path.
 */
export async function locateDatabase(path: string): Promise<string> {
  if (!isOnRqlite || path.startsWith("rqlite")) return path;
  const started = clusters.get(path) ?? runRqlited();
  clusters.set(path, started);
  return (await started).address;
}

/** Ends the node that replaces the file at a path, if there is one. */
export async function releaseDatabase(path: string): Promise<void> {
  const started = clusters.get(path);
  clusters.delete(path);
  await (await started)?.stop();
}

/** The rows of a query on a server's database, given by its data folder, on either engine. */
export async function queryDatabase(
  folder: string,
  sql: string,
  ...params: readonly (string | number)[]
): Promise<readonly Row[]> {
  const path = join(folder, "gatepost.db");
  const cluster = await clusters.get(path);
  if (cluster === undefined) return queryFile(path, sql, ...params);
  const node = await cluster.leader();
  const response = await node.call("/db/query?associative&level=strong", [[sql, ...params]]);
  const { results: [{ rows = [], error }] } = JSON.parse(response);
  if (error !== undefined) throw new Error(error);
  return rows;
}

/** The rows of a query on a file that a server may have open. */
export function queryFile(
  path: string,
  sql: string,
  ...params: readonly (string | number)[]
): readonly Row[] {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 1000 });
  try {
    return database.prepare(sql).all(...params);
  } finally {
    database.close();
  }
}
