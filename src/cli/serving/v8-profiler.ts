import type { HeapProfiler, Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import type { Readable } from 'node:stream';
import { getHeapSnapshot } from 'node:v8';
import type { Clock } from '../../util/clock.ts';
import type { Runnable } from '../../util/runnable.ts';
import { untilAborted } from '../../util/abort.ts';

/** One sample for so many bytes that are allocated, as in Go: it cannot be felt. */
const SAMPLING_INTERVAL_BYTES = 512 * 1024;

/**
 * Looks into its own process, by sessions of Node's inspector that open no port. While it runs,
 * samples are taken of what is allocated, so that it can tell at any time what is still there.
 */
export class V8Profiler implements Runnable {
  readonly name = 'profiler';
  readonly #clock: Pick<Clock, 'sleep'>;
  #sampling: Session | undefined;

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
  }

  async run(signal: AbortSignal): Promise<void> {
    const session = new Session();
    session.connect();
    try {
      await session.post('HeapProfiler.startSampling', {
        samplingInterval: SAMPLING_INTERVAL_BYTES,
      });
      this.#sampling = session;
      await untilAborted(signal);
    } finally {
      this.#sampling = undefined;
      session.disconnect();
    }
  }

  /** What runs from now on, for so long; undefined if `signal` aborts before. One at a time. */
  async cpuProfile(ms: number, signal: AbortSignal): Promise<Profiler.Profile | undefined> {
    const session = new Session();
    session.connect();
    try {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      await this.#clock.sleep(ms, signal);
      return signal.aborted ? undefined : (await session.post('Profiler.stop')).profile;
    } finally {
      session.disconnect();
    }
  }

  /**
   * What has been allocated since it runs and is still there, by where that was: garbage is
   * collected first. Undefined if it does not run.
   */
  async heapProfile(): Promise<HeapProfiler.SamplingHeapProfile | undefined> {
    return (await this.#sampling?.post('HeapProfiler.getSamplingProfile'))?.profile;
  }

  /** Every object there is. Returns when it has been taken; reading or destroying it lets go of it. */
  heapSnapshot(): Readable {
    return getHeapSnapshot();
  }
}
