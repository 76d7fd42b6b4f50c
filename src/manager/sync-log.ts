import type { ObjectKey } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { logSync } from '../workqueue/sync-report.ts';
import type { SyncRun, SyncReport } from '../workqueue/sync-report.ts';
import { formatCall, SyncRecorder } from './sync-history.ts';
import type { SyncHistory } from './sync-history.ts';
import { formatDuration } from '../util/duration.ts';

export interface SyncLogDeps {
  readonly controller: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly log: Logger;
  readonly history: SyncHistory | undefined;
}

/**
 * Takes down what the runs of a controller do, for their log lines and for the history. Details cost,
 * so there are none unless somebody can see them: there is a history, or the log is at `-v=4`.
 */
export class SyncLog {
  readonly #deps: SyncLogDeps;
  readonly #detailLog: Logger;
  readonly #holds: Postponements;
  /** Of the runs under way. */
  readonly #recorders = new Map<ObjectKey, SyncRecorder>();

  constructor(deps: SyncLogDeps) {
    this.#deps = deps;
    this.#detailLog = deps.log.v(4);
    this.#holds = new Postponements(deps.clock);
  }

  /** True if somebody can see details right now. */
  get isDetailed(): boolean {
    return this.#deps.history !== undefined || this.#detailLog.enabled;
  }

  /** It is the turn of `key`, and it may not run. */
  held(key: ObjectKey, reason: string): void {
    if (this.isDetailed) this.#holds.add(key, reason);
  }

  /** A run of `key` begins, which until its end has the key for itself. */
  begin(key: ObjectKey, run: SyncRun): SyncRecorder | undefined {
    const held = this.#holds.take(key);
    if (!this.isDetailed) return undefined;
    const { controller, clock, history } = this.#deps;
    const recorder = new SyncRecorder(controller, key, run, held, clock.now());
    this.#recorders.set(key, recorder);
    history?.began(recorder);
    return recorder;
  }

  /** No key runs any more. */
  close(): void {
    this.#holds.clear();
  }

  /** A run has ended, or a key was put off before it began. */
  finished(report: SyncReport<ObjectKey>, log: Logger): void {
    const recorder = this.#recorders.get(report.key);
    if (!recorder) {
      logSync(report, log);
      return;
    }
    this.#recorders.delete(report.key);
    recorder.ended(report);
    this.#deps.history?.ended(recorder);
    const { held, calls, omittedCalls } = recorder.record;
    logSync(report, log, {
      ...(held.length > 0 && { held: held.map(formatPostponement) }),
      calls: calls.map(formatCall),
      ...(omittedCalls > 0 && { omittedCalls }),
    });
  }
}

/** Why a key did not run though it was its turn. */
export interface Postponement {
  /** `a cache lags behind own writes` */
  readonly reason: string;
  /** How often in a row it was found so. */
  readonly times: number;
  /** For how long, in milliseconds. */
  readonly ms: number;
}

/** What is known of a key that is held now. */
interface Held {
  readonly holds: Map<string, Postponement>;
  /** The reason that held it last, and since when. */
  reason: string;
  sinceMs: number;
}

/** How long the keys that do not run yet have been held, and why. Reasons are few: the program's own. */
export class Postponements {
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
  take(key: ObjectKey): readonly Postponement[] {
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
export function formatPostponement({ reason, times, ms }: Postponement): string {
  const took = formatDuration(Math.round(ms));
  return times === 1 ? `${reason}: ${took}` : `${reason}: ${took} (${times} times)`;
}
