import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openCommandLine, readItems } from "../helpers/command_line.ts";
import { startGatepost } from "../helpers/gatepost.ts";
import { until } from "../helpers/until.ts";

const JOBS = `
export const tidy = { name: "tidy", every: "12h", run({ dispatch }) { dispatch("tidied", 1); } };
`;

test("cronjob run makes a job due, and a running server runs it once", async (t) => {
  const endpoints = mkdtempSync(join(tmpdir(), "gatepost-jobs-"));
  t.after(() => rmSync(endpoints, { recursive: true }));
  writeFileSync(join(endpoints, "jobs.js"), JOBS);
  const gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: endpoints } });
  t.after(() => gatepost.stop());
  const cli = await openCommandLine(t, { folder: gatepost.server.folder });
  const events = async () =>
    readItems(await cli.run("event", "list", "--name", "tidied", "--json"));

  const ran = await cli.run("cronjob", "run", "tidy");
  await until(async () => (await events()).length > 0);
  await sleep(1_500); // until the server has looked again
  const [purge, job] = readItems(await cli.run("cronjob", "list", "--json"));
  const unknown = await cli.run("cronjob", "run", "gatepost.watch");
  const audit = readItems(await cli.run("audit", "list", "--action", "cronjob.run", "--json"));

  assert.equal(ran.code, 0, ran.stderr);
  assert.equal((await events()).length, 1);
  assert.equal(purge?.["name"], "gatepost.purge"); // all servers share it, like the jobs of modules
  assert.deepEqual([job?.["name"], job?.["every"], job?.["error"]], ["tidy", null, null]);
  const untilNextMs = Date.parse(String(job?.["next_run"])) - Date.now();
  assert.ok(untilNextMs > 11.9 * 3_600_000 && untilNextMs <= 12 * 3_600_000);
  assert.equal(unknown.code, 1);
  assert.deepEqual(audit.map(({ actor, target }) => [actor, target]), [["cli", "tidy"]]);
});
