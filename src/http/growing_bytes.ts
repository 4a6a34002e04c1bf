/**
 * Bytes that come in pieces and are held in one. What they outgrow is free at once, not when
 * garbage is next collected: slow clients would make that as much again as what is held.
 */
export class GrowingBytes {
  #room = new ArrayBuffer(0);
  #length = 0;

  /** How many have come. */
  get length(): number {
    return this.#length;
  }

  /**
   * Copies a piece behind the others. Where there is no more room it becomes twice as much, of
   * `maxBytes` at most, so that bytes of many pieces are copied about twice. Returns how much the
   * room has grown.
   */
  append(piece: Buffer, maxBytes = Infinity): number {
    const { byteLength } = this.#room;
    const needed = this.#length + piece.length;
    if (needed > byteLength) {
      const size = Math.max(needed, 2 * byteLength, 4096);
      this.#room = this.#room.transfer(Math.min(size, maxBytes));
    }
    piece.copy(new Uint8Array(this.#room), this.#length);
    this.#length = needed;
    return this.#room.byteLength - byteLength;
  }

  /** All that have come. */
  toBuffer(): Buffer {
    return Buffer.from(this.#room, 0, this.#length);
  }

  /** Drops them. */
  clear(): void {
    this.#room = this.#room.transfer(this.#length = 0);
  }
}
