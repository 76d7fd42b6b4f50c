import v8 from 'node:v8';

/** The assumed limit where the engine does not report one. */
const UNKNOWN_LIMIT_BYTES = 512 * 1024 ** 2;

/** Bounds of a share of the heap, in bytes. */
export interface HeapShareBounds {
  /** @default 0 */
  readonly min?: number;
  readonly max: number;
}

/**
 * Returns a share of the heap limit of this process within bounds, in bytes. Memory budgets derive from it, because
 * the limit of a container can be far below that of a machine.
 *
 * @param limitBytes the heap limit
 */
export function shareOfHeap(
  share: number,
  { min = 0, max }: HeapShareBounds,
  limitBytes: number = heapLimitBytes(),
): number {
  return Math.min(max, Math.max(min, Math.floor(share * limitBytes)));
}

/** Returns the heap size at which the process ends, in bytes, or 512 MiB if the engine does not report it. */
function heapLimitBytes(): number {
  try {
    const { heap_size_limit: bytes } = v8.getHeapStatistics();
    return bytes > 0 ? bytes : UNKNOWN_LIMIT_BYTES;
  } catch {
    // Other engines than V8 may not implement the function.
    return UNKNOWN_LIMIT_BYTES;
  }
}
