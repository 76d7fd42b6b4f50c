import { AbruptStop } from '../util/runnable.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { untilAborted } from '../util/abort.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const OPTIONS: OptionNames<ManagerOptions> = {
  gracefulShutdownTimeoutMs: true,
  leadership: true,
};

/**
 * What the manager runs, in the order it starts; it stops in the reverse order. Servers answer
 * probes until the end, caches live while syncs finish, and events that those syncs emit are still
 * written before the leadership is given up that allows it.
 */
export const STAGES = ['servers', 'caches', 'events', 'leadership', 'controllers'] as const;

/** A stage that others left no time gets this much, in milliseconds: most stop at once. */
const SHORTEST_STOP_MS = 100;

/** How long all stages together get to drop what they do, in milliseconds. */
const ABRUPT_STOP_MS = 1000;

export type Stage = (typeof STAGES)[number];

/** What must be held for the controllers to run; a `LeaderElector` is one. */
export interface Leadership extends Runnable {
  /** Resolves to true once it is held, to false if `signal` aborts before. */
  acquired(signal: AbortSignal): Promise<boolean>;
}

export interface ManagerOptions {
  /**
   * How long the stages may take to stop, all together, in milliseconds. What has not ended by then
   * is left behind and named in the log, and `run` rejects.
   * @default 30_000
   */
  readonly gracefulShutdownTimeoutMs?: number;
  /**
   * Run in the stage of that name; the controllers start when it is acquired. All else runs before.
   * @default none: the controllers start at once
   */
  readonly leadership?: Leadership | undefined;
}

/**
 * An ordered list of things to run. They all start at once, in the order of their stages: who needs
 * another's state waits for it (a controller for its caches), and controllers wait for the
 * leadership, if there is to be one.
 *
 * When `signal` aborts, each stage is told to stop only after the stages behind it have ended. If
 * anything rejects, everything else is stopped the same way and `run` rejects with the first reason.
 * If that is an `AbruptStop`, as a lost lease is, all stages are aborted with it at once, and `run`
 * rejects as soon as they have dropped what they did.
 *
 * Where a controller did not end in time, the leadership is not given up, but ended by an
 * `AbruptStop`: who still works must not have a successor at once.
 */
export class Manager implements Runnable {
  readonly name = 'manager';
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #timeoutMs: number;
  readonly #leadership: Leadership | undefined;
  readonly #runnables = new Map<Stage, Runnable[]>(STAGES.map((stage) => [stage, []]));

  constructor(deps: { clock: Clock; log: Logger }, options: ManagerOptions = {}) {
    checkOptions(options, OPTIONS, 'Manager');
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#timeoutMs = options.gracefulShutdownTimeoutMs ?? 30_000;
    this.#leadership = options.leadership;
    if (this.#leadership) this.add('leadership', this.#leadership);
  }

  add(stage: Stage, ...runnables: readonly Runnable[]): this {
    this.#runnables.get(stage)?.push(...runnables);
    return this;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const stop = new AbortController();
    const abrupt = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const faults: unknown[] = [];
    const fail = (cause: unknown) => {
      faults.push(cause);
      if (cause instanceof AbruptStop) abrupt.abort(cause);
      stop.abort(cause);
    };
    const stages = STAGES.map((stage) => this.#start(stage, abrupt.signal, fail));
    await untilAborted(stop.signal);
    signal.removeEventListener('abort', onAbort);
    const left = await this.#stop(stages.toReversed(), abrupt.signal);
    if (faults.length > 0) throw faults[0];
    if (left.length > 0) {
      const seconds = this.#timeoutMs / 1000;
      throw new Error(`Not everything stopped within ${seconds} s: ${left.join(', ')}`);
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
          if (stage !== 'controllers' || (await this.#mayWork(controller.signal))) {
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

  async #mayWork(signal: AbortSignal): Promise<boolean> {
    return this.#leadership ? this.#leadership.acquired(signal) : true;
  }

  /**
   * Stops stage after stage, and gives up on what has not ended when the time for all is over.
   * @returns the names of what had not ended by then
   */
  async #stop(stages: readonly RunningStage[], abrupt: AbortSignal): Promise<string[]> {
    const left: string[] = [];
    const deadline = new Deadline(this.#clock, this.#timeoutMs);
    const hurry = () => deadline.within(ABRUPT_STOP_MS);
    if (abrupt.aborted) hurry();
    abrupt.addEventListener('abort', hurry, { once: true });
    for (const { stage, controller, running, ended } of stages) {
      const why = `Stopping ${stage}`;
      const isLeaderless = stage === 'leadership' && left.length > 0;
      controller.abort(isLeaderless ? new AbruptStop(why) : new Error(why));
      await deadline.wait(ended);
      if (running.size > 0) {
        this.#log.error(undefined, 'Could not stop in time', { stage, running: [...running] });
        left.push(...running);
      }
    }
    return left;
  }
}

interface RunningStage {
  readonly stage: Stage;
  readonly controller: AbortController;
  /** Names of what has not ended. */
  readonly running: ReadonlySet<string>;
  readonly ended: Promise<void>;
}

/** A point in time by which several things are to end, one after the other. */
class Deadline {
  readonly #clock: Clock;
  #atMs: number;
  #moved: (() => void) | undefined;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#atMs = clock.monotonic() + ms;
  }

  /** Moves it to `ms` milliseconds from now, if that is earlier. */
  within(ms: number): void {
    this.#atMs = Math.min(this.#atMs, this.#clock.monotonic() + ms);
    this.#moved?.();
  }

  /** Resolves with `ended`, which never rejects, or when the time is over. */
  wait(ended: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      let cancel = () => {};
      const arm = () => {
        cancel();
        const leftMs = Math.max(SHORTEST_STOP_MS, this.#atMs - this.#clock.monotonic());
        cancel = this.#clock.after(leftMs, leave);
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
