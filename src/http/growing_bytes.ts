/**
 * Bytes that come in pieces and are held in one buffer. A buffer that they outgrow is freed at
 * once, not by the next garbage collection: with slow clients that would double the memory.
 */
export class GrowingBytes {
  #buffer = new ArrayBuffer(0);
  #length = 0;

  /** The number of bytes so far. */
  get length(): number {
    return this.#length;
  }

  /**
   * Appends a copy of a piece. A full buffer doubles in size, up to `maxBytes`, so that bytes of
   * many pieces are copied about twice. Returns by how many bytes the buffer has grown.
   */
  append(piece: Buffer, maxBytes = Infinity): number {
    const { byteLength } = this.#buffer;
    const needed = this.#length + piece.length;
    if (needed > byteLength) {
      const size = Math.max(needed, 2 * byteLength, 4096);
      this.#buffer = this.#buffer.transfer(Math.min(size, maxBytes));
    }
    piece.copy(new Uint8Array(this.#buffer), this.#length);
    this.#length = needed;
    return this.#buffer.byteLength - byteLength;
  }

  /** Returns all bytes so far. */
  toBuffer(): Buffer {
    return Buffer.from(this.#buffer, 0, this.#length);
  }

  /** Drops all bytes. */
  clear(): void {
    this.#buffer = this.#buffer.transfer(this.#length = 0);
  }
}
