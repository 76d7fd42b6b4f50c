import type { Readable } from 'node:stream';
import { MemoryBudget } from '../util/memory-budget.ts';
import type { MemoryBudgetOptions } from '../util/memory-budget.ts';

/** Memory for the bodies of all requests in progress, in bytes. */
const MEMORY_BYTES = 16 * 1024 ** 2;

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
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Reads the bodies of requests. Large bodies share a memory: others are not read until there is enough. */
export class RequestBodies {
  readonly #memory: MemoryBudget;

  constructor(memory: Partial<MemoryBudgetOptions> = {}) {
    this.#memory = new MemoryBudget({ bytes: MEMORY_BYTES, ...memory });
  }

  /**
   * Calls `use` with a body.
   *
   * @returns undefined if the body is longer than `maxBytes`
   * @throws {OverloadedError} if there was not enough memory in time
   * @throws the reason of the signal if it aborts before there is enough memory
   */
  async read<R>(
    { request, contentLength, maxBytes, signal }: RequestBody,
    use: (body: Buffer) => R | Promise<R>,
  ): Promise<R | undefined> {
    const expected = contentLength === undefined ? maxBytes : Number(contentLength);
    if (!(expected <= maxBytes)) return undefined;
    const read = async () => {
      const body = await bodyOf(request, maxBytes);
      return body && (await use(body));
    };
    return expected <= SMALL_BODY_BYTES ? read() : this.#memory.use(expected, signal, read);
  }
}

/** Returns the body, or undefined if it is longer than `maxBytes`. */
async function bodyOf(request: Readable, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // The response is still sent after an early return.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = chunk as Uint8Array;
    length += bytes.byteLength;
    if (length > maxBytes) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks, length);
}
