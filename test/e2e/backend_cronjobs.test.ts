import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Item, startBackendStage } from "../helpers/backend_stage.ts";
import { startGatepost } from "../helpers/gatepost.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { expectStatus, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const endpoints = await mkdtemp(join(tmpdir(), "gatepost-endpoints-"));
/** Gets a line at each run of the endless job. */
const runs = join(endpoints, "runs.txt");
// The first three are run by hand: one ends at once, one waits, one fails. The last one does not
// end before the service does.
await writeFile(join(endpoints, "jobs.mjs"), `
import { appendFileSync } from "node:fs";
export const quick = { name: "quick", every: "1d", run() {} };
export const slow = {
  name: "slow",
  every: "1d",
  run: ({ signal }) => new Promise((resolve) => {
    const timer = setTimeout(resolve, 2000);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
  }),
};
export const failing = {
  name: "failing",
  every: "1d",
  run() { throw new Error("no luck today"); },
};
export const endless = {
  name: "endless",
  every: "1s",
  run({ signal }) {
    appendFileSync(${JSON.stringify(runs)}, "run\\n");
    return new Promise((resolve) => signal.addEventListener("abort", resolve));
  },
};
`);
const env = { GATEPOST_ENDPOINTS: endpoints, GATEPOST_BASE_URL: "http://127.0.0.1:9999" };
const { gatepost, send, list, isAudited } = await startBackendStage({ env });
/** Another process on the same database. */
const other = await startGatepost({ env, folder: gatepost.server.folder });
after(async () => {
  await other.stop();
  await gatepost.stop();
  await rm(endpoints, { recursive: true });
});

async function findJob(name: string): Promise<Item> {
  const job = (await list("/backend/cronjob")).find((each) => each["name"] === name);
  assert.ok(job, name);
  return job;
}

test("the list of cronjobs has the service's own and those of endpoint modules", async () => {
  const jobs = await list("/backend/cronjob");
  const names = jobs.map(({ name }) => name);
  for (const name of ["gatepost.distribute", "gatepost.purge", "quick", "slow", "failing"]) {
    assert.ok(names.includes(name), name);
  }
  const quick = await findJob("quick");
  assert.deepEqual({ ...quick, next_run: "" }, {
    name: "quick",
    every: "1d",
    status: "waiting",
    last_run: null,
    duration_ms: null,
    error: null,
    next_run: "",
  });
  const waitMs = Date.parse(String(quick["next_run"])) - Date.now();
  assert.ok(waitMs > 86_000_000 && waitMs <= 86_400_000, String(waitMs));
});

test("a job of the service shows when it last ran and for how long", async () => {
  const ran = async () => (await findJob("gatepost.distribute"))["last_run"] !== null;
  await until(ran, () => "a run", 3000);
  const { last_run: last, duration_ms: ms, error } = await findJob("gatepost.distribute");
  assert.ok(Math.abs(Date.now() - Date.parse(String(last))) < 60_000);
  assert.ok(typeof ms === "number" && ms >= 0);
  assert.equal(error, null);
});

test("a list of cronjobs has pages", async () => {
  const names: unknown[] = [];
  let path = "/backend/cronjob?limit=2";
  for (let next: unknown = ""; next !== null;) {
    const page = readObject(await send("GET", path));
    names.push(...(page["items"] as Item[]).map(({ name }) => name));
    next = page["next_cursor"];
    path = `/backend/cronjob?limit=2&cursor=${next}`;
  }
  assert.deepEqual(names, (await list("/backend/cronjob")).map(({ name }) => name));
});

test("running a cronjob by hand does not change its next run", async () => {
  const before = await findJob("quick");
  await expectStatus(202, send("POST", "/backend/cronjob/quick/run"));
  await until(async () => (await findJob("quick"))["duration_ms"] !== null, () => "the run", 2000);
  const job = await findJob("quick");
  assert.equal(job["next_run"], before["next_run"]);
  assert.ok(Math.abs(Date.now() - Date.parse(String(job["last_run"]))) < 60_000);
  assert.equal(await isAudited("quick", "cronjob.run"), true);
});

test("a job of the service can be run by hand", async () => {
  await expectStatus(202, send("POST", "/backend/cronjob/gatepost.purge/run"));
  const ran = async () => (await findJob("gatepost.purge"))["last_run"] !== null;
  await until(ran, () => "the run", 2000);
});

test("a cronjob that is running is not run again, not even by another process", async () => {
  await expectStatus(202, send("POST", "/backend/cronjob/slow/run"));
  assert.equal((await findJob("slow"))["status"], "running");
  await expectStatus(409, send("POST", "/backend/cronjob/slow/run"));
  const elsewhere = await other.api.postJson("/backend/cronjob/slow/run", undefined, {
    ...bearer(gatepost.adminToken),
  });
  assert.equal(elsewhere.status, 409, elsewhere.text);
});

test("while a cronjob runs longer than its period, no other process runs it", async () => {
  await until(async () => (await findJob("endless"))["status"] === "running");
  await sleep(3000);
  assert.equal(await readFile(runs, "utf8"), "run\n");
});

test("a cronjob that fails shows its error", async () => {
  await expectStatus(202, send("POST", "/backend/cronjob/failing/run"));
  await until(async () => (await findJob("failing"))["error"] !== null, () => "the error", 2000);
  assert.equal((await findJob("failing"))["error"], "no luck today");
});

test("running a cronjob that does not exist is 404", async () => {
  await expectStatus(404, send("POST", `/backend/cronjob/${newName("none")}/run`));
});
