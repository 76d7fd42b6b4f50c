import type { Clock } from '../util/clock.ts';

/** Longest name of an object in the API (RFC 1123 subdomain). */
const LONGEST_NAME = 253;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Names for events: `<involved object>.<hex of nanoseconds since the epoch>`, as client-go's. Our
 * clock counts milliseconds; the digits below are random at first, so that two processes differ,
 * and no two names of one source are the same.
 */
export class EventNames {
  readonly #clock: Clock;
  readonly #random: () => number;
  #lastNanos = 0n;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** A name for an event about an object called `involved`; a UUID if that would not be a valid name. */
  next(involved: string): string {
    const name = `${involved}.${this.#nanos().toString(16)}`;
    return name.length <= LONGEST_NAME && SUBDOMAIN.test(name) ? name : this.#uuid();
  }

  #nanos(): bigint {
    const millis = BigInt(Math.floor(this.#clock.now()));
    const nanos = millis * 1_000_000n + BigInt(Math.floor(this.#random() * 1e6));
    this.#lastNanos = nanos > this.#lastNanos ? nanos : this.#lastNanos + 1n;
    return this.#lastNanos;
  }

  /** Version 4. */
  #uuid(): string {
    return 'xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx'.replaceAll(/[xv]/g, (digit) =>
      digit === 'x'
        ? Math.floor(this.#random() * 16).toString(16)
        : (8 + Math.floor(this.#random() * 4)).toString(16),
    );
  }
}
