import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { createCertificate } from "./certificate.ts";
import type { RqliteNode } from "./rqlite_node.ts";
import { runRqlited, startRqlited } from "./rqlited.ts";

const execute = (node: RqliteNode, ...statements: string[]) =>
  node.call("/db/execute?redirect&timeout=2s", statements);

const readAll = async (node: RqliteNode) => {
  const text = await node.call("/db/query?level=none", ["SELECT n FROM things ORDER BY n"]);
  const { results: [{ values }] } = JSON.parse(text);
  return values;
};

/** Waits until a node has these rows. */
async function waitForRows(node: RqliteNode, rows: readonly number[][]): Promise<void> {
  for (const endMs = Date.now() + 5000; Date.now() < endMs;) {
    const found = await readAll(node).catch(() => undefined);
    if (JSON.stringify(found) === JSON.stringify(rows)) return;
  }
  assert.deepEqual(await readAll(node), rows);
}

test("a node enforces foreign keys, and is removed with its data when stopped", async (t) => {
  const { nodes: [node], stop } = await runRqlited();
  assert.ok(node !== undefined);
  t.after(stop);
  await execute(node, "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER REFERENCES a)");
  assert.match(await execute(node, "INSERT INTO a VALUES (1, 2)"), /FOREIGN KEY constraint failed/);
  await stop();
  assert.throws(() => process.kill(node.pid, 0));
  assert.equal(existsSync(node.folder), false);
});

test("a cluster works on without its leader, which catches up, even without data", async (t) => {
  const cluster = await startRqlited(t, { nodes: 3 });
  const first = await cluster.leader();
  await execute(first, "CREATE TABLE things (n INTEGER)", "INSERT INTO things VALUES (1)");
  await first.kill();
  const second = await cluster.leader();
  assert.notEqual(second, first);
  await execute(second, "INSERT INTO things VALUES (2)");
  await first.restart();
  await waitForRows(first, [[1], [2]]);
  await first.kill();
  await rm(first.folder, { recursive: true });
  await first.restart();
  await waitForRows(first, [[1], [2]]);
});

test("a cluster refuses requests without the password", async (t) => {
  const auth = { username: "gatepost", password: "correct horse" };
  const cluster = await startRqlited(t, { nodes: 3, auth });
  const { url } = await cluster.leader();
  assert.equal((await fetch(`${url}/db/query?q=SELECT%201`)).status, 401);
});

test("a node speaks TLS with the certificate that it is given", async (t) => {
  const { nodes: [node], address } = await startRqlited(t, { tls: createCertificate() });
  assert.match(address, /^rqlites:\/\/127\.0\.0\.1:\d+$/);
  assert.match(await node?.call("/db/query", ["SELECT 1"]) ?? "", /values/);
  await assert.rejects(fetch(node?.url ?? ""), TypeError); // this client does not trust it
});
