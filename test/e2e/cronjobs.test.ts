import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startGatepost } from "../helpers/gatepost.ts";
import { bearer } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

/** A module whose cronjob writes a line into the file at each run: its process and the time. */
function writesTo(file: string): string {
  return `
import { appendFileSync } from "node:fs";
export const tick = {
  name: "tick",
  every: "1s",
  run({ dispatch }) {
    appendFileSync(${JSON.stringify(file)}, process.pid + " " + Date.now() + "\\n");
    dispatch("ticked", { pid: process.pid });
  },
};
`;
}

async function setUp() {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-cronjobs-"));
  const file = join(folder, "runs.txt");
  await writeFile(file, "");
  await writeFile(join(folder, "jobs.mjs"), writesTo(file));
  return {
    folder,
    env: { GATEPOST_ENDPOINTS: folder, GATEPOST_BASE_URL: "http://127.0.0.1:9999" },
    async runs() {
      const lines = (await readFile(file, "utf8")).trim().split("\n");
      return lines.filter((line) => line !== "").map((line) => line.split(" ").map(Number));
    },
  };
}

test("a cronjob of three processes on one database runs once per due time", async () => {
  const { folder, env, runs } = await setUp();
  const first = await startGatepost({ env });
  const others = await Promise.all(
    [2, 3].map(() => startGatepost({ env, folder: first.server.folder })),
  );
  await until(async () => (await runs()).length >= 4);
  const response = await first.api.get("/backend/event?name=ticked", bearer(first.adminToken));
  const { items } = readObject(response);
  const ran = await runs();
  await Promise.all(others.map((other) => other.stop()));
  await first.stop();
  await rm(folder, { recursive: true });
  const gaps = ran.slice(1).map(([, atMs = 0], index) => atMs - (ran[index]?.[1] ?? 0));
  // Due times are a second apart; each process looks once a second.
  for (const gap of gaps) assert.ok(gap > 0 && gap < 2500, gaps.join(" "));
  const spanMs = gaps.reduce((sum, gap) => sum + gap, 0);
  assert.ok(ran.length <= spanMs / 1000 + 2, `${ran.length} runs in ${spanMs} ms`);
  assert.ok(Array.isArray(items) && Math.abs(items.length - ran.length) <= 1, response.text);
});

test("with the cron feature off no cronjob runs or is listed", async () => {
  const { folder, env, runs } = await setUp();
  const gatepost = await startGatepost({ env: { ...env, GATEPOST_CRON: "off" } });
  await sleep(2200);
  const response = await gatepost.api.get("/backend/cronjob", bearer(gatepost.adminToken));
  const run = await gatepost.api.send("POST", "/backend/cronjob/tick/run", {
    headers: bearer(gatepost.adminToken),
  });
  const { items } = readObject(
    await gatepost.api.get("/backend/event?name=ticked", bearer(gatepost.adminToken)),
  );
  const ran = await runs();
  await gatepost.stop();
  await rm(folder, { recursive: true });
  assert.ok(!response.text.includes("tick") && !response.text.includes("gatepost.distribute"));
  assert.deepEqual([run.status, ran, items], [404, [], []]);
});
