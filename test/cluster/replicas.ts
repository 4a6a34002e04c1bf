import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { RqliteNode } from "../helpers/rqlite_node.ts";

/**
 * Returns the tables that are not the same in all nodes' own copies. Waits for nodes that have not
 * caught up: after failures a leader pauses for 10 s before it sends to a node again, and once more
 * if the first entry that it sends is too new (https://github.com/hashicorp/raft, backoff in
 * replication.go). Nobody may write meanwhile.
 */
export async function compareReplicas(
  nodes: readonly RqliteNode[],
  patienceMs = 45_000,
): Promise<readonly string[]> {
  for (const endMs = performance.now() + patienceMs;;) {
    const [first, ...others] = await Promise.all(nodes.map(hashTables));
    const names = new Set([first, ...others].flatMap((tables) => [...tables?.keys() ?? []]));
    const differing = [...names].filter((name) =>
      others.some((other) => other.get(name) !== first?.get(name))
    );
    if (differing.length === 0 || performance.now() > endMs) return differing;
    await sleep(100);
  }
}

async function hashTables(node: RqliteNode): Promise<ReadonlyMap<string, string>> {
  const read = async (sql: string): Promise<readonly (readonly unknown[])[]> => {
    const text = await node.call("/db/query?level=none", [sql]);
    const { results: [{ values = [], error }] } = JSON.parse(text);
    if (error !== undefined) throw new Error(error);
    return values;
  };
  const tables = new Map<string, string>();
  const named = await read(`SELECT s.name, group_concat('"' || c.name || '"')
    FROM sqlite_schema s, pragma_table_info(s.name) c WHERE s.type = 'table' GROUP BY s.name`);
  const schema: readonly unknown[] = ["sqlite_schema", "name, sql"];
  for (const [name, columns] of [schema, ...named]) {
    const rows = await read(`SELECT ${columns} FROM "${name}" ORDER BY ${columns}`);
    tables.set(String(name), hash("sha256", JSON.stringify(rows)));
  }
  return tables;
}
