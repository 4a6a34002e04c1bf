import { GrowingBytes } from "./growing_bytes.ts";
import type { Sender } from "./turn_limit.ts";

// Not by an import, which would load all of fetch: see base/status_text.ts.
const { IncomingMessage } = process.getBuiltinModule("node:http");

/**
 * A request as Node parses it. The pieces of its body are counted. While nobody reads them, all but
 * the first are joined: a chunk may be one byte, which alone takes some hundred bytes of memory.
 */
export class CountedMessage extends IncomingMessage {
  #sender: Sender | undefined;
  #count: ((sender: Sender) => void) | undefined;
  #unread: GrowingBytes | undefined;

  /** Counts each piece from now on: those of the body, which follows the head. */
  countPieces(sender: Sender, count: (sender: Sender) => void): void {
    this.#sender = sender;
    this.#count = count;
  }

  override push(piece: Buffer | null): boolean {
    if (this.#sender) this.#count?.(this.#sender);
    if (piece !== null && this.readableLength > 0 && !this.readableFlowing) {
      this.#unread ??= new GrowingBytes();
      this.#unread.append(piece);
      return this.#unread.length < this.readableHighWaterMark;
    }
    this.#pushUnread();
    return super.push(piece);
  }

  override resume(): this {
    this.#pushUnread();
    return super.resume();
  }

  override _read(size: number): void {
    if (this.#sender?.isPaused) this.#sender.resumesLater = true;
    else super._read(size); // which resumes the socket
  }

  #pushUnread(): void {
    if (this.#unread) super.push(this.#unread.toBuffer());
    this.#unread = undefined;
  }
}
