import { parseRetryAfter } from "../event/delivery.ts";
import { signMessage } from "../event/signature.ts";
import type { AttemptRecord, SendableDelivery } from "../store/deliveries.ts";
import { type Egress, readStart } from "../outbound/egress.ts";
import { findCode, settleFailure } from "../outbound/failure.ts";
import { findShortage } from "../outbound/shortage.ts";

/** One POST to a subscriber; `json` is its whole body. */
export interface Callback
  extends Pick<SendableDelivery, "id" | "event" | "json" | "endpoint" | "attempt"> {
  /** Each secret makes a signature; the newest comes first. */
  readonly secrets: readonly string[];
}

/** How a POST ended; `shortage` is the error code (as EMFILE) because of which it was not sent. */
type CallbackResult = Pick<AttemptRecord, "outcome" | "snippet"> | { readonly shortage: string };

export type CallbackSender = ReturnType<typeof createCallbackSender>;

const SNIPPET_BYTES = 4096;

/** Makes the sender of callbacks. A callback is a POST whose body is the event's JSON alone. */
export function createCallbackSender({ egress, timeoutMs, now }: {
  readonly egress: Egress;
  /** For the whole exchange, body included, in milliseconds. */
  readonly timeoutMs: number;
  readonly now: () => number;
}) {
  /** Sends one callback. Never rejects: a failure is a result. */
  async function send(callback: Callback): Promise<CallbackResult> {
    const { id, json: body, event, attempt, secrets } = callback;
    const startedMs = performance.now();
    const timestampSeconds = Math.floor(now() / 1000);
    const controller = new AbortController();
    const timeOut = () => controller.abort(new DOMException("Too slow", "TimeoutError"));
    // The second timer lets a response be read that came in time while this process was busy.
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
    /** Aborts the callbacks under way; they fail, and so does every later one. */
    abort: egress.close,
  };
}
