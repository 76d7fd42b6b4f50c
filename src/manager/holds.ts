import type { ObjectKey } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';

/** Why a key did not run though it was its turn. */
export interface Hold {
  /** `a cache lags behind own writes` */
  readonly reason: string;
  /** How often in a row it was found so. */
  readonly times: number;
  /** For how long, in milliseconds. */
  readonly ms: number;
}

/** What is known of a key that is held now. */
interface Held {
  readonly holds: Map<string, Hold>;
  /** The reason that held it last, and since when. */
  reason: string;
  sinceMs: number;
}

/** How long the keys that do not run yet have been held, and why. Reasons are few: the program's own. */
export class Holds {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #held = new Map<ObjectKey, Held>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** `key` may not run yet. */
  add(key: ObjectKey, reason: string): void {
    const nowMs = this.#clock.monotonic();
    const held = this.#held.get(key) ?? { holds: new Map(), reason, sinceMs: nowMs };
    extend(held, nowMs);
    const { times, ms } = held.holds.get(reason) ?? { times: 0, ms: 0 };
    held.holds.set(reason, { reason, times: times + 1, ms });
    held.reason = reason;
    this.#held.set(key, held);
  }

  /** `key` runs: what held it until now. */
  take(key: ObjectKey): readonly Hold[] {
    const held = this.#held.get(key);
    if (!held) return [];
    this.#held.delete(key);
    extend(held, this.#clock.monotonic());
    return [...held.holds.values()];
  }

  clear(): void {
    this.#held.clear();
  }
}

/** The time that has passed counts for the reason that held the key. */
function extend(held: Held, nowMs: number): void {
  const hold = held.holds.get(held.reason);
  if (hold) held.holds.set(held.reason, { ...hold, ms: hold.ms + nowMs - held.sinceMs });
  held.sinceMs = nowMs;
}

/** `a cache lags behind own writes: 150ms`, and how often if it was so more than once. */
export function formatHold({ reason, times, ms }: Hold): string {
  const took = formatDuration(Math.round(ms));
  return times === 1 ? `${reason}: ${took}` : `${reason}: ${took} (${times} times)`;
}
