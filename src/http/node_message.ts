import { append, NOTHING } from "./node_body.ts";
import type { Sender } from "./turn_limit.ts";

// Not by an import, which would load all of fetch: see base/status_text.ts.
const { IncomingMessage } = process.getBuiltinModule("node:http");

/**
 * A request as Node parses it. The pieces of its body are counted, and from the second on put
 * together while nobody reads them: a chunk may be one byte, which takes some hundred alone.
 */
export class CountedMessage extends IncomingMessage {
  #sender: Sender | undefined;
  #count: ((sender: Sender) => void) | undefined;
  #unread: Buffer = NOTHING;
  #length = 0;

  /** Has each piece counted from now on: that of the body, which comes behind the head. */
  countPieces(sender: Sender, count: (sender: Sender) => void): void {
    this.#sender = sender;
    this.#count = count;
  }

  override push(piece: Buffer | null): boolean {
    if (this.#sender) this.#count?.(this.#sender);
    if (piece !== null && this.readableLength > 0 && !this.readableFlowing) {
      this.#unread = append(this.#unread, this.#length, piece);
      this.#length += piece.length;
      return this.#length < this.readableHighWaterMark;
    }
    this.#pushUnread();
    return super.push(piece);
  }

  override resume(): this {
    this.#pushUnread();
    return super.resume();
  }

  override _read(size: number): void {
    if (this.#sender?.isHeld) this.#sender.isWanted = true;
    else super._read(size); // which resumes the socket
  }

  #pushUnread(): void {
    if (this.#length > 0) super.push(this.#unread.subarray(0, this.#length));
    this.#unread = NOTHING;
    this.#length = 0;
  }
}
