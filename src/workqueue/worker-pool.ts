import PQueue from 'p-queue';
import { noReconcileMetrics } from '../metrics/no-metrics.ts';
import type { SyncMetrics, ReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import { backoffMs } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { TimeoutError } from '../util/within-timeout.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import { isAbruptStop } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { requeueDelayMs, SyncError, TerminalError } from './outcome.ts';
import type { Outcome } from './outcome.ts';
import { SyncErrorLog } from './sync-error-log.ts';
import { logSync, newSyncRun } from './sync-report.ts';
import type { SyncRun, SyncResult, SyncReport } from './sync-report.ts';
import type { TakenItem, WorkQueue } from './work-queue.ts';

/** Context of one sync. */
export interface KeyHandlerContext extends SyncRun {
  /**
   * Aborts when the sync must end: after its timeout, or when the drain timeout of a shutdown is over.
   * It does not abort at the start of a shutdown, so that the sync can finish.
   */
  readonly signal: AbortSignal;
  /** Adds the controller, the key and the reconcileID to every line. */
  readonly log: Logger;
}

/**
 * Syncs one key. Returns an `Outcome`, or throws to be retried with backoff. A {@link TerminalError} is not
 * retried.
 */
export type KeyHandler<K> = (key: K, context: KeyHandlerContext) => Promise<Outcome>;

/** Dependencies of {@link WorkerPool}. */
export interface WorkerPoolDeps<K> {
  /** Name of the controller. */
  readonly name: string;
  readonly queue: WorkQueue<K>;
  readonly handler: KeyHandler<K>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Returns numbers in [0, 1), for reconcileIDs and jitter.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
}

/** Options of {@link WorkerPool}. */
export interface WorkerPoolOptions<K = unknown> {
  /**
   * Number of concurrent syncs.
   * @default 1
   */
  readonly concurrency?: number | undefined;
  /**
   * Name of the key's field in log lines: the kind of the object in lower camel case.
   * @default 'key'
   */
  readonly keyName?: string | undefined;
  /**
   * Time that syncs in flight have to finish after a stop before their signal aborts, in milliseconds.
   * @default 30_000
   */
  readonly drainTimeoutMs?: number | undefined;
  /**
   * Time after which the signal of a sync aborts, in milliseconds.
   * @default no timeout
   */
  readonly syncTimeoutMs?: number | undefined;
  /**
   * Number of retries after which a failing key is dropped: logged, counted, and not synced until it is
   * added again. Level-triggered controllers should not set it.
   * @default no limit
   */
  readonly maxRetries?: number | undefined;
  /**
   * Returns the minimum backoff of a key that failed with an error; undefined for that of the queue's rate limiter.
   * @default that of the rate limiter
   */
  readonly backoffOf?: ((error: unknown) => BackoffPolicy | undefined) | undefined;
  /**
   * Called after each sync, when its key has been forgotten or requeued.
   * @default `logSync`
   */
  readonly onSyncEnd?: ((report: SyncReport<K>, log: Logger) => void) | undefined;
  /** @default none */
  readonly metrics?: ReconcileMetrics | undefined;
}

/** How a sync ended. */
type Ending =
  | Outcome
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The handler did not return an Outcome. */
  | { readonly kind: 'invalid'; readonly got: string };

/**
 * Takes keys from a queue and calls the sync handler, with bounded concurrency.
 *
 * - Keys wait in the work queue, where they are merged and ordered, never in the pool. A key is taken
 *   only when a worker is free.
 * - A failing handler affects only its key: a throw, a rejection or a result that is not an Outcome is
 *   retried. Only `#settle` decides whether a key is forgotten or requeued.
 * - On abort the queue is shut down and no key is taken. Syncs in flight may finish; their signal aborts
 *   after the drain timeout, or at once if the abort is an `AbruptStop`. `run` resolves when the last
 *   sync has ended. Syncs that exceed the drain timeout are logged.
 */
export class WorkerPool<K> implements Runnable {
  readonly name: string;
  readonly #queue: WorkQueue<K>;
  readonly #handler: KeyHandler<K>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #concurrency: number;
  readonly #keyName: string;
  readonly #drainTimeoutMs: number;
  readonly #syncTimeoutMs: number | undefined;
  readonly #maxRetries: number;
  readonly #backoffOf: (error: unknown) => BackoffPolicy | undefined;
  readonly #onSyncEnd: (report: SyncReport<K>, log: Logger) => void;
  readonly #random: () => number;
  readonly #metrics: SyncMetrics;
  readonly #errors: SyncErrorLog;
  /** Aborts the signal of all syncs when the drain timeout is over. */
  readonly #cutOff = new AbortController();
  /** Number of syncs in flight. */
  #inFlight = 0;

  constructor(deps: WorkerPoolDeps<K>, options: WorkerPoolOptions<K> = {}) {
    const {
      concurrency = 1,
      keyName = 'key',
      drainTimeoutMs = 30_000,
      syncTimeoutMs,
      maxRetries = Number.POSITIVE_INFINITY,
      backoffOf = () => undefined,
      onSyncEnd = logSync,
      metrics = noReconcileMetrics,
    } = options;
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      throw new RangeError(`concurrency must be a positive integer: got ${concurrency}`);
    }
    if (!(drainTimeoutMs >= 0)) {
      throw new RangeError(`drainTimeoutMs must not be negative: got ${drainTimeoutMs}`);
    }
    if (syncTimeoutMs !== undefined && !(syncTimeoutMs > 0)) {
      throw new RangeError(`syncTimeoutMs must be a positive number: got ${syncTimeoutMs}`);
    }
    if (!(maxRetries >= 0)) {
      throw new RangeError(`maxRetries must not be negative: got ${maxRetries}`);
    }
    this.name = deps.name;
    this.#queue = deps.queue;
    this.#handler = deps.handler;
    this.#clock = deps.clock;
    this.#log = deps.log.with({ controller: deps.name });
    this.#concurrency = concurrency;
    this.#keyName = keyName;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#syncTimeoutMs = syncTimeoutMs;
    this.#maxRetries = maxRetries;
    this.#backoffOf = backoffOf;
    this.#onSyncEnd = onSyncEnd;
    this.#random = deps.random ?? Math.random;
    this.#metrics = metrics.controller(deps.name, concurrency);
    this.#errors = new SyncErrorLog(deps.clock, this.#log);
    this.#queue.expectWorkers();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#log.info('Starting workers', { count: this.#concurrency });
    this.#queue.workersStarted();
    const stopping = new Deferred();
    const stop = () => {
      this.#queue.shutDown();
      stopping.resolve();
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const workers = new PQueue({ concurrency: this.#concurrency });
    const internalErrors: unknown[] = [];
    for (let worker = 0; worker < this.#concurrency; worker++) {
      // `#sync` handles errors of the handler, so any other error is an internal one.
      workers
        .add(() => this.#work(signal))
        .catch((error: unknown) => void internalErrors.push(error))
        .finally(stop);
    }
    await stopping.promise;
    await this.#drain(workers, signal);
    signal.removeEventListener('abort', stop);
    if (internalErrors.length > 0) throw internalErrors[0];
  }

  /** Syncs one key after another until the queue is shut down. */
  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const taken = this.#queue.tryTake() ?? (await this.#queue.take());
      if (!taken) return;
      if (signal.aborted) {
        // The queue returned it at the moment of the stop.
        this.#queue.done(taken.key);
        return;
      }
      await this.#sync(taken);
    }
  }

  async #drain(workers: PQueue, signal: AbortSignal): Promise<void> {
    this.#log.info('Shutting down workers', { inFlight: this.#inFlight });
    if (isAbruptStop(signal.reason)) this.#cutOff.abort(signal.reason);
    const cancel = this.#clock.after(this.#drainTimeoutMs, () => {
      const keys = this.#queue.snapshot().processing.map(({ key }) => key);
      this.#log.error(undefined, 'Syncs exceeded the drain timeout; aborting them', {
        after: formatDuration(this.#drainTimeoutMs),
        keys: keys.slice(0, 10),
        count: keys.length,
      });
      this.#cutOff.abort(new Error('The process is stopping and the drain timeout is over'));
    });
    await workers.onIdle();
    cancel();
    this.#errors.flush();
  }

  async #sync(taken: TakenItem<K>): Promise<void> {
    const { key } = taken;
    const sync = newSyncRun(taken, this.#queue.retries(key), this.#random);
    const log = this.#log.with({ [this.#keyName]: key, reconcileID: sync.reconcileID });
    this.#metrics.started();
    this.#inFlight++;
    const ending = await this.#handle(key, sync, log);
    this.#inFlight--;
    const settled = this.#settle(taken, ending, log);
    const tookMs = this.#queue.done(key);
    this.#metrics.finished(settled.result, tookMs);
    this.#onSyncEnd({ key, ...sync, ...settled, tookMs }, log);
  }

  async #handle(key: K, sync: SyncRun, log: Logger): Promise<Ending> {
    const names = { controller: this.name, key: String(key) };
    const limit = syncSignal(this.#clock, this.#cutOff.signal, this.#syncTimeoutMs, () =>
      this.#metrics.timedOut(),
    );
    try {
      const { causes } = sync;
      const pause = this.#clock.active?.({ kind: 'sync', ...names, causes });
      if (pause) await pause;
      const result: unknown = await this.#handler(key, { ...sync, signal: limit.signal, log });
      return isOutcome(result)
        ? result
        : { kind: 'invalid', got: result === null ? 'null' : typeof result };
    } catch (error) {
      return { kind: 'failed', error };
    } finally {
      limit.dispose();
      void this.#clock.active?.({ kind: 'syncEnd', ...names });
    }
  }

  /** Forgets or requeues the key; the only caller of `forget`. */
  #settle(taken: TakenItem<K>, ending: Ending, log: Logger): Omit<SyncResult, 'tookMs'> {
    const { key, priority, causes } = taken;
    switch (ending.kind) {
      case 'done':
        this.#queue.forget(key);
        return { result: 'done' };
      case 'requeueAfter':
      case 'requeueAt': {
        const requeueAfterMs = requeueDelayMs(ending, this.#clock, this.#random);
        this.#queue.forget(key);
        const dueCause = planned(ending.reason);
        this.#queue.add(key, { afterMs: requeueAfterMs, priority, dueCause });
        const requeueAtMs = ending.kind === 'requeueAt' ? ending.atMs : undefined;
        return { result: 'requeueAfter', requeueAfterMs, requeueAtMs, reason: ending.reason };
      }
      case 'postponed': {
        // The causes of this sync remain for the next one.
        const { ms, reason } = ending;
        const text = reason === undefined ? 'postponed' : `postponed: ${reason}`;
        const cause = [...causes, { text, times: 1 }];
        this.#queue.add(key, { afterMs: ms, priority, cause });
        return { result: 'requeueAfter', requeueAfterMs: ms, postponed: true, reason };
      }
      case 'invalid':
        return {
          result: 'panic',
          ...this.#retry(
            taken,
            new TypeError(
              `The handler returned ${ending.got} instead of an Outcome: end it with return done(), requeueAfter(ms), requeueAt(ms) or postpone(ms), or throw to retry with backoff`,
            ),
            log,
          ),
        };
      case 'failed':
        if (this.#cutOff.signal.aborted) {
          log.v(2).info('Sync was aborted by the shutdown', { err: ending.error });
          return { result: 'cutOff', error: ending.error };
        }
        if (ending.error instanceof TerminalError) {
          this.#queue.forget(key);
          this.#errors.log(key, ending.error, 'Error syncing; not retrying a terminal error', log);
          return { result: 'terminalError', error: ending.error };
        }
        return { result: 'error', ...this.#retry(taken, ending.error, log) };
    }
  }

  #retry(
    { key, priority }: TakenItem<K>,
    error: unknown,
    log: Logger,
  ): Pick<SyncResult, 'error' | 'reason' | 'requeueAfterMs'> {
    const attempt = this.#queue.retries(key) + 1;
    if (attempt > this.#maxRetries) {
      this.#queue.forget(key);
      this.#metrics.dropped();
      this.#errors.log(key, error, 'Error syncing; dropping the key after too many retries', log, {
        attempt,
      });
      return { error, reason: 'dropped' };
    }
    const cause = `retry after an error: ${brief(error)}`;
    const policy = this.#backoffOf(error);
    const slowMs = policy ? backoffMs(policy, attempt - 1) : 0;
    const atLeastMs = Math.max(slowMs, (error instanceof SyncError && error.retryAfterMs) || 0);
    const requeueAfterMs = this.#queue.addRateLimited(key, { priority, cause, atLeastMs });
    if (requeueAfterMs === undefined) {
      this.#errors.log(
        key,
        error,
        'Error syncing; not requeued because the process is stopping',
        log,
      );
    } else {
      const requeueAfter = formatDuration(requeueAfterMs);
      const fields = { attempt, requeueAfter };
      this.#errors.log(key, error, 'Error syncing; requeuing for later retry', log, fields);
    }
    return { error, requeueAfterMs };
  }
}

