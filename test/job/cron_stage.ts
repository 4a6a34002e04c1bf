import type { TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createCron, type IntervalJob } from "../../src/job/cron.ts";
import { createSharedCron } from "../../src/job/shared_cron.ts";
import type { Database } from "../../src/database/database.ts";
import { openDatabase } from "../helpers/database.ts";
import { SILENT } from "../helpers/silent_log.ts";

export const START_MS = Date.UTC(2040, 0, 1);
export const HOUR_MS = 3_600_000;

/** A process that knows the job "report". */
interface Worker {
  readonly shared: ReturnType<typeof createSharedCron>;
  /** Does what the timer does: runs the job if it is due, and awaits the run. */
  look(): Promise<void>;
  /** Aborts the run, and waits until it has ended. */
  stop(): Promise<void>;
}

/** Processes that share a database, and the clock that the test sets. */
export interface Office {
  readonly database: Database;
  nowMs: number;
  elapsedMs: number;
  isClockRight: boolean;
  /** Starts a process, and awaits its first look. */
  open(
    run: IntervalJob["run"],
    everyMs?: number,
    more?: { readonly aheadMs?: number; readonly database?: Database },
  ): Promise<Worker>;
}

/** Opens a new database, whose office has no process yet. */
export async function openOffice(t: TestContext): Promise<Office> {
  const database = openDatabase(t);
  let processes = 0;
  const office: Office = {
    database,
    nowMs: START_MS,
    elapsedMs: 0,
    isClockRight: true,
    async open(run, everyMs = HOUR_MS, { aheadMs = 0, ...more } = {}) {
      const now = () => office.nowMs + aheadMs;
      const cron = createCron({ log: SILENT, now, elapsedMs: now });
      t.after(() => cron.stop(0));
      let runIfDue: IntervalJob["run"] = () => {};
      let idle = Promise.resolve();
      // The real registry, but the test does what its timers would do.
      const work = (name: string, each: IntervalJob["run"]) => {
        let end = () => {};
        const before = idle;
        idle = new Promise((resolve) => {
          end = resolve;
        });
        const outcome = cron.run(name, async (signal) => {
          try {
            await each(signal);
          } finally {
            end();
          }
        });
        if (outcome !== "started") idle = before;
        return outcome;
      };
      const shared = createSharedCron({
        database,
        isClockRight: () => office.isClockRight,
        ...more,
        claim: `c${++processes}`,
        log: SILENT,
        now,
        elapsedMs: () => office.elapsedMs,
        cron: {
          ...cron,
          start(job) {
            runIfDue = job.run;
            cron.start({ ...job, everyMs: 1000 * HOUR_MS });
          },
          run: (name, each = runIfDue) => work(name, each),
        },
      });
      shared.start({ name: "report", everyMs, run });
      const untilIdle = async () => {
        await idle;
        await nextTurn(); // the registry has noticed the end, too
      };
      await untilIdle();
      return {
        shared,
        async look() {
          work("report", runIfDue);
          await untilIdle();
        },
        stop: () => cron.stop(1000),
      };
    },
  };
  return office;
}

/** A run that ends at once. */
export function createCounter() {
  const counter = { runs: 0, run: () => void counter.runs++ };
  return counter;
}

/** A run that lasts until `end` is called, whatever its signals say. */
export function createLongRun() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  return {
    signals,
    end: resolve,
    get runs() {
      return signals.length;
    },
    run(signal: AbortSignal) {
      signals.push(signal);
      return promise;
    },
  };
}
