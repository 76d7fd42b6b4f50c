import { namespaceOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { InformerView, SharedInformer } from '../cache/shared-informer.ts';
import type { FinishedCall } from '../client/observed-client.ts';
import type { PostponeMetrics } from '../metrics/reconcile-metrics.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { postpone } from '../workqueue/outcome.ts';
import type { Postponed } from '../workqueue/outcome.ts';
import { exponentialLimiter } from '../workqueue/rate-limiter.ts';
import type { ControllerObserver } from './controller-options.ts';
import type { WatchObserver } from './controller-watches.ts';
import type { SyncGate } from './sync-pipeline.ts';

/**
 * Backoff of a key that waits for a cache to catch up. Events of the cache usually enqueue the key
 * earlier.
 */
export const CATCH_UP_BACKOFF: BackoffPolicy = { initialMs: 50, maxMs: 5_000 };

/** Informer of a written resource. */
export interface WrittenInformer extends Pick<SharedInformer, 'resource'> {
  readonly lister: WrittenCache['lister'];
  within(namespace: string | undefined): WrittenCache | undefined;
}

/** Cache of one list and watch, which is at one resourceVersion as a whole. */
type WrittenCache = Pick<InformerView, 'quorumReadMs' | 'hasReached' | 'relist'> & {
  readonly lister: Pick<InformerView['lister'], 'get'>;
};

/** Time after which a cache that does not show a write is relisted. A stalled watch is detected earlier. */
const RELIST_AFTER_MS = 5 * 60_000;

/** Write that its cache does not show yet. */
type Write = {
  readonly cache: WrittenCache;
  /** Monotonic time of the response. */
  readonly answeredMs: number;
} & (
  | { readonly kind: 'stored'; readonly resourceVersion: string }
  | { readonly kind: 'deleted'; readonly at: ObjectKey; readonly uid: string }
);

/**
 * Read-your-writes: remembers the writes of each key's last sync until the caches show them. An earlier
 * sync would act on the state before its own writes. It could create an object twice, delete one too
 * many, or report an outdated status.
 *
 * Only writes to cached resources and namespaces are tracked. The technique is that of KEP-5647.
 *
 * A write that the server lost, for example because it was restored from a backup, does not block the
 * key: a quorum read that started after the response either shows the write or proves that it is lost.
 * If a write is not visible after five minutes, the cache is relisted with a quorum read.
 */
export class PendingWrites implements SyncGate, ControllerObserver, WatchObserver {
  readonly #caches = new Map<string, WrittenInformer>();
  readonly #pending = new Map<ObjectKey, Write[]>();
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #metrics: Pick<PostponeMetrics, 'stale'>;
  readonly #backoff = exponentialLimiter<ObjectKey>(CATCH_UP_BACKOFF);
  /** Monotonic time of the last relist that was requested. */
  readonly #relistedMs = new Map<WrittenCache, number>();

  constructor(clock: Pick<Clock, 'monotonic'>, metrics: Pick<PostponeMetrics, 'stale'>) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** Tracks writes to the resource of `cache`. */
  watched(cache: WrittenInformer): void {
    this.#caches.set(groupResourceOf(cache.resource), cache);
  }

  /** Postpones the key while the caches do not show all its writes. */
  check(key: ObjectKey): Postponed | undefined {
    if (this.#areVisible(key)) {
      this.#backoff.forget(key);
      return undefined;
    }
    this.#metrics.stale();
    // The event of the write usually enqueues the key earlier; this is the fallback requeue.
    return postpone(this.#backoff.when(key), 'waiting for a cache to show own writes');
  }

  #areVisible(key: ObjectKey): boolean {
    const left = this.#pending.get(key)?.filter((write) => !isVisible(write)) ?? [];
    if (left.length > 0) this.#pending.set(key, left);
    else this.#pending.delete(key);
    for (const { cache, answeredMs } of left) this.#relistIfLate(cache, answeredMs);
    return left.length === 0;
  }

  /** Records a call of `key` if it was a successful write, except dry runs. */
  called(key: ObjectKey, { verb, resource, at, options, answer, failed }: FinishedCall): void {
    const caches = resource && this.#caches.get(groupResourceOf(resource));
    const objectKey = at as ObjectKey;
    const cache = caches?.within(answer ? answer.metadata.namespace : namespaceOf(objectKey));
    if (!cache || failed || options?.dryRun) return;
    const answeredMs = this.#clock.monotonic();
    if (answer) {
      const { resourceVersion } = answer.metadata;
      this.#add(key, { kind: 'stored', cache, answeredMs, resourceVersion });
    } else if (verb === 'delete') {
      const uid = options?.uid ?? cache.lister.get(objectKey)?.metadata.uid;
      if (uid) this.#add(key, { kind: 'deleted', cache, answeredMs, at: objectKey, uid });
    }
  }

  #relistIfLate(cache: WrittenCache, answeredMs: number): void {
    const nowMs = this.#clock.monotonic();
    const sinceMs = Math.max(answeredMs, this.#relistedMs.get(cache) ?? answeredMs);
    if (nowMs - sinceMs < RELIST_AFTER_MS) return;
    this.#relistedMs.set(cache, nowMs);
    cache.relist();
  }

  #add(key: ObjectKey, write: Write): void {
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
