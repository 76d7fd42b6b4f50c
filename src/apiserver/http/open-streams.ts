import type { Watcher } from '../operations/watcher.ts';

interface OpenStream {
  readonly watcher: Watcher;
  readonly cut: AbortController;
}

/** The active watch streams. */
export class OpenStreams {
  readonly #open = new Set<OpenStream>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * Returns the stream of a watch as a response body. Aborting `signal` makes it throw the signal's
   * reason. Leaving the iteration ends the watch, even before the first event.
   *
   * @param onEnd called when the watch ends
   */
  body(
    watcher: Watcher,
    signal: AbortSignal | undefined,
    onEnd: () => void = () => undefined,
  ): AsyncIterable<Uint8Array> {
    const stream = { watcher, cut: new AbortController() };
    this.#open.add(stream);
    const abort = () => cut(stream, signal?.reason);
    const forget = () => {
      signal?.removeEventListener('abort', abort);
      this.#open.delete(stream);
      onEnd();
    };
    watcher.whenEnded(forget);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    return {
      [Symbol.asyncIterator]() {
        const chunks = guarded(stream);
        return {
          next: () => chunks.next(),
          // A generator that was never started does not run its finally block.
          return: () => {
            watcher.end();
            return chunks.return();
          },
        };
      },
    };
  }

  /** Breaks every stream: its reader gets `reason` as an error. */
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
