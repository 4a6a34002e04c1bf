import type { IncomingMessage } from "node:http";
import { tooLarge } from "../base/http_message.ts";
import { Problem } from "../base/problem.ts";
import { GrowingBytes } from "./growing_bytes.ts";
import type { Reservation, MemoryBudget } from "./memory_budget.ts";

/**
 * The body of one request on its way in. It holds what has come and not what was announced, in one
 * piece however small the chunks are, and counts it in the budget until its release.
 */
export class IncomingBody {
  readonly incoming: IncomingMessage;
  readonly #budget: MemoryBudget;
  readonly #onStart: () => void;
  #failure: Problem | undefined;
  #stop: ((problem: Problem) => void) | undefined;
  #holding: Reservation | undefined;

  /** @param onStart called before the first byte is waited for: a client may wait for 100 */
  constructor(incoming: IncomingMessage, budget: MemoryBudget, onStart: () => void) {
    this.incoming = incoming;
    this.#budget = budget;
    this.#onStart = onStart;
  }

  /** Ends the reading, now or when it begins: the rest is not coming, or not well-formed. */
  fail(problem: Problem): void {
    this.#failure ??= problem;
    this.#stop?.(this.#failure);
  }

  /** Releases what it holds, once the response is complete. */
  release(): void {
    this.#holding?.release();
  }

  /** The whole body, once; rejects with Problem 400, 408, 413 or 503. */
  read(maxBytes: number): Promise<Buffer> {
    const { incoming } = this;
    const announced = Number(incoming.headers["content-length"] ?? 0);
    if (announced > maxBytes) return Promise.reject(tooLarge(maxBytes));
    if (this.#failure) return Promise.reject(this.#failure);
    if (incoming.destroyed) return Promise.reject(cutOff()); // its "close" does not come again
    this.#onStart();
    const fail = (problem: Problem): void => this.fail(problem);
    const held = this.#holding = this.#budget.reserve(() => {
      const detail = "Too many bodies are coming in at once; send it again.";
      fail(new Problem(503, "busy", detail, { headers: { "Retry-After": "1" } }));
    });
    return new Promise((resolve, reject) => {
      let whole: Buffer | undefined;
      let pieces: GrowingBytes | undefined;

      const onData = (chunk: Buffer): void => {
        const length = pieces?.length ?? 0;
        const needed = length + chunk.length;
        if (needed > maxBytes) return fail(tooLarge(maxBytes));
        if (length === 0 && needed === announced) {
          whole = chunk; // came in one piece, as nearly all do: it is complete
          held.pin();
          held.add(needed);
        } else {
          pieces ??= new GrowingBytes();
          held.add(pieces.append(chunk, maxBytes)); // which may end this very reading
        }
      };
      const onEnd = (): void => {
        held.pin();
        finish();
        resolve(whole ?? pieces?.toBuffer() ?? Buffer.alloc(0));
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
        held.release();
        reject(problem);
      };
      this.#stop = stop;
      incoming.on("data", onData).once("end", onEnd).once("close", onClose);
    });
  }
}

/** Says that a body will not be complete. */
export function cutOff(): Problem {
  return new Problem(400, "cut_off", "The body ended too early.");
}
