/** Maximum number of bytes that wait for the reader. */
const MAX_WAITING = 256 * 1024;

/** Bytes from one writer to one reader, who makes the writer wait. */
export class ByteQueue implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isEnded = false;
  #changed = Promise.withResolvers<void>();

  /** Resolves when the reader can take more. After the end, the bytes are dropped. */
  async push(bytes: Uint8Array): Promise<void> {
    if (this.#isEnded || bytes.length === 0) return;
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    this.#change();
    while (this.#bytes > MAX_WAITING && !this.#isEnded) await this.#changed.promise;
  }

  /** Ends the iteration after the bytes that wait. */
  end(): void {
    this.#isEnded = true;
    this.#change();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk) {
        this.#bytes -= chunk.length;
        this.#change();
        yield chunk;
      } else if (this.#isEnded) return;
      else await this.#changed.promise;
    }
  }

  #change(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}
