import assert from "node:assert/strict";
import { test } from "node:test";
import { openRandom } from "../helpers/random.ts";
import { startRqlited } from "../helpers/rqlited.ts";
import { findBrokenPromises } from "./promises.ts";
import { compareReplicas } from "./replicas.ts";
import { ROWS } from "./rows.ts";
import { runTrial } from "./trial.ts";

test("a cluster whose leader is killed keeps every promise", async (t) => {
  const row = ROWS.find(({ name }) => name === "leader");
  assert.ok(row !== undefined);
  // How long writes are held up says little on a machine that runs other tests.
  const patient = { ...row, outageMs: 5_000 };
  const figures = await runTrial(patient, openRandom(t));
  assert.ok(figures.acknowledged > 0);
  assert.deepEqual(findBrokenPromises(patient, figures), [], figures.errors.join("\n"));
});

test("compareReplicas() names the tables in which replicas differ", async (t) => {
  const clusters = [await startRqlited(t), await startRqlited(t)];
  const nodes = clusters.flatMap(({ nodes }) => nodes);
  for (const [index, node] of nodes.entries()) {
    await node.call("/db/execute", [
      "CREATE TABLE same (n INTEGER)",
      "INSERT INTO same VALUES (1)",
      "CREATE TABLE other (n INTEGER, data BLOB)",
      `INSERT INTO other VALUES (1, x'0${index}')`,
    ]);
  }
  assert.deepEqual(await compareReplicas(nodes, 0), ["other"]);
  assert.deepEqual(await compareReplicas(nodes.slice(1)), []);
});