function planned(reason: string | undefined): string {
  return reason === undefined ? 'requeued as planned' : `requeued as planned: ${reason}`;
}

/** Maximum length of an error message in a cause. */
const MAX_BRIEF_LENGTH = 120;

function brief(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.length > MAX_BRIEF_LENGTH ? `${text.slice(0, MAX_BRIEF_LENGTH)}…` : text;
}

function isOutcome(result: unknown): result is Outcome {
  if (typeof result !== 'object' || result === null || !('kind' in result)) return false;
  if (result.kind === 'done') return true;
  if (result.kind === 'requeueAt') return 'atMs' in result && Number.isFinite(result.atMs);
  const isLater = result.kind === 'requeueAfter' || result.kind === 'postponed';
  return isLater && 'ms' in result && Number.isFinite(result.ms);
}

/** Signal of one sync. */
export interface SyncSignal {
  readonly signal: AbortSignal;
  /** Releases the timer and the listener. */
  dispose(): void;
}

/**
 * Returns a signal that aborts with `cutOff`, or after the timeout.
 *
 * @param onTimeout called before the signal aborts
 */
export function syncSignal(
  clock: Clock,
  cutOff: AbortSignal,
  timeoutMs: number | undefined,
  onTimeout: () => void,
): SyncSignal {
  if (timeoutMs === undefined) return { signal: cutOff, dispose: () => undefined };
  const controller = new AbortController();
  const abort = () => controller.abort(cutOff.reason);
  if (cutOff.aborted) abort();
  cutOff.addEventListener('abort', abort, { once: true });
  const cancel = clock.after(timeoutMs, () => {
    onTimeout();
    controller.abort(new TimeoutError(`The sync took longer than ${formatDuration(timeoutMs)}`));
  });
  return {
    signal: controller.signal,
    dispose: () => {
      cancel();
      cutOff.removeEventListener('abort', abort);
    },
  };
}
