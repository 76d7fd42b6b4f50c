import { AbruptStop, isAbruptStop } from '../util/runnable.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { untilAborted } from '../util/abort.ts';

/**
 * The stages of a manager in start order. They stop in reverse order: servers answer probes until the end, caches
 * are available while syncs finish, and the lease is released as soon as these have ended. The remaining time is
 * for their events.
 */
const STAGES = ['servers', 'caches', 'events', 'leadership', 'controllers'] as const;

/** Minimum time for a stage to stop, in milliseconds, also if earlier stages used all time. */
const MIN_STOP_MS = 100;

/** Time for all stages to stop after an `AbruptStop`, in milliseconds. */
const ABRUPT_STOP_MS = 1000;

/** Name of a stage of a manager. */
export type Stage = (typeof STAGES)[number];

/** Must be acquired before the controllers start; a `LeaderElector` has this form. */
export interface Leadership extends Runnable {
  /** Resolves to true when it is acquired, or to false if `signal` aborts first. */
  acquired(signal: AbortSignal): Promise<boolean>;
}

/** Options of {@link Manager}. */
export interface ManagerOptions {
  /**
   * Time for all stages to stop, in milliseconds. Runnables that have not ended by then are logged, and `run`
   * rejects.
   * @default 30_000
   */
  readonly gracefulShutdownTimeoutMs?: number | undefined;
  /**
   * Runs in the stage `leadership`. Controllers start when it is acquired; all other stages start at once.
   * @default none
   */
  readonly leadership?: Leadership | undefined;
}

/**
 * Starts and stops runnables in order. All stages start at once: a controller waits for its caches, and controllers
 * wait for the leadership, if there is one.
 *
 * When `signal` aborts, a stage is stopped after the stages after it have ended. If a runnable rejects, all others
 * are stopped in the same way and `run` rejects with the first error. If this is an `AbruptStop`, such as a
 * lost lease, all stages are aborted at once.
 *
 * If a controller did not end in time, the lease is not released but ended by an `AbruptStop`, so that no successor
 * starts while the controller still works.
 *
 * @example
 * ```ts
 * import { silentLogger, systemClock } from 'crd-controller';
 * import { Manager } from 'crd-controller/manager';
 *
 * const server = {
 *   name: 'server',
 *   run: async (signal: AbortSignal) => {
 *     await systemClock.sleep(60_000, signal);
 *     console.log('stopped'); // prints: stopped
 *   },
 * };
 * const manager = new Manager({ clock: systemClock, log: silentLogger }).add('servers', server);
 * const running = manager.run(new AbortController().signal);
 * manager.stop();
 * await running;
 * ```
 */
export class Manager implements Runnable {
  readonly name = 'manager';
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #timeoutMs: number;
  readonly #leadership: Leadership | undefined;
  readonly #runnables = new Map<Stage, Runnable[]>(STAGES.map((stage) => [stage, []]));
  readonly #stopping = new AbortController();
  #deadline: Deadline | undefined;

  constructor(deps: { clock: Clock; log: Logger }, options: ManagerOptions = {}) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#timeoutMs = options.gracefulShutdownTimeoutMs ?? 30_000;
    this.#leadership = options.leadership;
    if (this.#leadership) this.add('leadership', this.#leadership);
  }

  /** Aborts when the manager starts to stop, for any reason. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Time that is left to stop, in milliseconds; before the stop, all of it. */
  get timeToStopMs(): number {
    return this.#deadline?.leftMs ?? this.#timeoutMs;
  }

  /** Stops `run` in order, as its signal does. */
  stop(reason?: unknown): void {
    this.#stopping.abort(reason);
  }

