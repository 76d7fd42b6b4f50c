import PQueue from 'p-queue';
import { noReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import type { ControllerMetrics, ReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import { AbruptStop } from '../util/runnable.ts';
import { backoffMs } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { RateLimitedLog, subjectFields } from '../util/rate-limited-log.ts';
import type { Runnable } from '../util/runnable.ts';
import { errorCause } from './sync-error-log.ts';
import { TerminalError } from './outcome.ts';
import type { Outcome } from './outcome.ts';
import { SLOW_KEY_BACKOFF } from './rate-limiter.ts';
import { logSync, newSyncRun } from './sync-report.ts';
import type { SyncRun, SyncResult, SyncReport } from './sync-report.ts';
import type { TakenItem, WorkQueue } from './work-queue.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const POOL_OPTIONS: OptionNames<WorkerPoolOptions> = {
  concurrency: true,
  keyName: true,
  drainTimeoutMs: true,
  syncTimeoutMs: true,
  maxRetries: true,
  isSlow: true,
  onSyncEnd: true,
  metrics: true,
};

/** What a handler is given besides its key. */
export interface KeyHandlerContext extends SyncRun {
  /**
   * Aborts when the daemon can wait for this run no longer. It does not abort at the beginning of a
   * shutdown: until the grace is over, the run may finish what it does.
   */
  readonly signal: AbortSignal;
  /** Names the controller, the key and the run on every line. */
  readonly log: Logger;
}

/**
 * Deals with one key. Returns what is planned for it, or throws to be called again with backoff; a
 * `TerminalError` says that this would not help.
 */
export type KeyHandler<K> = (key: K, context: KeyHandlerContext) => Promise<Outcome>;

/** Dependencies of `WorkerPool`. */
export interface WorkerPoolDeps<K> {
  /** The controller it works for. */
  readonly name: string;
  readonly queue: WorkQueue<K>;
  readonly handler: KeyHandler<K>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Numbers in [0, 1), for the names of runs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
}

/** Options of `WorkerPool`. */
export interface WorkerPoolOptions<K = unknown> {
  /**
   * How many keys are dealt with at once.
   * @default 1
   */
  readonly concurrency?: number | undefined;
  /**
   * What the key is called in log lines; the kind of its object, lower camel case.
   * @default 'key'
   */
  readonly keyName?: string | undefined;
  /**
   * Milliseconds that runs under way have to finish after a stop, before their signal aborts.
   * @default 30_000
   */
  readonly drainTimeoutMs?: number | undefined;
  /**
   * Milliseconds a run may take before its signal aborts.
   * @default for ever
   */
  readonly syncTimeoutMs?: number | undefined;
  /**
   * How often a key that fails is tried again before it is given up: logged, counted, and not run
   * again until it is added anew. A level-triggered system has no use for that, unless others look
   * after what is given up.
   * @default for ever
   */
  readonly maxRetries?: number | undefined;
  /**
   * True of an error that another try rarely helps: the key is retried at the pace of
   * `SLOW_KEY_BACKOFF`.
   * @default false of every error
   */
  readonly isSlow?: ((error: unknown) => boolean) | undefined;
  /**
   * Told of each run once it has ended and been settled.
   * @default `logSync`
   */
  readonly onSyncEnd?: ((report: SyncReport<K>, log: Logger) => void) | undefined;
  /** @default none */
  readonly metrics?: ReconcileMetrics | undefined;
}

/** How a run of the handler ended. */
type Ending =
  | Outcome
  | { readonly kind: 'failed'; readonly error: unknown }
  /** What came back is no Outcome. */
  | { readonly kind: 'broken'; readonly got: string };

/**
 * Takes keys from a queue and has the handler deal with them, a bounded number at once.
 *
 * - Keys wait in the work queue, where they merge and keep their order, and never in the pool: one
 *   is taken only when there is a free slot.
 * - Whatever a handler does, it costs nothing but its own run: sync throws, rejections and results
 *   that are no Outcome are errors of its key. `#settle` alone decides what becomes of the key.
 * - On abort the queue is shut down and nothing is handed out any more; runs under way finish, and
 *   are told to hurry by their own signal when the grace is over, at once if the abort is an
 *   `AbruptStop`. `run` resolves when the last one has ended: one that ignores its signal is waited
 *   for, and named in the log.
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
  readonly #isSlow: (error: unknown) => boolean;
  readonly #onSyncEnd: (report: SyncReport<K>, log: Logger) => void;
  readonly #random: () => number;
  readonly #metrics: ControllerMetrics;
  readonly #errors: RateLimitedLog;
  /** The signal of all runs: aborts when the grace is over. */
  readonly #cutOff = new AbortController();

  constructor(deps: WorkerPoolDeps<K>, options: WorkerPoolOptions<K> = {}) {
    checkOptions(options, POOL_OPTIONS, 'WorkerPool');
    const {
      concurrency = 1,
      keyName = 'key',
      drainTimeoutMs = 30_000,
      syncTimeoutMs,
      maxRetries = Number.POSITIVE_INFINITY,
      isSlow = () => false,
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
    this.#isSlow = isSlow;
    this.#onSyncEnd = onSyncEnd;
    this.#random = deps.random ?? Math.random;
    this.#metrics = metrics.controller(deps.name, concurrency);
    this.#errors = new RateLimitedLog(deps.clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#log.info('Starting workers', { count: this.#concurrency });
    const slots = new PQueue({ concurrency: this.#concurrency });
    const faults: unknown[] = [];
    for (;;) {
      const taken = await this.#queue.take(signal);
      if (!taken) break;
      if (signal.aborted) {
        // It was handed out in the very moment of the stop.
        this.#queue.done(taken.key);
        break;
      }
      // `#work` deals with every error there may be; one that gets here is a fault of the house.
      slots
        .add(() => this.#work(taken))
        .catch((fault: unknown) => {
          faults.push(fault);
          this.#queue.shutDown();
        });
      if (slots.pending === this.#concurrency) await freeSlot(slots, signal);
    }
    await this.#drain(slots, signal);
    if (faults.length > 0) throw faults[0];
  }

  async #drain(slots: PQueue, signal: AbortSignal): Promise<void> {
    this.#queue.shutDown();
    this.#log.info('Shutting down workers', { inFlight: slots.pending });
    if (signal.reason instanceof AbruptStop) this.#cutOff.abort(signal.reason);
    const cancel = this.#clock.after(this.#drainTimeoutMs, () => {
      const keys = this.#queue.snapshot().processing.map(({ key }) => key);
      this.#log.error(undefined, 'Runs did not finish in time; telling them to stop', {
        after: formatDuration(this.#drainTimeoutMs),
        keys: keys.slice(0, 10),
        count: keys.length,
      });
      this.#cutOff.abort(new Error('The daemon is stopping and its grace is over'));
    });
    await slots.onIdle();
    cancel();
    this.#errors.flush();
  }

  async #work(taken: TakenItem<K>): Promise<void> {
    const { key } = taken;
    const run = newSyncRun(taken, this.#queue.retries(key), this.#random);
    const log = this.#log.with({ [this.#keyName]: key, reconcileID: run.reconcileID });
    const startedMs = this.#clock.monotonic();
    this.#metrics.started();
    const ending = await this.#handle(key, run, log);
    const settled = this.#settle(taken, ending, log);
    const tookMs = this.#clock.monotonic() - startedMs;
    this.#metrics.finished(settled.result, tookMs);
    this.#queue.done(key);
    this.#onSyncEnd({ key, ...run, ...settled, tookMs }, log);
  }

  async #handle(key: K, run: SyncRun, log: Logger): Promise<Ending> {
    const life = runLife(this.#clock, this.#cutOff.signal, this.#syncTimeoutMs, () =>
      this.#metrics.timedOut(),
    );
    try {
      const result: unknown = await this.#handler(key, { ...run, signal: life.signal, log });
      return isOutcome(result)
        ? result
        : { kind: 'broken', got: result === null ? 'null' : typeof result };
    } catch (error) {
      return { kind: 'failed', error };
    } finally {
      life.end();
    }
  }

  /** What becomes of the key; nothing else calls `forget`, or adds a key that has run. */
  #settle(taken: TakenItem<K>, ending: Ending, log: Logger): Omit<SyncResult, 'tookMs'> {
    const { key, priority, causes } = taken;
    switch (ending.kind) {
      case 'done':
        this.#queue.forget(key);
        return { result: 'done' };
      case 'requeueAfter':
        this.#queue.forget(key);
        this.#queue.add(key, { afterMs: ending.ms, priority, cause: planned(ending.reason) });
        return { result: 'requeueAfter', requeueAfterMs: ending.ms, reason: ending.reason };
      case 'postponed': {
        // What it was to run for is still to be done.
        const { ms, reason } = ending;
        const text = reason === undefined ? 'postponed' : `postponed: ${reason}`;
        const cause = [...causes, { text, times: 1 }];
        this.#queue.add(key, { afterMs: ms, priority, cause });
        return { result: 'requeueAfter', requeueAfterMs: ms, postponed: true, reason };
      }
      case 'broken':
        return {
          result: 'panic',
          ...this.#retry(
            taken,
            new TypeError(
              `The handler returned ${ending.got} instead of an Outcome: end it with return done(), requeueAfter(ms) or postpone(ms), or throw to retry with backoff`,
            ),
            log,
          ),
        };
      case 'failed':
        if (this.#cutOff.signal.aborted) {
          log.v(2).info('Sync was cut off by the shutdown', { err: ending.error });
          return { result: 'cutOff', error: ending.error };
        }
        if (ending.error instanceof TerminalError) {
          this.#queue.forget(key);
          this.#logError(key, ending.error, 'Error syncing; a retry would not help', log);
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
      this.#logError(key, error, 'Error syncing; dropped, it has failed too often', log, {
        attempt,
      });
      return { error, reason: 'dropped' };
    }
    const cause = `retry after an error: ${brief(error)}`;
    const atLeastMs = this.#isSlow(error) ? backoffMs(SLOW_KEY_BACKOFF, attempt - 1) : 0;
    const requeueAfterMs = this.#queue.addRateLimited(key, { priority, cause, atLeastMs });
    if (requeueAfterMs === undefined) {
      this.#logError(key, error, 'Error syncing; the daemon is stopping', log);
    } else {
      const requeueAfter = formatDuration(requeueAfterMs);
      const fields = { attempt, requeueAfter };
      this.#logError(key, error, 'Error syncing; requeuing for later retry', log, fields);
    }
    return { error, requeueAfterMs };
  }

  /** One line per cause at once, then one a minute with the keys. At `-v=4`, a line per failure. */
  #logError(key: K, error: unknown, message: string, log: Logger, fields: LogFields = {}): void {
    const name = String(key);
    const cause = `${message}\0${errorCause(error, name)}`;
    const isWritten = this.#errors.report(cause, name, (seen) => {
      const { times, total, subjects } = seen;
      if (total === 1) log.error(error, message, fields);
      else if (subjects.length === 1) log.error(error, message, { ...fields, times });
      else this.#log.error(error, message, { times, ...subjectFields('key', 'keys', seen) });
    });
    if (!isWritten) log.v(4).info(message, { err: error, ...fields });
  }
}

