import type { ObjectKey } from '../api/object-key.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { SLOW_KEY_BACKOFF } from '../workqueue/rate-limiter.ts';
import type { SyncReport } from '../workqueue/sync-report.ts';
import type { ControllerObserver, ObservedController } from './controller-options.ts';
import type { FinishedCall } from '../client/observed-client.ts';

/** Dependencies of {@link SinglePass}. */
export interface SinglePassDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

/** Options of {@link SinglePass}. */
export interface SinglePassOptions {
  /** Whether the client sends writes as dry runs. Written objects are then not synced again. */
  readonly isDryRun: boolean;
}

/** Interval between two checks whether the pass is complete, in milliseconds. */
const CHECK_INTERVAL_MS = 100;
/** Number of consecutive checks that must find all keys settled, because events of the last writes may still arrive. */
const SETTLED_CHECKS = 3;
/** Time to wait for caches to sync, in milliseconds. */
const CACHE_SYNC_TIMEOUT_MS = 60_000;
/** Attempts after which a key counts as failed. */
const MAX_ATTEMPTS = 3;
/** Number of syncs with writes after which a key counts as never settling. */
const MAX_WRITING_SYNCS = 20;

/**
 * Syncs all objects of its controllers until nothing is left to do now (`--once`); then `run` resolves. A key
 * is settled after a sync without writes. After a sync with writes it is synced again, when the caches contain
 * the writes. The pass does not wait for delayed requeues and for other controllers, such as a Pod that starts.
 */
export class SinglePass implements Runnable {
  readonly name = 'pass';
  readonly #deps: SinglePassDeps;
  readonly #options: SinglePassOptions;
  readonly #passes: ControllerPass[] = [];
  #isComplete = false;

  constructor(deps: SinglePassDeps, options: SinglePassOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Adds `controller` to the pass. Returns the observer of its calls and syncs. */
  readonly observe = (controller: ObservedController): ControllerObserver => {
    const pass = new ControllerPass(controller, this.#options.isDryRun);
    this.#passes.push(pass);
    return pass;
  };

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const startMs = clock.monotonic();
    let settledChecks = 0;
    while (settledChecks < SETTLED_CHECKS && !signal.aborted) {
      await clock.sleep(CHECK_INTERVAL_MS, signal);
      const isTimeout = clock.monotonic() - startMs >= CACHE_SYNC_TIMEOUT_MS;
      const isSettled = this.#passes.every((pass) => pass.isSettled(isTimeout));
      settledChecks = isSettled ? settledChecks + 1 : 0;
    }
    if (signal.aborted) return;
    this.#isComplete = true;
    for (const { controller, unavailable } of this.#passes) {
      for (const { part, isMissing } of unavailable) {
        log.error(
          part.progress.lastError,
          isMissing
            ? 'The server does not have the resource'
            : 'Timed out waiting for cache to sync',
          { controller: controller.name, informer: part.name },
        );
      }
    }
    log.info(this.hasConverged ? 'Nothing is left to do' : 'Something is left to do', {
      objects: this.#sum(({ objects }) => objects),
      [this.#options.isDryRun ? 'wouldWrite' : 'wrote']: this.#sum(({ writes }) => writes),
      failed: this.#sum(({ failed }) => failed),
      took: formatDuration(Math.round(clock.monotonic() - startMs)),
    });
  }

  /** Whether the pass is complete, without failures, and with nothing left to do. */
  get hasConverged(): boolean {
    if (!this.#isComplete) return false;
    return this.#passes.every(
      ({ failed, unavailable, writes }) =>
        failed === 0 && unavailable.length === 0 && !(this.#options.isDryRun && writes > 0),
    );
  }

  #sum(count: (pass: ControllerPass) => number): number {
    return this.#passes.reduce((sum, pass) => sum + count(pass), 0);
  }
}

/** Progress of a key. */
interface KeyProgress {
  /** `active`: may be synced at any time. `neverSettles`: every sync writes. */
  state: 'active' | 'settled' | 'failed' | 'neverSettles';
  /** Number of writes of the current sync. */
  writes: number;
  writingSyncs: number;
}

interface Unavailable {
  readonly part: InformerView;
  readonly isMissing: boolean;
}

class ControllerPass implements ControllerObserver {
  readonly controller: ObservedController;
  readonly #isDryRun: boolean;
  readonly #keys = new Map<ObjectKey, KeyProgress>();
  /** Caches that the pass does not wait for any more. */
  unavailable: readonly Unavailable[] = [];
  writes = 0;

  constructor(controller: ObservedController, isDryRun: boolean) {
    this.controller = controller;
    this.#isDryRun = isDryRun;
  }

  get objects(): number {
    return this.#keys.size;
  }

  get failed(): number {
    return [...this.#keys.values()].filter(
      ({ state }) => state === 'failed' || state === 'neverSettles',
    ).length;
  }

  called(key: ObjectKey, { verb, failed }: FinishedCall): void {
    const isWrite = !['get', 'list', 'watch', 'raw'].includes(verb);
    if (!isWrite || failed) return;
    this.writes++;
    this.#progressOf(key).writes++;
  }

  ended({ key, result, postponed, attempt, requeueAfterMs }: SyncReport<ObjectKey>): void {
    const progress = this.#progressOf(key);
    const mustSyncAgain = progress.writes > 0 && !this.#isDryRun;
    progress.writes = 0;
    if (postponed || result === 'cutOff') {
      progress.state = 'active';
    } else if (result === 'error' || result === 'panic') {
      const isSlow = requeueAfterMs !== undefined && requeueAfterMs >= SLOW_KEY_BACKOFF.initialMs;
      progress.state = isSlow || attempt >= MAX_ATTEMPTS ? 'failed' : 'active';
    } else if (!mustSyncAgain) {
      progress.state = result === 'terminalError' ? 'failed' : 'settled';
    } else if (++progress.writingSyncs >= MAX_WRITING_SYNCS) {
      progress.state = 'neverSettles';
    } else {
      progress.state = 'active';
      this.controller.queue.add(key, {
        cause: 'the single pass syncs the key again after its writes',
      });
    }
  }

  /** @param isTimeout whether the time to wait for caches is over */
  isSettled(isTimeout: boolean): boolean {
    const { controller } = this;
    if (!controller.hasSynced) {
      this.unavailable = controller.informers
        .flatMap(({ parts }) => parts)
        .filter(({ hasSynced }) => !hasSynced)
        .map((part) => ({ part, isMissing: part.progress.missing }))
        .filter(({ isMissing }) => isMissing || isTimeout);
      return this.unavailable.length > 0;
    }
    this.unavailable = [];
    for (const { key } of controller.hotLoops) this.#progressOf(key).state = 'neverSettles';
    // Cheaper than a snapshot, and usually sufficient.
    if (controller.queue.length > this.failed) return false;
    const { ready, delayed, processing } = controller.queue.snapshot();
    const stateOf = ({ key }: { readonly key: ObjectKey }) =>
      this.#keys.get(key)?.state ?? 'active';
    return (
      delayed.every((waiting) => stateOf(waiting) !== 'active') &&
      [...ready, ...processing].every((busy) => ['failed', 'neverSettles'].includes(stateOf(busy)))
    );
  }

  #progressOf(key: ObjectKey): KeyProgress {
    const known = this.#keys.get(key);
    if (known) return known;
    const progress: KeyProgress = { state: 'active', writes: 0, writingSyncs: 0 };
    this.#keys.set(key, progress);
    return progress;
  }
}
