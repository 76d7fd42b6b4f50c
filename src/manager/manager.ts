import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { untilAborted } from '../util/until-aborted.ts';

/**
 * What the manager runs, in the order it starts; it stops in the reverse order. Servers answer
 * probes until the end, caches live while syncs finish, and events that those syncs emit are still
 * written.
 */
export const STAGES = ['servers', 'caches', 'events', 'leadership', 'controllers'] as const;

/** A stage that others left no time gets this much, in milliseconds: most stop at once. */
const SHORTEST_STOP_MS = 100;

export type Stage = (typeof STAGES)[number];

export interface ManagerOptions {
  /**
   * How long the stages may take to stop, all together, in milliseconds. What has not ended by then
   * is left behind and named in the log, and `run` rejects.
   * @default 30_000
   */
  readonly gracefulShutdownTimeoutMs?: number;
}

/**
 * An ordered list of things to run. They all start at once, in the order of their stages: who needs
 * another's state waits for it (a controller for its caches). When `signal` aborts, each stage is
 * told to stop only after the stages behind it have ended. If anything rejects, everything else is
 * stopped the same way and `run` rejects with the first reason.
 */
export class Manager implements Runnable {
  readonly name = 'manager';
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #timeoutMs: number;
  readonly #runnables = new Map<Stage, Runnable[]>(STAGES.map((stage) => [stage, []]));

  constructor(deps: { clock: Clock; log: Logger }, options: ManagerOptions = {}) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#timeoutMs = options.gracefulShutdownTimeoutMs ?? 30_000;
  }

  add(stage: Stage, ...runnables: readonly Runnable[]): this {
    this.#runnables.get(stage)?.push(...runnables);
    return this;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const faults: unknown[] = [];
    const fail = (cause: unknown) => {
      faults.push(cause);
      stop.abort(cause);
    };
    const stages = STAGES.map((stage) => this.#start(stage, fail));
    await untilAborted(stop.signal);
    signal.removeEventListener('abort', onAbort);
    const left = await this.#stop(stages.toReversed());
    if (faults.length > 0) throw faults[0];
    if (left.length > 0) {
      const seconds = this.#timeoutMs / 1000;
      throw new Error(`Not everything stopped within ${seconds} s: ${left.join(', ')}`);
    }
  }

  #start(stage: Stage, fail: (cause: unknown) => void): RunningStage {
    const controller = new AbortController();
    const running = new Set<string>();
    const ended = Promise.all(
      (this.#runnables.get(stage) ?? []).map(async (runnable) => {
        running.add(runnable.name);
        try {
          await runnable.run(controller.signal);
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

  /**
   * Stops stage after stage, and gives up on what has not ended when the time for all is over.
   * @returns the names of what had not ended by then
   */
  async #stop(stages: readonly RunningStage[]): Promise<string[]> {
    const left: string[] = [];
    const deadlineMs = this.#clock.monotonic() + this.#timeoutMs;
    for (const { stage, controller, running, ended } of stages) {
      controller.abort(new Error(`Stopping ${stage}`));
      const timeUp = new AbortController();
      const leftMs = Math.max(SHORTEST_STOP_MS, deadlineMs - this.#clock.monotonic());
      const cancel = this.#clock.after(leftMs, () => timeUp.abort());
      await firstOf(ended, timeUp.signal);
      cancel();
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

function firstOf(ended: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const onAbort = () => resolve();
    if (signal.aborted) resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    void ended.then(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
  });
}
