import { rejectOnAbort } from './abort.ts';
import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';
import { TimeoutError, withinTimeout } from './within-timeout.ts';

/** There was not enough memory in time. The client can retry. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** Options of `MemoryBudget`. */
export interface MemoryBudgetOptions {
  readonly bytes: number;
  /**
   * Maximum time that work waits, in milliseconds.
   * @default 5000
   */
  readonly waitMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Pick<Clock, 'after'> | undefined;
}

interface Waiter {
  readonly bytes: number;
  readonly start: () => void;
}

/** Memory that concurrent work shares. Work waits in its order until there is enough. */
export class MemoryBudget {
  readonly #bytes: number;
  readonly #limit: { readonly clock: Pick<Clock, 'after'>; readonly timeoutMs: number };
  readonly #waiting = new Set<Waiter>();
  #usedBytes = 0;

  constructor({ bytes, waitMs = 5000, clock = systemClock }: MemoryBudgetOptions) {
    this.#bytes = bytes;
    this.#limit = { clock, timeoutMs: waitMs };
  }

  /**
   * Runs `work` when there are `bytes` for it. Work that needs more than the whole budget runs alone.
   *
   * @throws {OverloadedError} if it had to wait too long
   * @throws the reason of `signal` if it aborts while the work waits
   */
  async use<R>(bytes: number, signal: AbortSignal, work: () => R | Promise<R>): Promise<R> {
    const held = Math.min(bytes, this.#bytes);
    if (this.#waiting.size > 0 || !this.#take(held)) await this.#wait(held, signal);
    try {
      return await work();
    } finally {
      this.#free(held);
    }
  }

  #take(bytes: number): boolean {
    if (this.#usedBytes + bytes > this.#bytes) return false;
    this.#usedBytes += bytes;
    return true;
  }

  /** Starts the work that has waited longest. */
  #free(bytes: number): void {
    this.#usedBytes -= bytes;
    for (const waiter of this.#waiting) {
      if (!this.#take(waiter.bytes)) return;
      this.#waiting.delete(waiter);
      waiter.start();
    }
  }

  #wait(bytes: number, signal: AbortSignal): Promise<void> {
    return withinTimeout({ ...this.#limit, signal }, async (limit) => {
      const started = Promise.withResolvers<void>();
      const waiter = { bytes, start: () => started.resolve() };
      this.#waiting.add(waiter);
      try {
        await rejectOnAbort(started.promise, limit);
      } catch (error) {
        // It can have been started in the same moment.
        this.#free(this.#waiting.delete(waiter) ? 0 : bytes);
        throw error instanceof TimeoutError ? new OverloadedError('too many requests') : error;
      }
    });
  }
}
