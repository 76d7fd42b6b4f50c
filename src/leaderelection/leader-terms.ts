import { settledBeforeAbort, untilAborted } from '../util/abort.ts';
import { Deferred } from '../util/deferred.ts';
import { formatDuration } from '../util/duration.ts';
import { AbruptStop, isAbruptStop, runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { LeaderElector } from './leader-elector.ts';
import type { LeaderElectorDeps, LeaderElectorOptions } from './leader-elector.ts';

/**
 * Leader election that survives the loss of the lease (KEP-5366): work is stopped, and when all of it has ended, the
 * process stands by again.
 *
 * **No work of one term continues in the next one.** From the loss on, `mayWrite` is false, and it stays false until
 * all work of the term has ended: only then is a new `LeaderElector` started. If the work does not end within
 * `stepDownTimeoutMs`, `run` rejects with an `AbruptStop`, so that the process exits.
 */
export class LeaderTerms implements Runnable {
  readonly name = 'leader-election';
  readonly #deps: LeaderElectorDeps;
  readonly #options: LeaderElectorOptions;
  readonly #stepDownTimeoutMs: number;
  #elector: LeaderElector;
  /** Resolves when a term starts; replaced when it ends. */
  #started = new Deferred();
  /** The current term, or the last one. */
  #term = new AbortController();
  /** Work of the current term. */
  readonly #work = new Set<Promise<void>>();

  /** @throws {RangeError} with the option, the expected value and the actual value */
  constructor(deps: LeaderElectorDeps, options: LeaderElectorOptions, stepDownTimeoutMs: number) {
    this.#deps = deps;
    this.#options = options;
    this.#stepDownTimeoutMs = stepDownTimeoutMs;
    this.#elector = new LeaderElector(deps, options);
  }

  /** Aborts when the current term ends. Between terms it is that of the last term, and has aborted. */
  get term(): AbortSignal {
    return this.#term.signal;
  }

  /** Returns true while no other process can hold the lease. */
  mayWrite(): boolean {
    return this.#elector.mayWrite();
  }

  /** Returns true while this process leads, and after it has stopped leading without a loss of the lease. */
  mayWriteEvents(): boolean {
    return this.#elector.mayWriteEvents();
  }

  /** Resolves to true when this process leads, or to false if `signal` aborts first. */
  acquired(signal: AbortSignal): Promise<boolean> {
    return settledBeforeAbort(this.#started.promise, signal);
  }

  /** Returns why this process should be restarted, or undefined if it is healthy. Standbys are healthy. */
  health(): string | undefined {
    return this.#elector.health();
  }

  /**
   * Calls `work` in each term until `signal` aborts. Its signal aborts with an `AbruptStop` of the kind `leadershipLost` when the lease
   * is lost. Rejects if `work` rejects.
   */
  async during(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (await this.acquired(signal)) {
      const term = this.#term.signal;
      if (term.aborted) continue;
      const end = AbortSignal.any([signal, term]);
      const running = work(end);
      const ended = running.catch(() => undefined);
      this.#work.add(ended);
      try {
        await running;
      } finally {
        this.#work.delete(ended);
      }
      // Work that ends early does not start again in the same term.
      await untilAborted(end);
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#runTerm(signal);
      } catch (error) {
        if (!isAbruptStop(error, 'leadershipLost')) throw error;
        await this.#stepDown(error);
        this.#elector = new LeaderElector(this.#deps, this.#options);
      }
    }
  }

  #runTerm(signal: AbortSignal): Promise<void> {
    const elector = this.#elector;
    return runAll(
      [
        (end) => elector.run(end),
        async (end) => {
          if (!(await elector.acquired(end))) return;
          this.#term = new AbortController();
          this.#started.resolve();
        },
      ],
      signal,
    );
  }

  /** @throws {AbruptStop} if the work of the term does not end in time */
  async #stepDown(lost: AbruptStop): Promise<void> {
    const { clock, log } = this.#deps;
    log.error(lost, 'Lost the lease; stopping the controllers');
    this.#started = new Deferred();
    this.#term.abort(lost);
    const limit = new AbortController();
    const cancel = clock.after(this.#stepDownTimeoutMs, () => limit.abort());
    const hasEnded = await settledBeforeAbort(Promise.all(this.#work), limit.signal);
    cancel();
    if (!hasEnded) {
      const within = formatDuration(this.#stepDownTimeoutMs);
      const message = `controllers did not stop within ${within} after the lease was lost`;
      throw new AbruptStop('stopTimeout', message, { cause: lost });
    }
    log.info('Stopped the controllers; standing by');
  }
}
