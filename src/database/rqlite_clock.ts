import { text } from "node:stream/consumers";
import type { Log } from "../base/log.ts";
import type { RqliteClient } from "./rqlite_client.ts";

const WARN_MS = 250;
/** Beyond it what one process revokes may not reach what another has just issued. */
export const MAX_SKEW_MS = 2_000;
const INTERVAL_MS = 2_000;
const TIMEOUT_MS = 1_000;
/** A node that is busy or started again may not answer so many looks but one. */
const MISSED_LOOKS = 3;

// Of the node that is asked alone: by the log, each node would have a time of its own.
const SELECT = "SELECT unixepoch('subsec'), foreign_keys FROM pragma_foreign_keys";
const TIME_PATH = `/db/query?level=none&q=${encodeURIComponent(SELECT)}`;

/**
 * Makes the comparison of this machine's clock with those of the nodes. It also logs a node that
 * has not answered for some seconds, which the cluster goes on without, and one that was started
 * without what the start of this process would have refused (rqlite_judge.ts).
 */
export function createRqliteClock(
  client: Pick<RqliteClient, "nodes" | "request">,
  log: Pick<Log, "info" | "warn" | "error">,
  now: () => number,
) {
  let skewMs = 0;
  let isWarned = false;
  /** Nodes that ignore foreign keys. */
  const lax = new Set<string>();
  /** How many looks a node has not answered, since it last did. */
  const missed = new Map<string, number>();

  /** By how much ours surely differs: the node's time is from between the two of ours. */
  async function measure(node: string): Promise<number> {
    const sentMs = now();
    const response = await client.request(node, "GET", TIME_PATH, TIMEOUT_MS);
    const { results: [{ values: [[seconds, keys]] }] } = JSON.parse(await text(response));
    if (keys !== 0) lax.delete(node);
    else if (!lax.has(node)) {
      lax.add(node);
      log.error("a node of the database ignores foreign keys: start it with -fk", { node });
    }
    return Math.max(sentMs - 1_000 * seconds, 1_000 * seconds - now(), 0);
  }

  /** The same where the node answers. */
  async function tryToMeasure(node: string): Promise<number[]> {
    const count = missed.get(node) ?? 0;
    try {
      const ms = await measure(node);
      missed.delete(node);
      if (count >= MISSED_LOOKS) log.info("a node of the database answers again", { node });
      return [ms];
    } catch (error) {
      missed.set(node, count + 1);
      if (count + 1 === MISSED_LOOKS) {
        log.warn("a node of the database does not answer", { node, error });
      }
      return [];
    }
  }

  /** Asks each node once, and logs where our clock differs from most of theirs. */
  async function look(): Promise<void> {
    const differences = await Promise.all(client.nodes.map(tryToMeasure));
    const measured = differences.flat().sort((a, b) => a - b);
    skewMs = Math.round(measured[Math.floor((measured.length - 1) / 2)] ?? skewMs);
    const isOff = skewMs > WARN_MS;
    if (isOff && !isWarned) {
      log.warn("this machine's clock differs from those of the database", { ms: skewMs });
    }
    isWarned = isOff;
  }

  return {
    look,
    /** Looks, and then again and again until the function is called that it gives. */
    async start(): Promise<() => void> {
      await look(); // else what begins now would go by a clock that may be wrong
      const timer = setInterval(() => void look(), INTERVAL_MS).unref();
      return () => clearInterval(timer);
    },
    skewMs: () => skewMs,
    state: (): "ok" | "clock_skewed" => (skewMs > MAX_SKEW_MS ? "clock_skewed" : "ok"),
  };
}
