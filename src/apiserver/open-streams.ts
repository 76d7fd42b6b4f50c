import type { Watcher } from './watcher.ts';

interface OpenStream {
  readonly watcher: Watcher;
  readonly cut: AbortController;
}

/** The watches that are being sent at this moment. */
export class OpenStreams {
  readonly #open = new Set<OpenStream>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * The watch's stream as a response body: aborting `signal` makes it throw the signal's reason,
   * leaving the iteration ends the watch, begun or not.
   */
  body(watcher: Watcher, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
    const stream = { watcher, cut: new AbortController() };
    this.#open.add(stream);
    const abort = () => cut(stream, signal?.reason);
    const forget = () => {
      signal?.removeEventListener('abort', abort);
      this.#open.delete(stream);
    };
    watcher.whenEnded(forget);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    return {
      [Symbol.asyncIterator]() {
        const chunks = guarded(stream);
        return {
          next: () => chunks.next(),
          // A generator that was never begun would not get to its end by itself.
          return: () => {
            watcher.end();
            return chunks.return();
          },
        };
      },
    };
  }

  /** Breaks every stream: whoever reads it gets `reason` as an error. */
  cutAll(reason: unknown): void {
    for (const stream of this.#open) cut(stream, reason);
  }

  /** Ends every stream in order. */
  endAll(): void {
    for (const { watcher } of this.#open) watcher.end();
  }
}

function cut({ watcher, cut }: OpenStream, reason: unknown): void {
  cut.abort(reason);
  watcher.end();
}

async function* guarded({ watcher, cut }: OpenStream): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of watcher) {
    cut.signal.throwIfAborted();
    yield chunk;
  }
  cut.signal.throwIfAborted();
}
