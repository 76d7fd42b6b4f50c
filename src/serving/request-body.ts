import type { Readable } from 'node:stream';
import { BodyMemory } from '../util/body-memory.ts';
import type { BodyMemoryOptions, ReceivedBody } from '../util/body-memory.ts';
import { shareOfHeap } from '../util/heap-limit.ts';

/** Memory for the bodies of all requests in progress: 16 MiB in a heap of 256 MiB. */
const MEMORY_SHARE = 1 / 16;
const MEMORY_BOUNDS = { min: 8 * 1024 ** 2, max: 64 * 1024 ** 2 };

/**
 * Maximum length of a body that does not wait, in bytes. Clients with large bodies then do not block others, and the
 * memory for small bodies is limited by the number of connections.
 */
export const SMALL_BODY_BYTES: number = 64 * 1024;

/** A body to read. */
export interface RequestBody {
  readonly request: Readable;
  /** Value of the header `content-length`. */
  readonly contentLength: string | undefined;
  /** Maximum length, in bytes. */
  readonly maxBytes: number;
  /** Remote address of the client. Addresses share the memory equally. */
  readonly address: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Reads the bodies of requests. Large bodies share a memory by the bytes that were received: if it is used up, others
 * wait, and slow bodies are given up.
 */
export class RequestBodies {
  readonly #memory: BodyMemory;

  constructor(memory: Partial<Omit<BodyMemoryOptions, 'freeBytes'>> = {}) {
    const bytes = shareOfHeap(MEMORY_SHARE, MEMORY_BOUNDS);
    this.#memory = new BodyMemory({ bytes, freeBytes: SMALL_BODY_BYTES, ...memory });
  }

  /**
   * Calls `use` with a body.
   *
   * @returns undefined if the body is longer than `maxBytes`
   * @throws {OverloadedError} if there was not enough memory in time
   * @throws {SlowBodyError} if the client sends too slowly
   * @throws the reason of the signal if it aborts before the body is complete
   */
  async read<R>(
    { request, contentLength, maxBytes, address, signal }: RequestBody,
    use: (body: Buffer) => R | Promise<R>,
  ): Promise<R | undefined> {
    if (contentLength !== undefined && !(Number(contentLength) <= maxBytes)) return undefined;
    const received = this.#memory.open(address);
    const abort = () => received.giveUp(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      const body = await this.#bodyOf(request, maxBytes, received);
      received.complete();
      return body && (await use(body));
    } finally {
      signal.removeEventListener('abort', abort);
      received.close();
    }
  }

  /** Returns the body, or undefined if it is longer than `maxBytes`. */
  async #bodyOf(
    request: Readable,
    maxBytes: number,
    received: ReceivedBody,
  ): Promise<Buffer | undefined> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    // The response is still sent after an early return.
    const iterator = request.iterator({ destroyOnReturn: false });
    for (;;) {
      const { done, value } = await Promise.race([iterator.next(), received.givenUp]);
      if (done) return Buffer.concat(chunks, length);
      const bytes = value as Uint8Array;
      length += bytes.byteLength;
      if (length > maxBytes) return undefined;
      chunks.push(bytes);
      await this.#memory.received(received, bytes.byteLength);
    }
  }
}
