import type { IncomingMessage } from "node:http";
import { tooLarge } from "../base/http_message.ts";
import { Problem } from "../base/problem.ts";
import { GrowingBytes } from "./growing_bytes.ts";
import type { MemoryBudget, Reservation } from "./memory_budget.ts";
import { estimateParsed } from "./parsed_size.ts";

/** The budgets of all request bodies, and of the values parsed from them. */
export interface BodyBudgets {
  readonly bodies: MemoryBudget;
  readonly parsed: { heldBytes: number; readonly maxBytes: number };
}

interface BodyEvents {
  /** Called before the first byte is awaited: the client may wait for 100 (Continue). */
  onStart(): void;
  /** Called once the body is complete, with the bytes that its parsed values may take. */
  onWhole(parsedBytes: number): void;
}

/**
 * The incoming body of one request. It holds the bytes that have come, not those announced, in one
 * buffer however small the chunks are. It counts them in the budgets until its release.
 */
export class IncomingBody {
  readonly incoming: IncomingMessage;
  readonly #budgets: BodyBudgets;
  readonly #events: BodyEvents;
  #failure: Problem | undefined;
  #stop: ((problem: Problem) => void) | undefined;
  #reservation: Reservation | undefined;
  #parsedBytes = 0;

  constructor(incoming: IncomingMessage, budgets: BodyBudgets, events: BodyEvents) {
    this.incoming = incoming;
    this.#budgets = budgets;
    this.#events = events;
  }

  /** Ends the reading, now or when it begins: the rest does not come, or is malformed. */
  fail(problem: Problem): void {
    this.#failure ??= problem;
    this.#stop?.(this.#failure);
  }

  /** Releases the memory of the body, once the response is complete. */
  release(): void {
    this.#reservation?.release();
    this.#budgets.parsed.heldBytes -= this.#parsedBytes;
    this.#parsedBytes = 0;
  }

  /** Reads the whole body, once; rejects with Problem 400, 408, 413 or 503. */
  read(maxBytes: number): Promise<Buffer> {
    const { incoming } = this;
    const announced = Number(incoming.headers["content-length"]);
    if (announced > maxBytes) return Promise.reject(tooLarge(maxBytes));
    if (this.#failure) return Promise.reject(this.#failure);
    if (incoming.destroyed) return Promise.reject(cutOff()); // its "close" does not come again
    this.#events.onStart();
    const fail = (problem: Problem): void => this.fail(problem);
    const refuse = (): void => {
      const detail = "Too many bodies are coming in at once; send it again.";
      fail(new Problem(503, "busy", detail, { headers: { "Retry-After": "1" } }));
    };
    const { bodies, parsed } = this.#budgets;
    const reservation = this.#reservation = bodies.reserve(refuse);
    return new Promise((resolve, reject) => {
      let whole: Buffer | undefined;
      let pieces: GrowingBytes | undefined;

      const onData = (chunk: Buffer): void => {
        const length = pieces?.length ?? 0;
        const needed = length + chunk.length;
        if (needed > maxBytes) return fail(tooLarge(maxBytes));
        if (length === 0 && needed === announced) {
          whole = chunk; // the complete body in one piece, as nearly always
          reservation.add(needed);
        } else {
          pieces ??= new GrowingBytes();
          reservation.add(pieces.append(chunk, maxBytes)); // which may evict this very body
        }
      };
      const onEnd = (): void => {
        const body = whole ?? pieces?.toBuffer() ?? Buffer.alloc(0);
        const parsedBytes = estimateParsed(incoming.headers["content-type"], body);
        // The last body may exceed what is left: sent again it would be no smaller.
        if (parsed.heldBytes >= parsed.maxBytes) return refuse();
        parsed.heldBytes += this.#parsedBytes = parsedBytes;
        this.#events.onWhole(parsedBytes);
        reservation.pin();
        finish();
        resolve(body);
      };
      const onClose = (): void => fail(cutOff());
      const finish = (): void => {
        this.#stop = undefined;
        incoming.off("data", onData).off("end", onEnd).off("close", onClose);
      };

      const stop = (problem: Problem): void => {
        finish();
        incoming.pause();
        pieces?.clear();
        reservation.release();
        reject(problem);
      };
      this.#stop = stop;
      incoming.on("data", onData).once("end", onEnd).once("close", onClose);
    });
  }
}

/** Returns the problem of a body that will not be complete. */
export function cutOff(): Problem {
  return new Problem(400, "cut_off", "The body ended too early.");
}
