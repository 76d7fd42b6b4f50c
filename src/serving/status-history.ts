import type { Clock } from '../util/clock.ts';
import type { Runnable } from '../util/runnable.ts';
import { processUsage } from './debug-pages.ts';
import { compactJsonPage } from './routes.ts';
import type { Pages } from './routes.ts';

/** Time between two samples, and number of kept samples: those of 15 minutes. */
const INTERVAL_MS = 10_000;
const KEPT = 90;

/** What a sample contains of the program. */
export interface ProgramSample {
  /** Whether `/readyz` passes. */
  readonly isReady: boolean;
  /** Syncs and failures since the start. */
  readonly syncs: number;
  readonly failures: number;
  /** Objects that are not ready or stalled, and keys that wait for a worker. */
  readonly notReady: number;
  readonly waiting: number;
}

/** State of the process at one time. Times and numbers of syncs are totals since the start. */
export interface StatusSample extends ProgramSample {
  /** Unix time in milliseconds. */
  readonly atMs: number;
  readonly residentBytes: number;
  readonly cpuMs: number;
  readonly loopActiveMs: number;
}

/** Keeps the state of the last 15 minutes, about 10 KiB, for `/debug/history`: an incident is visible afterwards. */
export class StatusHistory implements Runnable {
  readonly name = 'status-history';
  readonly #clock: Clock;
  readonly #read: () => ProgramSample;
  #samples: readonly StatusSample[] = [];

  constructor(clock: Clock, read: () => ProgramSample) {
    this.#clock = clock;
    this.#read = read;
  }

  /** The samples, oldest first. */
  get samples(): readonly StatusSample[] {
    return this.#samples;
  }

  /** Page `/debug/history`. */
  get pages(): Pages {
    return new Map([['/debug/history', () => compactJsonPage(200, this.#samples)]]);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#samples = [...this.#samples, this.#sample()].slice(-KEPT);
      await this.#clock.sleep(INTERVAL_MS, signal);
    }
  }

  #sample(): StatusSample {
    const { residentBytes, cpuMs, loopActiveMs } = processUsage();
    return {
      atMs: this.#clock.now(),
      ...this.#read(),
      residentBytes,
      cpuMs: Math.round(cpuMs),
      loopActiveMs: Math.round(loopActiveMs),
    };
  }
}
