import assert from "node:assert/strict";
import { test } from "node:test";
import { createJobs } from "../../src/app/jobs.ts";
import { sql } from "../../src/database/sql.ts";
import { registerCronjob } from "../../src/store/cronjobs.ts";
import { openDatabase } from "../helpers/database.ts";

const HOUR_MS = 3_600_000;

test("time without a server does not count as failing, if the clock is right", async (t) => {
  const database = openDatabase(t);
  const stoppedMs = Date.now() - 5 * HOUR_MS;
  await database.write([
    registerCronjob("gatepost.purge", stoppedMs),
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
        failingSinceMs)
      VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', 0, ${stoppedMs})`,
  ]);
  const idle = { refresh() {}, flush() {}, look: () => Promise.resolve() };
  const ignore = () => {};
  for (const isRight of [false, true]) {
    const started = Promise.withResolvers<void>();
    const start = () => {
      started.resolve();
      return Promise.resolve({ ok: false }); // so that nothing more begins
    };
    const worker = { start, stop: () => Promise.resolve() };
    const jobs = createJobs({
      config: { cron: true, retentionMs: HOUR_MS }, name: "c1", database, worker,
      keys: idle, revocations: idle, rates: idle, failures: idle, uses: idle, figures: idle,
      writes: idle, log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      now: Date.now, cautiousNow: Date.now, isClockRight: () => isRight,
    } as unknown as Parameters<typeof createJobs>[0]);
    jobs.start([]);
    await started.promise;
    await jobs.stop(1000);
    const [row] = await database.query<{ atMs: number }>(
      sql`SELECT failingSinceMs AS atMs FROM subscriptions`);
    assert.equal(Number(row?.atMs) - stoppedMs > HOUR_MS, isRight);
  }
});
