import { text } from "node:stream/consumers";
import type { Log } from "../base/log.ts";
import { describeResponse, readResponse, type RqliteClient } from "./rqlite_client.ts";

const WARN_MS = 250;
/** Beyond this, a revocation by one process may miss a token that another has just issued. */
export const MAX_SKEW_MS = 2_000;
const INTERVAL_MS = 2_000;
const TIMEOUT_MS = 1_000;
/** After so many failed looks a node is reported: one that restarts may fail fewer. */
const MISSED_LOOKS = 3;

// Asks the node itself. Through the Raft log, each node would have a time of its own.
const SELECT = `SELECT unixepoch('subsec'), foreign_keys, (SELECT max(id) FROM write_groups)
  FROM pragma_foreign_keys`;
const TIME_PATH = `/db/query?level=none&q=${encodeURIComponent(SELECT)}`;

export type RqliteClock = ReturnType<typeof createRqliteClock>;

/**
 * Makes the comparison of this machine's clock with the nodes' clocks. It also logs a node that for
 * some seconds has not answered or not stored what others have; the cluster goes on without it. And
 * it logs a node that ignores foreign keys, which a start of this process would have refused
 * (rqlite_judge.ts).
 */
export function createRqliteClock(
  client: Pick<RqliteClient, "nodes" | "request">,
  log: Pick<Log, "info" | "warn" | "error"> | undefined,
  now: () => number,
) {
  let skewMs = 0;
  let isWarned = false;
  /** Nodes that ignore foreign keys. */
  const lax = new Set<string>();
  /** How many looks in a row each node has failed. */
  const missed = new Map<string, number>();
  /** The newest group of writes (rqlite_ledger.ts) that each node had at the last look. */
  const newest = new Map<string, unknown>();

  /**
   * Returns by how much our clock differs at least: the node's time lies between two of ours. Also
   * returns whether the node has stored something since the last look.
   */
  async function measure(node: string) {
    const sentMs = now();
    const response = await client.request(node, "GET", TIME_PATH, TIMEOUT_MS);
    const content = await text(response);
    const { statusCode: status } = response;
    if (status !== 200) throw new Error(describeResponse(status, content));
    const whole = readResponse(status, content);
    const [{ error, values } = whole] = whole.results; // empty if it has lost its file
    if (error !== undefined) throw new Error(error); // no table: the node is in no cluster yet
    const [[seconds, keys, group]] = values;
    if (keys !== 0) lax.delete(node);
    else if (!lax.has(node)) {
      lax.add(node);
      missed.set(node, MISSED_LOOKS);
      log?.error("a node of the database ignores foreign keys: start it with -fk", { node });
    }
    const hasStored = newest.get(node) !== group;
    newest.set(node, group);
    const ms = Math.max(sentMs - 1_000 * seconds, 1_000 * seconds - now(), 0);
    return { ms, hasStored };
  }

  function miss(node: string, message: string, fields: object = {}): void {
    const count = (missed.get(node) ?? 0) + 1;
    missed.set(node, count);
    if (count === MISSED_LOOKS) log?.warn(message, { node, ...fields });
  }

  function pass(node: string): void {
    if (lax.has(node)) return;
    const count = missed.get(node) ?? 0;
    missed.delete(node);
    if (count >= MISSED_LOOKS) log?.info("a node of the database works again", { node });
  }

  /** Asks each node once, and logs if our clock differs from most nodes' clocks; never rejects. */
  async function look(): Promise<void> {
    const looks = await Promise.allSettled(client.nodes.map(measure));
    const found = looks.map((each) => (each.status === "fulfilled" ? each.value : undefined));
    const isAnyStored = found.some((each) => each?.hasStored); // false without a leader
    for (const [index, node] of client.nodes.entries()) {
      const each = looks[index];
      if (each?.status === "rejected") {
        miss(node, "a node of the database does not answer", { error: each.reason });
      } else if (each?.value.hasStored) pass(node);
      else if (isAnyStored) {
        miss(node, "a node of the database no longer stores what the others do");
      }
    }
    const measured = found.flatMap((each) => each?.ms ?? []).sort((a, b) => a - b);
    skewMs = Math.round(measured[Math.floor((measured.length - 1) / 2)] ?? skewMs);
    const isOff = skewMs > WARN_MS;
    if (isOff && !isWarned) {
      log?.warn("this machine's clock differs from those of the database", { ms: skewMs });
    }
    isWarned = isOff;
  }

  return {
    look,
    /** Looks now and every two seconds until the returned function is called. */
    async start(): Promise<() => void> {
      await look(); // otherwise the server would start by a clock that may be wrong
      const timer = setInterval(() => void look(), INTERVAL_MS).unref();
      return () => clearInterval(timer);
    },
    skewMs: () => skewMs,
    /** Each node, and false if a problem of it is logged and not over. */
    nodes: () =>
      client.nodes.map((node) => [node, (missed.get(node) ?? 0) < MISSED_LOOKS] as const),
    /** Whether our clock agreed with most nodes' clocks at the last look. */
    state: (): "ok" | "clock_skewed" => (skewMs > MAX_SKEW_MS ? "clock_skewed" : "ok"),
  };
}
