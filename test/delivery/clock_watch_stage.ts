import type { TestContext } from "node:test";
import { createSteadyClock } from "../../src/base/steady_clock.ts";
import { createClockWatch } from "../../src/delivery/clock_watch.ts";
import type { Distributor } from "../../src/delivery/distributor.ts";
import type { Database } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { openDatabase } from "../helpers/database.ts";
import { SILENT } from "../helpers/silent_log.ts";
import { turn } from "../helpers/turn.ts";

export const START_MS = Date.UTC(2026, 0, 1);
export const HOUR_MS = 3_600_000;

/** Processes on one machine: they share its system clock, and each has its own watch. */
export async function openMachine(t: TestContext) {
  const database = openDatabase(t);
  const machine = { wallMs: START_MS, elapsedMs: 0, warnings: 0, database, isRight: true };
  const followed: number[] = []; // by how much future leases are shifted
  let state: "ok" | "clock_skewed" = "ok";
  const clockCheck = {
    async look() {
      await turn(); // the nodes are asked
      state = machine.isRight ? "ok" : "clock_skewed";
    },
    state: () => state,
  };
  const log = { ...SILENT, warn: () => void machine.warnings++ };
  return {
    machine,
    followed,
    async start() {
      const clock = createSteadyClock(() => machine.wallMs, () => machine.elapsedMs);
      const distributor: Pick<Distributor, "followClock"> = {
        followClock(stepMs, shift) {
          followed.push(stepMs);
          return shift();
        },
      };
      const services = { database: machine.database, log };
      const watch = createClockWatch(services, clock, clockCheck, () => distributor);
      const wasRight = watch.isRight();
      await watch.check();
      return { clock, check: watch.check, isRight: watch.isRight, wasRight };
    },
  };
}

interface Row {
  readonly id: string;
  readonly dueMs: number;
  readonly attempt?: number;
  readonly claim?: string;
}

/** One subscription that has failed since the start, with pending deliveries. */
export async function addDeliveries(database: Database, rows: readonly Row[]) {
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs,
         dueAtMs, failingSinceMs)
       VALUES ('s1', 'u1', 'login', 'a', 'https://a.example/', 'active', '', ${START_MS},
        ${Math.min(...rows.map(({ dueMs }) => dueMs))}, ${START_MS})`,
    ...rows.map(({ id, dueMs, attempt = 0, claim }) =>
      sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, attempt, claim)
         VALUES (${id}, 'e1', 1, 'pending', ${dueMs}, ${attempt}, ${claim ?? null})`
    ),
  ]);
}

/** One delivery, "d1", whose resend is due 10 seconds after the start. */
export function addResend({ database }: { readonly database: Database }) {
  return addDeliveries(database, [{ id: "d1", dueMs: START_MS + 10_000, attempt: 1 }]);
}

/** When each delivery is due, in milliseconds from `nowMs` on. */
export async function dueIn(database: Database, nowMs: number): Promise<Record<string, number>> {
  const rows = await database.query<{ id: string; dueMs: number }>(
    sql`SELECT id, dueAtMs AS dueMs FROM deliveries`,
  );
  return Object.fromEntries(rows.map(({ id, dueMs }) => [id, dueMs - nowMs]));
}
