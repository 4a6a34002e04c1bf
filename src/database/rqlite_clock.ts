import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { RqliteClient } from "./rqlite_client.ts";

const WARN_MS = 250;
/** Beyond it what one process revokes may not reach what another has just issued. */
const REFUSE_MS = 2_000;
const INTERVAL_MS = 2_000;
const TIMEOUT_MS = 1_000;
/** By how much two clocks may drift apart between two looks. */
const DRIFT_MS = 1;
const SECOND_MS = 1_000;

/** How far a node's clock is ahead of ours, in milliseconds: somewhere from `least` to `most`. */
interface Offset {
  readonly least: number;
  readonly most: number;
}

/**
 * Makes the comparison. A response's `Date` is in whole seconds, so each look asks when the node's
 * second should change if it were in the middle of what is possible, and halves that.
 */
export function createRqliteClock(
  client: Pick<RqliteClient, "nodes" | "request">,
  log: Log,
  now: () => number,
) {
  const offsets = new Map<string, Offset>();
  let isWarned = false;

  async function ask(node: string): Promise<void> {
    const known = offsets.get(node) ?? { least: 0, most: 0 };
    const middle = (known.least + known.most) / 2;
    await sleep(SECOND_MS - modulo(now() + middle, SECOND_MS));
    const sentMs = now();
    const response = await client.request(node, "GET", "/readyz?noleader", TIMEOUT_MS);
    response.resume().on("error", () => {});
    const receivedMs = now();
    const dateMs = Date.parse(response.headers.date ?? "");
    if (Number.isNaN(dateMs)) return;
    const found = { least: dateMs - receivedMs, most: dateMs + SECOND_MS - sentMs };
    const both = {
      least: Math.max(found.least, known.least - DRIFT_MS),
      most: Math.min(found.most, known.most + DRIFT_MS),
    };
    // No offset fits both where one of the clocks has been set.
    offsets.set(node, offsets.has(node) && both.least <= both.most ? both : found);
  }

  /** By how much ours surely differs from most of theirs. */
  function skewMs(): number {
    const surely = offsets.values().map(({ least, most }) => Math.max(least, -most, 0)).toArray()
      .sort((a, b) => a - b);
    return Math.round(surely[Math.floor((surely.length - 1) / 2)] ?? 0);
  }

  /** Asks each node once, within about a second, and logs where the clocks differ. */
  async function look(): Promise<void> {
    await Promise.all(client.nodes.map((node) => ask(node).catch(() => {}))); // it is down
    const isOff = skewMs() > WARN_MS;
    if (isOff && !isWarned) {
      log.warn("this machine's clock differs from those of the database", { ms: skewMs() });
    }
    isWarned = isOff;
  }

  return {
    look,
    /** Looks again and again, until the returned function is called. */
    start(): () => void {
      void look();
      const timer = setInterval(() => void look(), INTERVAL_MS).unref();
      return () => clearInterval(timer);
    },
    skewMs,
    state: (): "ok" | "clock_skewed" => (skewMs() > REFUSE_MS ? "clock_skewed" : "ok"),
  };
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
