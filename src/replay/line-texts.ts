import { keyOf } from '../api/object-key.ts';
import { countText } from '../serving/words.ts';
import type { CacheLine, DropLine, GapLine, SetLine, TermLine } from './format.ts';

/** Change of a cached object, as a watch event. */
interface CacheEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Name of the cache: `pods in default`. */
  readonly cache: string;
  readonly process: string | undefined;
  readonly key: string;
}

/** Makes events of the changes of the caches. Tells an addition from a change by the lines before it. */
export class CacheEvents {
  readonly #caches: ReadonlyMap<number, CacheLine>;
  readonly #present = new Set<string>();

  constructor(caches: readonly CacheLine[]) {
    this.#caches = new Map(caches.map((cache) => [cache.id, cache]));
  }

  /** Returns the event of a line. Call it for each line, in order. */
  next({ kind, cache: id, object }: SetLine | DropLine): CacheEvent {
    const { process, name: cache = '?' } = this.#caches.get(id) ?? {};
    const key = keyOf(object);
    const place = `${id} ${key}`;
    if (kind === 'drop') {
      this.#present.delete(place);
      return { type: 'DELETED', cache, process, key };
    }
    const type = this.#present.has(place) ? 'MODIFIED' : 'ADDED';
    this.#present.add(place);
    return { type, cache, process, key };
  }
}

/** Describes the start or the end of the controllers. */
export function describeTerm({ state, lease }: TermLine): string {
  if (state === 'started') return lease ? 'acquires the Lease' : 'starts the controllers';
  return lease ? 'stops leading' : 'stops the controllers';
}

/** Describes missing lines. */
export function describeGap({ lines, reason }: GapLine): string {
  return `${countText(lines, 'line')} missing: ${reason}`;
}
