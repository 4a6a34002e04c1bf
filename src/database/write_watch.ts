import type { Log } from "../base/log.ts";
import { type Database, type Refusal, UnavailableError } from "./database.ts";
import { sql } from "./sql.ts";

/** Whether a database takes writes, also while nobody writes. */
export type WriteWatch = ReturnType<typeof createWriteWatch>;

const REFUSED_AFTER_MS = 2_000;
const IDLE_MS = 10_000;
/** Half of what is written to a disk that was full: small writes find room where others do not. */
const ROOM_BYTES = 32_768;

/**
 * Makes the watch. It logs once when writes are refused, and once when they are taken again.
 *
 * @param elapsedMs milliseconds by a clock that is never set
 */
export function createWriteWatch(log: Log, elapsedMs: () => number) {
  let lastMs = elapsedMs();
  let refused: { readonly why: Refusal; readonly sinceMs: number } | undefined;
  let logged: "ok" | Refusal = "ok";

  /** `ok`, or why writes are refused: what does not pass by itself at once, else after 2 s. */
  function state(): "ok" | Refusal {
    if (refused === undefined) return "ok";
    const isSure = refused.why === "replaced" || refused.why === "damaged";
    return isSure || elapsedMs() - refused.sinceMs > REFUSED_AFTER_MS ? refused.why : "ok";
  }

  return {
    state,
    /** Takes in how a commit went: why it was refused, or undefined. */
    observe(why: Refusal | undefined): void {
      lastMs = elapsedMs();
      if (refused?.why === "damaged") return; // elsewhere in the file writes may go on
      if (why === undefined && refused?.why === "full") return; // it may have been a small one
      refused = why && { why, sinceMs: refused?.sinceMs ?? lastMs };
    },
    /** Writes a little where the last commit was refused, or where there was none for a while. */
    async look(database: Database): Promise<void> {
      let error: UnavailableError | undefined;
      if (refused !== undefined || elapsedMs() - lastMs >= IDLE_MS) {
        // A write that nothing depends on; with the same value SQLite would write nothing.
        const wasFull = refused?.why === "full";
        const value = sql`${String(elapsedMs())} || hex(zeroblob(${wasFull ? ROOM_BYTES : 0}))`;
        const probe = sql`INSERT INTO settings (name, value) VALUES ('write_probe', ${value})
          ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
        await database.write([probe]).then(() => {
          if (wasFull && refused?.why === "full") refused = undefined;
        }, (cause: unknown) => {
          if (!(cause instanceof UnavailableError)) throw cause; // that one has been observed
          error = cause;
        });
      }
      if (state() === logged) return;
      logged = state();
      if (logged === "ok") log.info("writes are taken again");
      else log.error("writes are refused", { reason: logged, error });
    },
  };
}
