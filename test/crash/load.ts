import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../helpers/random.ts";
import { HANDLER_PATH } from "./recorder.ts";

/** Events that were dispatched together in one request, by their numbers. */
export interface Batch {
  readonly event: string;
  readonly numbers: readonly number[];
  /** 2xx; 5xx; or no response at all, since the server died. */
  readonly outcome: "acknowledged" | "refused" | "unanswered";
}

/** Dispatches without a pause, across all restarts of the server. */
export interface Load {
  readonly batches: readonly Batch[];
  /** Keeps some requests in flight until the server is gone or it is asked to stop. */
  run(serverUrl: string, stop: AbortSignal): Promise<void>;
  /** One request whose handler waits for the receiver after it has dispatched. */
  interruptHandler(serverUrl: string): Promise<void>;
}

const PUBLISHERS = 3;
const REFUSED_PERCENT = 10;

/** Makes a load of these events; each event carries a number that no other has. */
export function createLoad(events: readonly string[], receiverUrl: string, random: Random): Load {
  const batches: Batch[] = [];
  let last = 0;

  async function publish(serverUrl: string, more: Readonly<Record<string, unknown>>) {
    const event = random.pick(events);
    const numbers = Array.from({ length: 1 + random.below(3) }, () => ++last);
    const body = { events: numbers.map((n) => ({ name: event, data: { n } })), ...more };
    const status = await post(`${serverUrl}/dispatch`, body);
    const outcome = status === undefined
      ? "unanswered"
      : status >= 500 ? "refused" : "acknowledged";
    batches.push({ event, numbers, outcome });
    return outcome;
  }

  async function runPublisher(serverUrl: string, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const more = random.chance(REFUSED_PERCENT) ? { then: "throw" } : {};
      if (await publish(serverUrl, more) === "unanswered") return;
      await sleep(random.below(6));
    }
  }

  return {
    batches,
    async run(serverUrl, stop) {
      const publishers = Array.from({ length: PUBLISHERS }, () => runPublisher(serverUrl, stop));
      await Promise.all(publishers);
    },
    async interruptHandler(serverUrl) {
      await publish(serverUrl, { call: receiverUrl + HANDLER_PATH });
    },
  };
}

/** The status of the response; undefined where there was none. */
async function post(url: string, body: unknown): Promise<number | undefined> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined; // no connection, or one that broke: whether it was stored is unknown
  }
}
