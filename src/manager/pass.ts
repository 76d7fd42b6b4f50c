import type { ObjectKey } from '../api/object-key.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { SLOW_KEY_BACKOFF } from '../workqueue/rate-limiter.ts';
import type { SyncReport } from '../workqueue/sync-report.ts';
import type { Controller } from './controller.ts';
import type { ControllerObserver } from './controller-options.ts';
import type { EndedCall } from './observed-client.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const PASS_OPTIONS: OptionNames<PassOptions> = {
  isDryRun: true,
};

/** Dependencies of `Pass`. */
export interface PassDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

/** Options of `Pass`. */
export interface PassOptions {
  /** Writes change nothing: each is something left to do, and there is no use in looking again. */
  readonly isDryRun: boolean;
}

/** Between two looks whether all is done, in milliseconds. */
const LOOK_MS = 100;
/** So many looks in a row must find nothing: what has just been written may be about to wake others. */
const QUIET_LOOKS = 3;
/** Caches that are not there by then, in milliseconds, are not waited for. */
const LONGEST_SYNC_MS = 60_000;
/** Attempts after which a key counts as failed. */
const MOST_ATTEMPTS = 3;
/** A key that still writes something after so many runs will do so for ever. */
const MOST_WRITING_RUNS = 20;

/**
 * One pass over all objects of some controllers: `run` resolves when there is nothing that they
 * could do now. A key is done with when a run of it has written nothing: what it wrote is looked at
 * once more, with caches that show it. What waits for others, a Pod to start or a time to come, is
 * left for another pass.
 */
export class Pass implements Runnable {
  readonly name = 'pass';
  readonly #deps: PassDeps;
  readonly #options: PassOptions;
  readonly #parts: ControllerPass[] = [];
  #isOver = false;

  constructor(deps: PassDeps, options: PassOptions) {
    checkOptions(options, PASS_OPTIONS, 'Pass');
    this.#deps = deps;
    this.#options = options;
  }

  /** To be told of all that `controller`, which is part of the pass, does. */
  readonly observe = (controller: Controller): ControllerObserver => {
    const part = new ControllerPass(controller, this.#options.isDryRun);
    this.#parts.push(part);
    return part;
  };

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const startMs = clock.monotonic();
    let quiet = 0;
    while (quiet < QUIET_LOOKS && !signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      const isLate = clock.monotonic() - startMs >= LONGEST_SYNC_MS;
      quiet = this.#parts.every((part) => part.isAtRest(isLate)) ? quiet + 1 : 0;
    }
    if (signal.aborted) return;
    this.#isOver = true;
    for (const { controller, unavailable } of this.#parts) {
      for (const { part, isMissing } of unavailable) {
        log.error(
          part.progress.lastError,
          isMissing ? 'The server does not have the resource' : 'Could not fill the cache in time',
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

  /** The pass is over, nothing went wrong, and nothing is left to do. */
  get hasConverged(): boolean {
    if (!this.#isOver) return false;
    return this.#parts.every(
      ({ failed, unavailable, writes }) =>
        failed === 0 && unavailable.length === 0 && !(this.#options.isDryRun && writes > 0),
    );
  }

  #sum(count: (part: ControllerPass) => number): number {
    return this.#parts.reduce((sum, part) => sum + count(part), 0);
  }
}

/** How far the pass has come with a key. */
interface KeyPass {
  /** It may run again at any time; it waits for something; it fails; it never stops writing. */
  state: 'open' | 'rest' | 'failed' | 'restless';
  /** Writes of the present run. */
  writes: number;
  writingRuns: number;
}

interface Unavailable {
  readonly part: InformerView;
  readonly isMissing: boolean;
}

class ControllerPass implements ControllerObserver {
  readonly controller: Controller;
  readonly #isDryRun: boolean;
  readonly #keys = new Map<ObjectKey, KeyPass>();
  /** Caches that are not waited for any more. */
  unavailable: readonly Unavailable[] = [];
  writes = 0;

  constructor(controller: Controller, isDryRun: boolean) {
    this.controller = controller;
    this.#isDryRun = isDryRun;
  }

  get objects(): number {
    return this.#keys.size;
  }

  get failed(): number {
    return [...this.#keys.values()].filter(
      ({ state }) => state === 'failed' || state === 'restless',
    ).length;
  }

  called(key: ObjectKey, { verb, failed }: EndedCall): void {
    const isWrite = !['get', 'list', 'watch', 'raw'].includes(verb);
    if (!isWrite || failed) return;
    this.writes++;
    this.#pass(key).writes++;
  }

  ended({ key, result, postponed, attempt, requeueAfterMs }: SyncReport<ObjectKey>): void {
    const pass = this.#pass(key);
    const mustLook = pass.writes > 0 && !this.#isDryRun;
    pass.writes = 0;
    if (postponed || result === 'cutOff') {
      pass.state = 'open';
    } else if (result === 'error' || result === 'panic') {
      const isSlow = requeueAfterMs !== undefined && requeueAfterMs >= SLOW_KEY_BACKOFF.initialMs;
      pass.state = isSlow || attempt >= MOST_ATTEMPTS ? 'failed' : 'open';
    } else if (!mustLook) {
      pass.state = result === 'terminalError' ? 'failed' : 'rest';
    } else if (++pass.writingRuns >= MOST_WRITING_RUNS) {
      pass.state = 'restless';
    } else {
      pass.state = 'open';
      this.controller.queue.add(key, { cause: 'the pass looks at what was written' });
    }
  }

  /** @param isLate caches are not waited for any more */
  isAtRest(isLate: boolean): boolean {
    const { controller } = this;
    if (!controller.hasSynced) {
      this.unavailable = controller.informers
        .flatMap(({ parts }) => parts)
        .filter(({ hasSynced }) => !hasSynced)
        .map((part) => ({ part, isMissing: part.progress.missing }))
        .filter(({ isMissing }) => isMissing || isLate);
      return this.unavailable.length > 0;
    }
    this.unavailable = [];
    for (const { key } of controller.hotLoops) this.#pass(key).state = 'restless';
    // Cheaper than a snapshot, and says no most of the time.
    if (controller.queue.length > this.failed) return false;
    const { ready, delayed, processing } = controller.queue.snapshot();
    const stateOf = ({ key }: { readonly key: ObjectKey }) => this.#keys.get(key)?.state ?? 'open';
    return (
      delayed.every((waiting) => stateOf(waiting) !== 'open') &&
      [...ready, ...processing].every((busy) => ['failed', 'restless'].includes(stateOf(busy)))
    );
  }

  #pass(key: ObjectKey): KeyPass {
    const known = this.#keys.get(key);
    if (known) return known;
    const pass: KeyPass = { state: 'open', writes: 0, writingRuns: 0 };
    this.#keys.set(key, pass);
    return pass;
  }
}
