import type { ExchangeHandler } from "./second_try.ts";

/** What fetch gives to its dispatcher, as far as it matters here. */
export interface FetchHandler extends ExchangeHandler {
  /** What fetch reads of the response, once its head is there. */
  readonly body?: { on(event: "error", listener: () => void): unknown } | null;
  onRequestStart(controller: { abort(reason: Error): void }, context: unknown): void;
  /** The head of a response is there; that of an interim one (1xx) comes before. */
  onResponseStart(controller: unknown, status: number, ...head: unknown[]): void;
}

/** Interim responses cost a thread much and their sender little, and could go on and on. */
const MAX_INTERIM = 32;

/**
 * Makes what follows an exchange of fetch by the handler for its dispatcher, changing that as
 * trySecond() does. Fetch keeps some responses to itself (a 407; a 421, whose request it would send
 * again; one with more than five content encodings), and reads on and on what comes as the body of
 * a 205: without `end` their connections would be held for as long as the other side likes. Too
 * many interim responses end it as a failure.
 */
export function followExchange() {
  let abort = () => {};
  let status: number | undefined;
  let interim = 0;
  return {
    follow(handler: FetchHandler): FetchHandler {
      const { onRequestStart, onResponseStart } = handler;
      status = undefined;
      return Object.assign(handler, {
        onRequestStart(controller, context) {
          abort = () => controller.abort(new DOMException("Nothing more is read", "AbortError"));
          onRequestStart.call(handler, controller, context);
        },
        onResponseStart(controller, code, ...head) {
          if (code >= 200) status = code;
          else if (++interim > MAX_INTERIM) {
            throw Object.assign(new Error("Too many interim responses"), { code: "INTERIM_LIMIT" });
          }
          onResponseStart.call(handler, controller, code, ...head);
          // Where fetch does not listen it would end the thread.
          handler.body?.on("error", () => {});
        },
      } satisfies Pick<FetchHandler, "onRequestStart" | "onResponseStart">);
    },
    /** The status of the response, once its head has come. */
    status: () => status,
    /** Ends the exchange, and its connection, where it is not complete. */
    end: () => abort(),
  };
}
