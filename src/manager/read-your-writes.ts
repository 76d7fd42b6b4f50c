import { namespaceOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { InformerView, SharedInformer } from '../cache/shared-informer.ts';
import type { Clock } from '../util/clock.ts';
import type { EndedCall } from './observed-client.ts';

/** Informer of a written resource. */
export interface WrittenInformer extends Pick<SharedInformer, 'resource'> {
  readonly lister: WrittenCache['lister'];
  within(namespace: string | undefined): WrittenCache | undefined;
}

/** Cache of one list and watch, which is at one resourceVersion as a whole. */
type WrittenCache = Pick<InformerView, 'quorumReadMs' | 'hasReached' | 'relist'> & {
  readonly lister: Pick<InformerView['lister'], 'get'>;
};

/** A stalled watch is re-established sooner; after so long, in milliseconds, a write is not just late. */
const OVERDUE_MS = 5 * 60_000;

/** A write that its cache has not shown yet. */
type Write = {
  readonly cache: WrittenCache;
  /** `Clock.monotonic()` when the answer came. */
  readonly answeredMs: number;
} & (
  | { readonly kind: 'stored'; readonly resourceVersion: string }
  | { readonly kind: 'deleted'; readonly at: ObjectKey; readonly uid: string }
);

/**
 * Read-your-writes: remembers, for each key, the writes of its last run until the caches have
 * caught up with them. A run that began earlier would act on a state from before its own writes:
 * create a child twice, delete one too many, or report a status that is already wrong.
 *
 * Only what a cache shows is tracked: what is read live, as in namespaces that have no cache, needs
 * no such care. The technique is KEP-5647's. A write that a server lost with its history, as one that
 * was restored from a backup has, is not waited for: a quorum read that began after the answer shows
 * the write, or it is lost. If no such read comes by itself, it is asked for.
 */
export class PendingWrites {
  readonly #caches = new Map<string, WrittenInformer>();
  readonly #pending = new Map<ObjectKey, Write[]>();
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** When a cache was last asked for a quorum read. */
  readonly #relistedMs = new Map<WrittenCache, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Tracks writes to the resource that `cache` mirrors. */
  track(cache: WrittenInformer): void {
    this.#caches.set(groupResourceOf(cache.resource), cache);
  }

  /** True once every write entered for `key` can be read from its cache. */
  visible(key: ObjectKey): boolean {
    const left = this.#pending.get(key)?.filter((write) => !isVisible(write)) ?? [];
    if (left.length > 0) this.#pending.set(key, left);
    else this.#pending.delete(key);
    for (const { cache, answeredMs } of left) this.#relistIfOverdue(cache, answeredMs);
    return left.length === 0;
  }

  /** Enters a call under `key` if it was a write that succeeded, and no dry run: nobody will see those. */
  enter(key: ObjectKey, { verb, resource, at, options, answer, failed }: EndedCall): void {
    const caches = resource && this.#caches.get(groupResourceOf(resource));
    const child = at as ObjectKey;
    const cache = caches?.within(answer ? answer.metadata.namespace : namespaceOf(child));
    if (!cache || failed || options?.dryRun) return;
    const answeredMs = this.#clock.monotonic();
    if (answer) {
      const { resourceVersion } = answer.metadata;
      this.#enter(key, { kind: 'stored', cache, answeredMs, resourceVersion });
    } else if (verb === 'delete') {
      const uid = options?.uid ?? cache.lister.get(child)?.metadata.uid;
      if (uid) this.#enter(key, { kind: 'deleted', cache, answeredMs, at: child, uid });
    }
  }

  #relistIfOverdue(cache: WrittenCache, answeredMs: number): void {
    const nowMs = this.#clock.monotonic();
    const sinceMs = Math.max(answeredMs, this.#relistedMs.get(cache) ?? answeredMs);
    if (nowMs - sinceMs < OVERDUE_MS) return;
    this.#relistedMs.set(cache, nowMs);
    cache.relist();
  }

  #enter(key: ObjectKey, write: Write): void {
    const writes = this.#pending.get(key);
    if (writes) writes.push(write);
    else this.#pending.set(key, [write]);
  }
}

function isVisible(write: Write): boolean {
  const { cache, answeredMs } = write;
  if (cache.quorumReadMs > answeredMs) return true;
  switch (write.kind) {
    case 'stored':
      return cache.hasReached(write.resourceVersion);
    case 'deleted': {
      const cached = cache.lister.get(write.at);
      return cached?.metadata.uid !== write.uid || cached.metadata.deletionTimestamp !== undefined;
    }
  }
}
