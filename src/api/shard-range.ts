import type { ObjectMeta } from './object.ts';

/** One of `count` equal parts of the objects of a kind. */
export interface ShardRange {
  /**
   * Field to hash. With `namespace`, the objects of a namespace are in the same shard.
   * @default 'uid'
   */
  readonly by?: 'uid' | 'namespace' | undefined;
  /** Number of the shard, from 0. */
  readonly index: number;
  readonly count: number;
}

/** @throws {RangeError} if index or count is out of range */
export function requireShardRange({ index, count }: ShardRange): void {
  if (!(Number.isInteger(count) && count > 0 && count <= 65_536)) {
    throw new RangeError(`shard.count must be an integer from 1 to 65536: got ${count}`);
  }
  if (!(Number.isInteger(index) && index >= 0 && index < count)) {
    throw new RangeError(`shard.index must be an integer from 0 to ${count - 1}: got ${index}`);
  }
}

/** Formats the `shardSelector` of a list or watch (KEP-5866): a half-open range of 64-bit hashes. */
export function formatShardRange(range: ShardRange): string {
  const { by = 'uid', count, index } = range;
  const start = hex(firstOf(index, count));
  const end = hex(firstOf(index + 1, count));
  return `shardRange(object.metadata.${by}, '${start}', '${end}')`;
}

/** Reports whether the object is in `range`, as servers with KEP-5866 calculate it. */
export function isInShard({ by = 'uid', index, count }: ShardRange, metadata: ObjectMeta): boolean {
  const hash = highHash(metadata[by] ?? '');
  return hash >= firstOf(index, count) && hash < firstOf(index + 1, count);
}

/** Returns the upper half of the first hash of a shard. The lower half is 0, so comparing upper halves suffices. */
function firstOf(index: number, count: number): number {
  return Math.ceil((index / count) * 2 ** 32);
}

function hex(high: number): string {
  return `0x${high.toString(16).padStart(8, '0')}00000000`;
}

const UTF8 = new TextEncoder();

/** Returns the upper 32 bits of the 64-bit FNV-1a hash of `text`. */
function highHash(text: string): number {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of UTF8.encode(text)) {
    low = (low ^ byte) >>> 0;
    // Multiplies by the prime 2^40 + 435 in halves, so that no product exceeds 2^53.
    const product = low * 435;
    high = (high * 435 + Math.floor(product / 2 ** 32) + low * 256) % 2 ** 32;
    low = product % 2 ** 32;
  }
  return high;
}
