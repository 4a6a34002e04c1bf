import type { Log } from "../base/log.ts";
import { type Database, type Refusal, UnavailableError } from "./database.ts";
import { sql } from "./sql.ts";

/** Watches whether a database accepts writes, also while nobody writes. */
export type WriteWatch = ReturnType<typeof createWriteWatch>;

const REFUSED_AFTER_MS = 2_000;
const IDLE_MS = 10_000;
/** Half of what the probe writes to a disk that was full: a small write alone proves no space. */
const ROOM_BYTES = 32_768;

/**
 * Makes the watch. It logs once when writes are refused, and once when they are accepted again.
 *
 * @param elapsedMs a monotonic clock, in milliseconds
 */
export function createWriteWatch(log: Log, elapsedMs: () => number) {
  let lastMs = elapsedMs();
  let refused: { readonly why: Refusal; readonly sinceMs: number } | undefined;
  let logged: "ok" | Refusal = "ok";

  /** `ok`, or why writes are refused: a lasting reason at once, any other after 2 s. */
  function state(): "ok" | Refusal {
    if (refused === undefined) return "ok";
    const isSure = refused.why === "replaced" || refused.why === "damaged";
    return isSure || elapsedMs() - refused.sinceMs > REFUSED_AFTER_MS ? refused.why : "ok";
  }

  return {
    state,
    /** Notes how a commit went: why it was refused, or undefined if it was not. */
    observe(why: Refusal | undefined): void {
      lastMs = elapsedMs();
      if (refused?.why === "damaged") return; // damage stays, also if other writes succeed
      if (why === undefined && refused?.why === "full") return; // a small write proves little
      refused = why && { why, sinceMs: refused?.sinceMs ?? lastMs };
    },
    /** Makes a small write if the last commit was refused, or if there was none for 10 s. */
    async look(database: Database): Promise<void> {
      let error: UnavailableError | undefined;
      if (refused !== undefined || elapsedMs() - lastMs >= IDLE_MS) {
        // The value differs each time: SQLite would write nothing for the same one.
        const wasFull = refused?.why === "full";
        const value = sql`${String(elapsedMs())} || hex(zeroblob(${wasFull ? ROOM_BYTES : 0}))`;
        const probe = sql`INSERT INTO settings (name, value) VALUES ('write_probe', ${value})
          ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
        await database.write([probe]).then(() => {
          if (wasFull && refused?.why === "full") refused = undefined;
        }, (cause: unknown) => {
          if (!(cause instanceof UnavailableError)) throw cause; // UnavailableErrors are observed
          error = cause;
        });
      }
      if (state() === logged) return;
      logged = state();
      if (logged === "ok") log.info("writes are accepted again");
      else log.error("writes are refused", { reason: logged, error });
    },
  };
}
