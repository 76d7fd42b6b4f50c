import { systemClock } from '../../util/clock.ts';
import type { Clock } from '../../util/clock.ts';

/** Options of `IncompleteBodies`. */
export interface IncompleteBodiesOptions<B> {
  /** Maximum number of bytes of all bodies. */
  readonly maxBytes: number;
  /** Ends the request of a body. */
  readonly giveUp: (body: B) => void;
  /** @default systemClock */
  readonly clock?: Pick<Clock, 'monotonic'>;
}

/** Part of the maximum that is free after bodies were given up, so that not each chunk compares all bodies. */
const FREE = 0.1;

/**
 * The bodies that are being received. Without a common limit, a client could fill the memory with their beginnings.
 * Beyond it, the bodies with the lowest average rate are given up: a client that stops sending has a lower rate over
 * time, and a large body of another client stays.
 */
export class IncompleteBodies<B> {
  readonly #maxBytes: number;
  readonly #giveUp: (body: B) => void;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #received = new Map<B, { bytes: number; readonly startMs: number }>();
  #total = 0;

  constructor({ maxBytes, giveUp, clock = systemClock }: IncompleteBodiesOptions<B>) {
    this.#maxBytes = maxBytes;
    this.#giveUp = giveUp;
    this.#clock = clock;
  }

  /** Counts received bytes of a body. */
  add(body: B, bytes: number): void {
    const received = this.#received.get(body) ?? { bytes: 0, startMs: this.#clock.monotonic() };
    received.bytes += bytes;
    this.#received.set(body, received);
    this.#total += bytes;
    if (this.#total > this.#maxBytes) this.#giveUpSlow();
  }

  /** Removes a body that is complete or has failed. */
  delete(body: B): void {
    this.#total -= this.#received.get(body)?.bytes ?? 0;
    this.#received.delete(body);
  }

  #giveUpSlow(): void {
    const now = this.#clock.monotonic();
    // The start of a body has an infinite rate. Of those with the same rate, the oldest is the first.
    const slowestFirst = [...this.#received]
      .map(([body, { bytes, startMs }]) => ({ body, msPerByte: (now - startMs) / bytes }))
      .toSorted((a, b) => b.msPerByte - a.msPerByte);
    for (const { body } of slowestFirst) {
      if (this.#total <= this.#maxBytes * (1 - FREE)) return;
      this.delete(body);
      this.#giveUp(body);
    }
  }
}
