import type { ObjectKey } from '../../api/object-key.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { logSync } from '../../workqueue/sync-report.ts';
import type { SyncRun, SyncReport } from '../../workqueue/sync-report.ts';
import { formatHold, Holds } from '../holds.ts';
import { formatCall, RunRecorder } from './run-history.ts';
import type { RunHistory } from './run-history.ts';

/** Dependencies of `RunLog`. */
export interface RunLogDeps {
  readonly controller: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly log: Logger;
  readonly history: RunHistory | undefined;
}

/**
 * Takes down what the runs of a controller do, for their log lines and for the history. Details cost,
 * so there are none unless somebody can see them: there is a history, or the log is at `-v=4`.
 */
export class RunLog {
  readonly #deps: RunLogDeps;
  readonly #detailLog: Logger;
  readonly #holds: Holds;
  /** Of the runs under way. */
  readonly #recorders = new Map<ObjectKey, RunRecorder>();

  constructor(deps: RunLogDeps) {
    this.#deps = deps;
    this.#detailLog = deps.log.v(4);
    this.#holds = new Holds(deps.clock);
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
  begin(key: ObjectKey, run: SyncRun): RunRecorder | undefined {
    const held = this.#holds.take(key);
    if (!this.isDetailed) return undefined;
    const { controller, clock, history } = this.#deps;
    const recorder = new RunRecorder(controller, key, run, held, clock.now());
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
      ...(held.length > 0 && { held: held.map(formatHold) }),
      calls: calls.map(formatCall),
      ...(omittedCalls > 0 && { omittedCalls }),
    });
  }
}
