import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** A collection of a larger heap would delay probes and the renewal of the Lease. */
const MAX_HEAP_BYTES = 64 * 2 ** 20;

/**
 * Collects the garbage of the start and returns its memory to the system. V8 does this only when the program
 * allocates more, so that an idle daemon would keep the memory.
 *
 * @param maxHeapBytes used heap above which nothing is done
 * @returns whether garbage was collected
 */
export function collectStartGarbage(maxHeapBytes: number = MAX_HEAP_BYTES): boolean {
  if (getHeapStatistics().used_heap_size > maxHeapBytes) return false;
  // As a flag of the process it would make the code cache of the image invalid.
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  // Only this kind also shrinks the young generation to its initial size.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  return true;
}
