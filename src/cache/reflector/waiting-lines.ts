import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import type { Progress } from './progress.ts';

/** As much of an informer as it takes to say what it waits for. */
export interface Awaited {
  readonly name: string;
  readonly hasSynced: boolean;
  readonly progress: Pick<Progress, 'phase' | 'missing' | 'lastError' | 'lastErrorToldMs'>;
}

/** First pause between two rounds of lines, in milliseconds; it doubles. */
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** So many caches are named in a line. */
const MOST_NAMES = 10;

interface Waiting {
  readonly cache: Awaited;
  readonly sinceMs: number;
}

/** Caches that wait for the same reason. */
interface Group {
  readonly names: string[];
  /** Since when the first of them waits. */
  readonly sinceMs: number;
  readonly why: { readonly lastError?: string; readonly phase?: string };
}

/**
 * Says now and then which caches are not there yet, for how long and why: in one line those that
 * wait for the same reason, as all do while a server is down.
 *
 * Reflectors tell of their failures too, when they begin and every few minutes. What one has said
 * lately is not said again: a round leaves out whoever told of its error since the middle of the
 * pause before, and resources that the server does not have.
 */
export class WaitingLines {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #waiting = new Set<Waiting>();
  #pauseMs = 0;
  #dueMs = Infinity;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** `cache` is waited for from now on. */
  add(cache: Awaited): void {
    const sinceMs = this.#clock.monotonic();
    this.#waiting.add({ cache, sinceMs });
    if (this.#dueMs <= sinceMs + FIRST_PAUSE_MS) return;
    this.#arm(FIRST_PAUSE_MS);
  }

  stop(): void {
    this.#cancel?.();
    this.#dueMs = Infinity;
    this.#waiting.clear();
  }

  #arm(pauseMs: number): void {
    this.#cancel?.();
    this.#pauseMs = pauseMs;
    this.#dueMs = this.#clock.monotonic() + pauseMs;
    this.#cancel = this.#clock.after(pauseMs, this.#round);
  }

  readonly #round = (): void => {
    const latelyMs = this.#clock.monotonic() - this.#pauseMs / 2;
    const reasons = new Map<string, Group>();
    for (const waiting of this.#waiting) {
      const { name, hasSynced, progress } = waiting.cache;
      if (hasSynced) this.#waiting.delete(waiting);
      if (hasSynced || progress.missing) continue;
      const { lastError, lastErrorToldMs = -Infinity, phase } = progress;
      if (lastErrorToldMs > latelyMs) continue;
      const why = lastError === undefined ? { phase } : { lastError: messageOf(lastError) };
      const reason = why.lastError ?? phase;
      const group = reasons.get(reason) ?? { why, sinceMs: waiting.sinceMs, names: [] };
      reasons.set(reason, group);
      group.names.push(name);
    }
    for (const group of reasons.values()) this.#tell(group);
    if (this.#waiting.size > 0) this.#arm(Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS));
    else this.stop();
  };

  /** They are in the order in which they came: the first has waited for longest. */
  #tell({ names, sinceMs, why }: Group): void {
    const more = names.length - MOST_NAMES;
    this.#log.info('Waiting for caches', {
      caches: names.slice(0, MOST_NAMES).join(', '),
      ...(more > 0 ? { more } : {}),
      forSeconds: Math.round((this.#clock.monotonic() - sinceMs) / 1000),
      ...why,
    });
  }
}
