/**
 * Measures how long the thread of requests stalls while an operator reads a large database: a
 * million deliveries of 64 subscriptions, half a million audit entries, 48 hours of minutes.
 *
 *   npm run build && node_modules/.bin/node scripts/bench/stalls.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { NO_FIGURES } from "../../src/event/figures.ts";
import { type BenchGatepost, startGatepost } from "./gatepost.ts";

const SUBSCRIPTIONS = 64;
const EVENTS = 15_625; // of 64 deliveries each: a million
const AUDIT_ENTRIES = 500_000;
const TIMES = 5;

const numbers = (count: string) =>
  `WITH RECURSIVE numbers(n) AS
    (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${count})`;
// The times in ids, as base/id writes them.
const idTime = (times: readonly number[]) => times.map((ms) => ms.toString(36).padStart(9, "0"));

function seed(path: string, nowMs: number): void {
  const database = new DatabaseSync(path, { timeout: 5000 });
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN IMMEDIATE");
  const eventTimes = Array.from({ length: EVENTS }, (_, n) => nowMs - (EVENTS - n) * 1_000);
  const auditTimes = Array.from({ length: AUDIT_ENTRIES }, (_, n) => nowMs - (AUDIT_ENTRIES - n));
  const timeOf = (name: string, ids: readonly string[]) =>
    database.function(name, { deterministic: true }, (n) => ids[Number(n)] ?? "");
  timeOf("event_time", idTime(eventTimes));
  timeOf("audit_time", idTime(auditTimes));
  database.exec(`
    ${numbers(`${SUBSCRIPTIONS}`)} INSERT INTO subscriptions
      (id, principal, app, event, endpoint, status, secret, createdAtMs, failingSinceMs)
      SELECT printf('s%s%015d', event_time(0), n), 'u1', 'login', 'bench',
        'http://127.0.0.1:9/' || n, 'paused', 'whsec_', ${nowMs}, iif(n % 2, ${nowMs} - n, NULL)
      FROM numbers;
    ${numbers(`${EVENTS}`)} INSERT INTO events
      (id, name, scopes, status, lastSubscription, createdAtMs, data)
      SELECT printf('e%s%015d', event_time(n), n), 'bench', '[]', 'distributed', 1, ${nowMs}, '{}'
      FROM numbers;
    INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs, finishedAtMs)
      SELECT 'd' || substr(e.id, 2) || s.seq, e.id, s.seq, iif(s.seq % 8, 'delivered', 'failed'), 1,
        ${nowMs}, ${nowMs} FROM events e CROSS JOIN subscriptions s;
    INSERT INTO attempts (delivery, startedAtMs, attempt, status, durationMs)
      SELECT id, ${nowMs}, 1, 204, 12 FROM deliveries;
    ${numbers(`${AUDIT_ENTRIES}`)} INSERT INTO audit (id, actor, action, target, address)
      SELECT printf('t%s%015d', audit_time(n), n), 'u' || n % 1000, 'user.login', 'u1', '192.0.2.1'
      FROM numbers;
    ${numbers("2880")} INSERT INTO figures (stepMs, key, atMs, counts)
      SELECT 60000, k.id, ${nowMs - nowMs % 60_000} - n * 60000, '${JSON.stringify(NO_FIGURES)}'
      FROM numbers CROSS JOIN (SELECT id FROM subscriptions UNION ALL SELECT 'deliveries') k;
    ${numbers("9600")} INSERT INTO figures (stepMs, key, atMs, counts)
      SELECT 3600000, k.id, ${nowMs - nowMs % 3_600_000} - n * 3600000,
        '${JSON.stringify(NO_FIGURES)}'
      FROM numbers CROSS JOIN (SELECT id FROM subscriptions UNION ALL SELECT 'deliveries') k;
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
}

/** The longest stall since the last reading, in milliseconds. */
async function readStall({ url, admin }: BenchGatepost): Promise<number> {
  await sleep(100); // the histogram is filled every 20 ms
  const headers = { authorization: `Bearer ${admin.token}` };
  const metrics = await (await fetch(`${url}/system/metrics`, { headers })).text();
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(metrics)?.[1]);
}

const folder = mkdtempSync(join(tmpdir(), "gatepost-stalls-"));
try {
  await (await startGatepost(folder)).stop();
  seed(join(folder, "gatepost.db"), Date.now());
  const gatepost = await startGatepost(folder);
  const { url, admin } = gatepost;
  const headers = { authorization: `Bearer ${admin.token}` };
  const list = await (await fetch(`${url}/backend/subscription?sort=worst`, { headers })).json();
  const { items: [{ id }] }: { items: [{ id: string }] } = list;
  const since = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  const reads: Readonly<Record<string, string>> = {
    "nothing": "/system/health",
    "series, 16 h of minutes": `/backend/series?from=${since(16)}`,
    "series, 41 days of hours": `/backend/series?step=hour&from=${since(1_000)}`,
    "health of a subscription": `/backend/subscription/${id}/health`,
    "worst subscriptions": "/backend/subscription?sort=worst&limit=200",
    "problems": "/backend/problem",
    "audit, an action and an actor that do not meet":
      "/backend/audit?actor=u7&action=nothing&limit=200",
    "failed deliveries": "/backend/delivery?status=failed&limit=200",
    "deliveries of a subscription": `/backend/delivery?subscription=${id}&limit=200`,
  };
  await sleep(2_000);
  await readStall(gatepost);
  await readStall(gatepost);
  for (const [what, path] of Object.entries(reads)) {
    const [stalls, took]: [number[], number[]] = [[], []];
    for (let time = 0; time < TIMES; time++) {
      const startedMs = performance.now();
      const response = await fetch(url + path, { headers });
      const { length } = await response.text();
      if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
      took.push(performance.now() - startedMs);
      stalls.push(await readStall(gatepost));
      if (time === 0) console.log(`${what}: ${length} characters`);
    }
    const round = (values: readonly number[]) => values.map((ms) => ms.toFixed(1)).join(" ");
    console.log(`  took ${round(took)} ms; longest stall ${round(stalls)} ms`);
  }
  for (let watchers = 0; watchers < 64; watchers++) {
    await fetch(`${url}/backend/stream`, { headers });
  }
  await readStall(gatepost);
  await sleep(10_000);
  console.log(`64 streams for 10 s: longest stall ${(await readStall(gatepost)).toFixed(1)} ms`);
  const startedMs = performance.now();
  const backup = await fetch(`${url}/backend/backup`, { method: "POST", headers });
  const text = await backup.text();
  const stall = await readStall(gatepost);
  const took = performance.now() - startedMs;
  console.log(`backup ${text}: ${took.toFixed(0)} ms; longest stall ${stall.toFixed(1)} ms`);
  await gatepost.stop();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