function planned(reason: string | undefined): string {
  return reason === undefined ? 'requeued as planned' : `requeued as planned: ${reason}`;
}

/** So much of an error's text becomes part of a cause. */
const LONGEST_BRIEF = 120;

function brief(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.length > LONGEST_BRIEF ? `${text.slice(0, LONGEST_BRIEF)}…` : text;
}

/** Resolves when a run ends or `signal` aborts; there is a run under way in every slot. */
function freeSlot(slots: PQueue, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      slots.removeEventListener('next', settle);
      signal.removeEventListener('abort', settle);
      resolve();
    };
    slots.addEventListener('next', settle);
    signal.addEventListener('abort', settle);
    if (signal.aborted) settle();
  });
}

function isOutcome(result: unknown): result is Outcome {
  if (typeof result !== 'object' || result === null || !('kind' in result)) return false;
  if (result.kind === 'done') return true;
  const isLater = result.kind === 'requeueAfter' || result.kind === 'postponed';
  return isLater && 'ms' in result && Number.isFinite(result.ms);
}

/** How long one run may go on. */
export interface RunLife {
  /** Aborts when it is over. */
  readonly signal: AbortSignal;
  /** The run has ended: frees what its life took. */
  end(): void;
}

/**
 * A life until `cutOff` aborts or, if there is a timeout, until that.
 *
 * @param onTimeout called before the signal aborts
 */
export function runLife(
  clock: Clock,
  cutOff: AbortSignal,
  timeoutMs: number | undefined,
  onTimeout: () => void,
): RunLife {
  if (timeoutMs === undefined) return { signal: cutOff, end: () => undefined };
  const life = new AbortController();
  const hurry = () => life.abort(cutOff.reason);
  if (cutOff.aborted) hurry();
  cutOff.addEventListener('abort', hurry, { once: true });
  const cancel = clock.after(timeoutMs, () => {
    onTimeout();
    life.abort(new Error(`The run took longer than ${formatDuration(timeoutMs)}`));
  });
  return {
    signal: life.signal,
    end: () => {
      cancel();
      cutOff.removeEventListener('abort', hurry);
    },
  };
}