  /** Adds `runnables` to a stage. Call it before `run`. */
  add(stage: Stage, ...runnables: readonly Runnable[]): this {
    this.#runnables.get(stage)?.push(...runnables);
    return this;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const stop = this.#stopping;
    const abrupt = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const faults: unknown[] = [];
    const fail = (cause: unknown) => {
      faults.push(cause);
      if (isAbruptStop(cause)) abrupt.abort(cause);
      stop.abort(cause);
    };
    const stages = STAGES.map((stage) => this.#start(stage, abrupt.signal, fail));
    await untilAborted(stop.signal);
    signal.removeEventListener('abort', onAbort);
    const left = await this.#stop(stages.toReversed(), abrupt.signal);
    if (faults.length > 0) throw faults[0];
    if (left.length > 0) {
      const seconds = this.#timeoutMs / 1000;
      throw new Error(`Runnables did not stop within ${seconds} s: ${left.join(', ')}`);
    }
  }

  #start(stage: Stage, abrupt: AbortSignal, fail: (cause: unknown) => void): RunningStage {
    const controller = new AbortController();
    abrupt.addEventListener('abort', () => controller.abort(abrupt.reason), { once: true });
    const running = new Set<string>();
    const ended = Promise.all(
      (this.#runnables.get(stage) ?? []).map(async (runnable) => {
        running.add(runnable.name);
        try {
          if (stage !== 'controllers' || (await this.#acquired(controller.signal))) {
            await runnable.run(controller.signal);
          }
        } catch (cause) {
          this.#log.error(cause, 'Runnable failed', { stage, runnable: runnable.name });
          fail(cause);
        } finally {
          running.delete(runnable.name);
        }
      }),
    );
    return { stage, controller, running, ended: ended.then(() => undefined) };
  }

  async #acquired(signal: AbortSignal): Promise<boolean> {
    return this.#leadership ? this.#leadership.acquired(signal) : true;
  }

  /**
   * Stops the stages in order, until the time for all stages is over.
   * @returns the names of the runnables that have not ended
   */
  async #stop(stages: readonly RunningStage[], abrupt: AbortSignal): Promise<string[]> {
    const left: string[] = [];
    const deadline = (this.#deadline = new Deadline(this.#clock, this.#timeoutMs));
    const shorten = () => deadline.within(ABRUPT_STOP_MS);
    if (abrupt.aborted) shorten();
    abrupt.addEventListener('abort', shorten, { once: true });
    for (const { stage, controller, running, ended } of stages) {
      const reason = `Stopping ${stage}`;
      const isLeaderless = stage === 'leadership' && left.length > 0;
      controller.abort(isLeaderless ? new AbruptStop('stopTimeout', reason) : new Error(reason));
      await deadline.wait(ended);
      if (running.size > 0) {
        this.#log.error(undefined, 'Runnables did not stop in time', {
          stage,
          running: [...running],
        });
        left.push(...running);
      }
    }
    return left;
  }
}

interface RunningStage {
  readonly stage: Stage;
  readonly controller: AbortController;
  /** Names of the runnables that have not ended. */
  readonly running: ReadonlySet<string>;
  readonly ended: Promise<void>;
}

/** A deadline shared by several stages. */
class Deadline {
  readonly #clock: Clock;
  #atMs: number;
  #moved: (() => void) | undefined;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#atMs = clock.monotonic() + ms;
  }

  get leftMs(): number {
    return Math.max(0, this.#atMs - this.#clock.monotonic());
  }

  /** Moves the deadline to `ms` milliseconds from now, if that is earlier. */
  within(ms: number): void {
    this.#atMs = Math.min(this.#atMs, this.#clock.monotonic() + ms);
    this.#moved?.();
  }

  /** Resolves with `ended`, which never rejects, or at the deadline. */
  wait(ended: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      let cancel = () => {};
      const arm = () => {
        cancel();
        cancel = this.#clock.after(Math.max(MIN_STOP_MS, this.leftMs), leave);
      };
      const leave = () => {
        cancel();
        if (this.#moved === arm) this.#moved = undefined;
        resolve();
      };
      this.#moved = arm;
      arm();
      void ended.then(leave);
    });
  }
}
