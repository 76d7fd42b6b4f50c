import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../../util/clock.ts';

/** Time after which the start is over, and between further checks whether the program is idle, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Share of the interval for which the event loop of an idle program works at most. */
const IDLE_UTILIZATION = 0.1;

/** A collection of a larger heap would delay probes and the renewal of the Lease. */
const MAX_HEAP_BYTES = 64 * 2 ** 20;

/** Dependencies of `collectStartGarbage`. */
export interface StartGarbageDeps {
  readonly clock: Pick<Clock, 'after'>;
  /**
   * Used heap above which nothing is done.
   * @default 64 MiB
   */
  readonly maxHeapBytes?: number | undefined;
  /**
   * Returns the share of the time since the last call for which the program worked.
   * @default that of the event loop
   */
  readonly utilization?: (() => number) | undefined;
  /**
   * Collects all garbage.
   * @default the garbage collector of the engine, if it has one that can be called
   */
  readonly collect?: (() => void) | undefined;
}

/**
 * Collects the garbage of the start once, and returns its memory to the system. V8 does this only when the program
 * allocates more, so that an idle program would keep the memory. It waits until the program is idle: the collection also
 * discards compiled functions and shrinks the young generation, which a program that works needs.
 *
 * @returns a function that cancels it
 */
export function collectStartGarbage({
  clock,
  maxHeapBytes = MAX_HEAP_BYTES,
  utilization = loopUtilization(),
  collect = callEngine,
}: StartGarbageDeps): () => void {
  const check = (): void => {
    if (utilization() > IDLE_UTILIZATION) {
      cancel = clock.after(INTERVAL_MS, check);
    } else if (getHeapStatistics().used_heap_size <= maxHeapBytes) {
      collect();
    }
  };
  let cancel = clock.after(INTERVAL_MS, check);
  return () => cancel();
}

function loopUtilization(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    return utilization;
  };
}

function callEngine(): void {
  // Only this kind also shrinks the young generation to its initial size.
  engineCollector()?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** As a flag of the process, `--expose-gc` would make the code cache of the image invalid. */
function engineCollector(): NodeJS.GCFunction | undefined {
  try {
    setFlagsFromString('--expose-gc');
    return runInNewContext('globalThis.gc');
  } catch {
    // Other engines than V8 have no flags.
    return undefined;
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
