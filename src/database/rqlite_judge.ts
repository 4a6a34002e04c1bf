import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { text } from "node:stream/consumers";
import { messageOf } from "../base/message_of.ts";
import { type DatabaseState, judgeContent, SELECT_SCHEMA } from "./judge.ts";
import { migrationsFrom } from "./migrations.ts";
import { describeResponse, type RqliteClient } from "./rqlite_client.ts";
import { RQLITE_LEDGER } from "./rqlite_ledger.ts";
import { RQLITE_PROCESSES } from "./rqlite_presence.ts";
import { SEAL_CHECK } from "./settings.ts";

/** How long a start waits: for a leader, for one node, and for the migration of a large cluster. */
const [START_MS, NODE_MS, MIGRATION_MS] = [5_000, 2_000, 120_000];

/** Judges what a cluster holds, and how its nodes were started; changes nothing. */
export async function judgeCluster(
  client: RqliteClient,
  findMore: (schema: DatabaseSync) => string | undefined = () => undefined,
): Promise<DatabaseState> {
  try {
    return await readCluster(client, (schema, bytes, warnings) => ({
      ...judgeContent(schema, bytes, findMore),
      ...warnings.length > 0 && { warnings },
    }));
  } catch (error) {
    return { kind: "unusable", reason: `${messageOf(error)}.` };
  }
}

/** Checks how the nodes were started (throws), then reads a copy of the schema and the size. */
export async function readCluster<Result>(
  client: RqliteClient,
  read: (schema: DatabaseSync, bytes: number, warnings: readonly string[]) => Result,
): Promise<Result> {
  const check = (node: string) => checkNode(client, node);
  const [members, ...listed] =
    await Promise.all([findMembers(client), ...client.nodes.map(check)]);
  const unlisted = new Set(members).difference(new Set(client.nodes));
  const checked = [...listed, ...await Promise.all(unlisted.values().map(check))];
  using schema = new DatabaseSync(":memory:");
  return read(schema, await copySchema(client, schema), checked.flatMap((reason) => reason ?? []));
}

/**
 * Returns the cluster's nodes that the listed nodes know. Throws if two listed nodes know no node
 * in common: a client that loses one of their clusters would continue in the other.
 */
async function findMembers({ nodes, request }: RqliteClient): Promise<string[]> {
  const asked = nodes.map(async (node) => {
    const response = await request(node, "GET", "/nodes?nonvoters&timeout=1s", NODE_MS);
    const known: Record<string, { addr: string; api_addr?: string }> =
      JSON.parse(await text(response));
    const members = Object.values(known);
    const hosts = members.flatMap(({ api_addr: url }) => url ? new URL(url).host : []);
    return { node, hosts, addresses: new Set(members.map(({ addr }) => addr)) };
  });
  const answers = await Promise.all(asked.map((each) => each.catch(() => []))); // checkNode tells
  const [first, ...others] = answers.flat().filter(({ addresses }) => addresses.size > 0);
  if (first === undefined) return [];
  const stranger = others.find(({ addresses }) => addresses.isDisjointFrom(first.addresses));
  if (stranger) throw new Error(`${first.node} and ${stranger.node} are of different clusters`);
  return [first, ...others].flatMap(({ hosts }) => hosts);
}

/** Throws if a node is set up wrongly. Returns why a node cannot be used now, or undefined. */
async function checkNode({ request }: RqliteClient, node: string): Promise<string | undefined> {
  const get = (path: string) => request(node, "GET", path, NODE_MS);
  const [response, execute, ready] = await Promise.all([
    get("/db/query?level=none&q=PRAGMA+foreign_keys").catch(messageOf),
    // This wants a POST. It says so only to those who may write, and 401 to others.
    get("/db/execute").catch(() => undefined),
    get("/readyz").catch(() => undefined),
  ]);
  execute?.resume();
  ready?.resume();
  if (typeof response === "string") return `${node} does not answer: ${response.trim()}`;
  const found = await text(response);
  if (response.statusCode === 401 || execute?.statusCode === 401) {
    throw new Error(`${node} refuses GATEPOST_DATABASE_CREDENTIALS, or gives them too few rights`);
  }
  const { statusCode: status = 0, headers: { "x-rqlite-version": named } } = response;
  // A proxy, such as a service mesh, answers for a node that is down.
  if (named === undefined && status >= 500) {
    return `${node} does not answer: ${describeResponse(status, found)}`;
  }
  // An rqlited that was built without its version says 8 alone.
  const version = String(named);
  const [, major, minor = 99] = /^v?(\d+)(?:\.(\d+))?/.exec(version) ?? [];
  if (!(Number(major) * 100 + Number(minor) >= 826)) {
    throw new Error(`${node} is not rqlite 8.26 or newer, or wants rqlites://`);
  }
  const { results: [result] = [], error } = status === 200 ? JSON.parse(found) : {};
  if (result && result.values[0][0] !== 1) {
    throw new Error(`${node} ignores foreign keys: start every rqlited with -fk`);
  }
  if (error !== undefined) return `${node} has no database: ${error}`;
  return ready?.statusCode === 503
    ? `${node} follows no leader: it was removed from the cluster, or is cut off from it`
    : undefined;
}

/** Copies what is judged: the schema and a few rows. Returns the database's size in bytes. */
async function copySchema(client: RqliteClient, copy: DatabaseSync): Promise<number> {
  const results = await client.ask(
    () => "/db/query?level=strong&redirect", // through the log: what the cluster agrees on
    [
      `SELECT application_id, user_version, page_count * page_size
       FROM pragma_application_id, pragma_user_version, pragma_page_count, pragma_page_size`,
      SELECT_SCHEMA,
      `SELECT value FROM settings WHERE name = '${SEAL_CHECK}'`,
      "SELECT * FROM keys",
    ].map((text) => JSON.stringify(text)),
    performance.now() + START_MS,
    NODE_MS,
  );
  const [[numbers = []] = [], texts = [], checks = [], keys = []] =
    results.map(({ values }) => values);
  const [owner, version, bytes] = numbers.map(Number);
  copy.exec(`PRAGMA application_id = ${owner}; PRAGMA user_version = ${version}`);
  for (const [text] of texts) copy.exec(String(text));
  for (const [check] of checks) {
    copy.prepare("INSERT INTO settings (name, value) VALUES (?, ?)").run(SEAL_CHECK, String(check));
  }
  for (const key of keys as SQLInputValue[][]) {
    copy.prepare(`INSERT INTO keys VALUES (${key.map(() => "?")})`).run(...key);
  }
  return bytes ?? 0;
}

/**
 * Migrates a cluster from a schema version (0: empty) to the newest one, in one transaction, which
 * fails if another process was faster. Returns why it failed.
 */
export async function migrateCluster(
  client: RqliteClient,
  version: number,
): Promise<string | undefined> {
  // The NULL fails if the version has changed. On an empty cluster, an existing table fails.
  const guard = `INSERT INTO settings (name, value) SELECT 'migration', NULL
    WHERE (SELECT user_version FROM pragma_user_version) <> ${version}`;
  const statements = [
    ...version === 0 ? [] : [guard],
    ...migrationsFrom(version),
    RQLITE_LEDGER.sql,
    RQLITE_PROCESSES.sql,
  ];
  try {
    const untilMs = performance.now() + MIGRATION_MS;
    const path = "/db/execute?transaction&redirect";
    const texts = statements.map((text) => JSON.stringify(text));
    const results = await client.ask(() => path, texts, untilMs, MIGRATION_MS);
    return results.at(-1)?.error;
  } catch (error) {
    return messageOf(error);
  }
}
