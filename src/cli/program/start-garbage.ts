import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** A collection of a larger heap would delay probes and the renewal of the Lease. */
const MAX_HEAP_BYTES = 64 * 2 ** 20;

/**
 * Collects the garbage of the start and returns its memory to the system. V8 does this only when the program
 * allocates more, so that an idle program would keep the memory.
 *
 * @param maxHeapBytes used heap above which nothing is done
 * @param collector returns the garbage collector, or undefined if the engine has none
 * @returns whether garbage was collected
 */
export function collectStartGarbage(
  maxHeapBytes: number = MAX_HEAP_BYTES,
  collector: () => NodeJS.GCFunction | undefined = engineCollector,
): boolean {
  if (getHeapStatistics().used_heap_size > maxHeapBytes) return false;
  const collect = collector();
  if (!collect) return false;
  // Only this kind also shrinks the young generation to its initial size.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  return true;
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
