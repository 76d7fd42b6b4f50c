import type { Clock } from '../util/clock.ts';

/** Range of the delay for each watch that expires with others, in milliseconds. */
const RANGE_PER_WATCH_MS = 50;

/** Longest delay, in milliseconds; client-go spreads all relists over as long. */
const MAX_RANGE_MS = 800;

/** Expiries within this time of each other have one cause, in milliseconds. */
const TOGETHER_MS = 1000;

/**
 * Delay of the first relist after a watch has expired. The server is available then, so a single relist
 * follows at once. After a compaction or a restart of the server, many watches expire together, and each
 * list costs the server as much as its objects. So the delay is random, up to 50 ms for each watch that
 * has expired together with this one, and at most 0.8 s. Shared by the reflectors of one server.
 */
export class RelistSpread {
  readonly #clock: Clock;
  #lastMs = -Infinity;
  #together = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records an expired watch and returns the delay of its relist, in milliseconds. */
  next(random: () => number): number {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#lastMs >= TOGETHER_MS) this.#together = 0;
    this.#lastMs = nowMs;
    this.#together++;
    return random() * Math.min(this.#together * RANGE_PER_WATCH_MS, MAX_RANGE_MS);
  }
}
