import { parseRetryAfter } from "../event/delivery.ts";
import { signMessage } from "../event/signature.ts";
import type { AttemptRecord, SendableDelivery } from "../store/deliveries.ts";
import { type Egress, readStart } from "../outbound/egress.ts";
import { findCode, settleFailure } from "../outbound/failure.ts";
import { findShortage } from "../outbound/shortage.ts";

/** One POST to a subscriber; `json` is its whole body. */
export interface Callback
  extends Pick<SendableDelivery, "id" | "event" | "json" | "endpoint" | "attempt"> {
  /** Each of them signs; the newest first. */
  readonly secrets: readonly string[];
}

/** How a POST ended; `shortage`: it was not sent, since the service lacks what this code says. */
type CallbackResult = Pick<AttemptRecord, "outcome" | "snippet"> | { readonly shortage: string };

export type CallbackSender = ReturnType<typeof createCallbackSender>;

const SNIPPET_BYTES = 4096;

/** Makes what sends callbacks: a POST of the event's JSON, and nothing else of the service. */
export function createCallbackSender({ egress, timeoutMs, now }: {
  readonly egress: Egress;
  /** For the whole exchange, body included, in milliseconds. */
  readonly timeoutMs: number;
  readonly now: () => number;
}) {
  /** Sends one; failures are results: it never rejects. */
  async function send(callback: Callback): Promise<CallbackResult> {
    const { id, json: body, event, attempt, secrets } = callback;
    const startedMs = performance.now();
    const timestampSeconds = Math.floor(now() / 1000);
    const controller = new AbortController();
    const timeOut = () => controller.abort(new DOMException("Too slow", "TimeoutError"));
    // What came in time is read before that, where this process was stopped or busy meanwhile.
    let timer = setTimeout(() => timer = setTimeout(timeOut), timeoutMs);
    try {
      const response = await egress.send(callback.endpoint, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          "webhook-id": id,
          "webhook-timestamp": String(timestampSeconds),
          "webhook-signature": signMessage({ id, timestampSeconds, body }, secrets),
          "gatepost-event": event,
          "gatepost-attempt": String(attempt),
        },
        body,
        signal: controller.signal,
      });
      const start = (await readStart(response, SNIPPET_BYTES)).subarray(0, SNIPPET_BYTES);
      const snippet = start.toString("utf8").replaceAll("\0", "");
      const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), now());
      return { outcome: { kind: "response", status: response.status, retryAfterMs }, snippet };
    } catch (error) {
      const shortage = findShortage(error);
      if (shortage !== undefined) return { shortage };
      const kind = await settleFailure(error, startedMs);
      return { outcome: { kind: "error", error: kind }, snippet: findCode(error) };
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    send,
    /** Aborts what is under way, which then fails, as does what is sent after that. */
    abort: egress.close,
  };
}
