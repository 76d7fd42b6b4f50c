import type { Readable } from 'node:stream';

/** Memory for the bodies of all requests in progress, in bytes. A parsed body can need thirty times its length. */
const MEMORY_BYTES = 16 * 1024 ** 2;

/**
 * Maximum length of a body that does not wait, in bytes. Clients with large bodies then do not block others, and the
 * memory for small bodies is limited by the number of connections.
 */
const SMALL_BYTES = 64 * 1024;

/** A body to read. */
export interface RequestBody {
  readonly request: Readable;
  /** Value of the header `content-length`. */
  readonly contentLength: string | undefined;
  /** Maximum length, in bytes. */
  readonly maxBytes: number;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

interface Waiter {
  readonly bytes: number;
  readonly start: () => void;
}

/** Reads the bodies of requests. Large bodies share a memory: others are not read until there is enough. */
export class RequestBodies {
  #usedBytes = 0;
  readonly #waiting = new Set<Waiter>();

  /**
   * Calls `use` with a body.
   *
   * @returns undefined if the body is longer than `maxBytes`
   * @throws the reason of the signal if it aborts before there is enough memory
   */
  async read<R>(
    { request, contentLength, maxBytes, signal }: RequestBody,
    use: (body: Buffer) => R | Promise<R>,
  ): Promise<R | undefined> {
    const expected = contentLength === undefined ? maxBytes : Number(contentLength);
    if (!(expected <= maxBytes)) return undefined;
    const reserved = expected <= SMALL_BYTES ? 0 : Math.min(expected, MEMORY_BYTES);
    await this.#reserve(reserved, signal);
    try {
      const chunks: Uint8Array[] = [];
      let length = 0;
      // The response is still sent after an early return.
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        const bytes = chunk as Uint8Array;
        length += bytes.byteLength;
        if (length > maxBytes) return undefined;
        chunks.push(bytes);
      }
      return await use(Buffer.concat(chunks, length));
    } finally {
      this.#usedBytes -= reserved;
      this.#startWaiting();
    }
  }

  async #reserve(bytes: number, signal: AbortSignal): Promise<void> {
    if (bytes === 0 || (this.#waiting.size === 0 && this.#usedBytes + bytes <= MEMORY_BYTES)) {
      this.#usedBytes += bytes;
      return;
    }
    const started = Promise.withResolvers<void>();
    const waiter = { bytes, start: () => started.resolve() };
    const abort = () => {
      if (this.#waiting.delete(waiter)) started.reject(signal.reason);
      this.#startWaiting();
    };
    this.#waiting.add(waiter);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    await started.promise.finally(() => signal.removeEventListener('abort', abort));
  }

  /** Starts the bodies that have waited longest. */
  #startWaiting(): void {
    for (const waiter of this.#waiting) {
      if (this.#usedBytes + waiter.bytes > MEMORY_BYTES) return;
      this.#waiting.delete(waiter);
      this.#usedBytes += waiter.bytes;
      waiter.start();
    }
  }
}
