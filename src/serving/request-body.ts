import type { Readable } from 'node:stream';

/** Maximum memory for the bodies of all requests, in bytes. */
const MAX_BYTES = 64 * 1024 ** 2;

/**
 * Maximum length of a body that does not count, in bytes. Clients with large bodies then do not block others, and the
 * memory for small bodies is limited by the number of connections.
 */
const SMALL_BYTES = 64 * 1024;

/** Reads the bodies of requests, within a limit for their total length. */
export class RequestBodies {
  #bytes = 0;

  /**
   * Calls `use` with the body of a request.
   *
   * @returns `tooLarge` if the body is longer than `maxBytes`, `busy` if the bodies of other requests need the memory
   */
  async read<R>(
    request: Readable,
    maxBytes: number,
    use: (body: Buffer) => R | Promise<R>,
  ): Promise<R | 'tooLarge' | 'busy'> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    let counted = 0;
    try {
      // The response is still sent after an early return.
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        const bytes = chunk as Uint8Array;
        length += bytes.byteLength;
        if (length > maxBytes) return 'tooLarge';
        if (length > SMALL_BYTES) {
          this.#bytes += length - counted;
          counted = length;
          if (this.#bytes > MAX_BYTES) return 'busy';
        }
        chunks.push(bytes);
      }
      return await use(Buffer.concat(chunks, length));
    } finally {
      this.#bytes -= counted;
    }
  }
}
