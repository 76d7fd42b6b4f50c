import type { ObjectKey } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import { logSync } from '../workqueue/sync-report.ts';
import type { SyncRun, SyncReport } from '../workqueue/sync-report.ts';
import { formatCall, SyncRecorder } from './sync-history.ts';
import type { FinishedCall } from '../client/observed-client.ts';
import type { ServiceCall } from './call-service.ts';
import type { ControllerObserver } from './controller-options.ts';
import type { Postponement, SyncHistory } from './sync-history.ts';

/** Dependencies of `SyncLog`. */
export interface SyncLogDeps {
  readonly controller: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly log: Logger;
  readonly history: SyncHistory | undefined;
}

/**
 * Records the details of a controller's syncs for the log and for the sync history. Details cost time
 * and memory, so they are recorded only with a history or at `-v=4`.
 */
export class SyncLog implements ControllerObserver {
  readonly #deps: SyncLogDeps;
  readonly #detailLog: Logger;
  readonly #postponements: Postponements;
  /** Recorders of running syncs. */
  readonly #recorders = new Map<ObjectKey, SyncRecorder>();

  constructor(deps: SyncLogDeps) {
    this.#deps = deps;
    this.#detailLog = deps.log.v(4);
    this.#postponements = new Postponements(deps.clock);
  }

  /** Whether details are recorded. */
  get isDetailed(): boolean {
    return this.#deps.history !== undefined || this.#detailLog.enabled;
  }

  started(key: ObjectKey, run: SyncRun): void {
    const postponed = this.#postponements.take(key);
    if (!this.isDetailed) return;
    const { controller, clock, history } = this.#deps;
    const recorder = new SyncRecorder(controller, key, run, postponed, clock);
    this.#recorders.set(key, recorder);
    history?.start(recorder);
  }

  called(key: ObjectKey, call: FinishedCall): void {
    this.#recorders.get(key)?.recordCall(call);
  }

  calledService(key: ObjectKey, call: ServiceCall): void {
    this.#recorders.get(key)?.recordCall(call);
  }

  /** Logs a sync that has finished, or that was postponed before it started. */
  ended(report: SyncReport<ObjectKey>, log: Logger): void {
    const recorder = this.#recorders.get(report.key);
    if (!recorder) {
      const { key, reason = 'postponed' } = report;
      if (report.postponed && this.isDetailed) this.#postponements.add(key, reason);
      logSync(report, log);
      return;
    }
    this.#recorders.delete(report.key);
    recorder.finish(report);
    this.#deps.history?.finish(recorder);
    const { postponed, calls, omittedCalls } = recorder.record;
    logSync(report, log, {
      ...(postponed.length > 0 && { postponed: postponed.map(formatPostponement) }),
      calls: calls.map(formatCall),
      ...(omittedCalls > 0 && { omittedCalls }),
    });
  }

  /** Forgets postponed keys. */
  stopped(): void {
    this.#postponements.clear();
  }
}

interface PostponedKey {
  readonly byReason: Map<string, Postponement>;
  /** Current reason, and its start. */
  reason: string;
  sinceMs: number;
}

/** Remembers how long keys have been postponed and why. The number of distinct reasons is small. */
export class Postponements {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #keys = new Map<ObjectKey, PostponedKey>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Records that `key` is postponed. */
  add(key: ObjectKey, reason: string): void {
    const nowMs = this.#clock.monotonic();
    const known = this.#keys.get(key) ?? { byReason: new Map(), reason, sinceMs: nowMs };
    addElapsedTime(known, nowMs);
    const { times, ms } = known.byReason.get(reason) ?? { times: 0, ms: 0 };
    known.byReason.set(reason, { reason, times: times + 1, ms });
    known.reason = reason;
    this.#keys.set(key, known);
  }

  /** Returns and forgets the postponements of `key`, when its sync starts. */
  take(key: ObjectKey): readonly Postponement[] {
    const known = this.#keys.get(key);
    if (!known) return [];
    this.#keys.delete(key);
    addElapsedTime(known, this.#clock.monotonic());
    return [...known.byReason.values()];
  }

  clear(): void {
    this.#keys.clear();
  }
}

/** Adds the elapsed time to the current reason. */
function addElapsedTime(known: PostponedKey, nowMs: number): void {
  const current = known.byReason.get(known.reason);
  if (current) {
    known.byReason.set(known.reason, { ...current, ms: current.ms + nowMs - known.sinceMs });
  }
  known.sinceMs = nowMs;
}

/** Formats a postponement: `waiting for a cache to show own writes: 150ms (3 times)`. */
export function formatPostponement({ reason, times, ms }: Postponement): string {
  const duration = formatDuration(Math.round(ms));
  return times === 1 ? `${reason}: ${duration}` : `${reason}: ${duration} (${times} times)`;
}
