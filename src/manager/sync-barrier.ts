import { isApiError } from '../api/api-error.ts';
import type { DeepReadonly, KubernetesObject, ObjectList } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { compareResourceVersions, isOlderResourceVersion } from '../api/resource-version.ts';
import { hasSameVersion } from '../cache/indexer.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';

/** The part of an informer that the barrier reads. */
export interface BarrierCache extends Pick<
  InformerView,
  | 'name'
  | 'source'
  | 'hasSynced'
  | 'lastSyncResourceVersion'
  | 'hasReached'
  | 'quorumReadMs'
  | 'relist'
> {
  readonly lister: Pick<InformerView['lister'], 'size' | 'get' | 'list'>;
}

/** Dependencies of {@link withSyncBarrier}. */
export interface SyncBarrierDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns numbers in [0, 1). */
  readonly random: () => number;
}

/** Interval between checks whether the informer has caught up. */
const POLL: BackoffPolicy = { initialMs: 10, maxMs: 500, factor: 1.5 };
/** Backoff after a failed request. */
const RETRY: BackoffPolicy = { initialMs: 200, maxMs: 10_000, jitter: 0.5 };
/**
 * Duration of the watch that finds the last change. A server sends a bookmark 2 s before it ends a
 * watch, and none in a watch shorter than that; otherwise about one a minute.
 */
const PROBE_SECONDS = 3;

/** Larger caches are not compared with a list: a probe watch is faster than the list. */
const MAX_COMPARED_OBJECTS = 5000;
/** Maximum time for a cache to reach the list that it is compared with. */
const COMPARE_TIMEOUT_MS = 2000;

/**
 * Wraps `controller` so that it runs only after its caches contain the state that the server has when
 * `run` is called. For controllers that start when their process becomes the leader: the previous
 * leader may have written a moment ago, and the caches of a standby may lag behind.
 *
 * Each controller waits for its own informers only.
 */
export function withSyncBarrier(
  controller: Runnable & {
    readonly informers: readonly { readonly parts: readonly BarrierCache[] }[];
  },
  deps: SyncBarrierDeps,
): Runnable {
  return {
    name: controller.name,
    run: async (signal) => {
      const { clock, log } = deps;
      const sinceMs = clock.monotonic();
      const caches = controller.informers.flatMap(({ parts }) => parts);
      const current = await Promise.all(
        caches.map((cache) => waitUntilCurrent(cache, deps, signal)),
      );
      if (current.includes(false)) return;
      log.v(2).info('Caches have caught up with the server', {
        controller: controller.name,
        tookMs: Math.round(clock.monotonic() - sinceMs),
      });
      await controller.run(signal);
    },
  };
}

/**
 * Resolves to true once the cache contains at least the state of a quorum read that starts now, and to
 * false if `signal` aborts first. A resource that is not served counts as synced.
 *
 * The read returns the revision of the whole server. The informer of a resource without changes learns
 * that revision only by the next bookmark, up to a minute later. Therefore a small cache is compared
 * with the list object by object, which takes milliseconds. For a large one, a short watch from the
 * informer's resourceVersion finds the last change before that revision, in one or two seconds.
 *
 * The informer relists if the server has lost its history: its revision is older than one that the
 * informer has seen, or the cache differs from the list without a change that explains it.
 */
export async function waitUntilCurrent(
  informer: BarrierCache,
  { clock, log, random }: SyncBarrierDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const backoff = new Backoff(RETRY, random);
  while (!signal.aborted) {
    try {
      if (await isCurrent(informer, clock, signal)) return true;
    } catch (error) {
      if (signal.aborted) break;
      if (isApiError(error, 'notFound')) return true;
      log.v(2).info('Could not compare a cache with the server; retrying', {
        cache: informer.name,
        err: error,
      });
    }
    await clock.sleep(backoff.next(), signal);
  }
  return false;
}

/** Returns false if `signal` aborted, or the comparison had no result. */
async function isCurrent(
  informer: BarrierCache,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  if (!informer.hasSynced) {
    // The cache of a resource that is not served never syncs; this read throws `notFound` for it.
    await informer.source.list({ limit: 1, signal });
    if (!(await becomesTrue(() => informer.hasSynced, clock, signal))) return false;
  }
  const before = informer.lastSyncResourceVersion;
  const startMs = clock.monotonic();
  const isSmall = informer.lister.size <= MAX_COMPARED_OBJECTS;
  const list = await informer.source.list(
    isSmall ? { limit: MAX_COMPARED_OBJECTS, metadataOnly: true, signal } : { limit: 1, signal },
  );
  const hasRelisted = () => informer.quorumReadMs >= startMs;
  const relist = () => {
    informer.relist();
    return becomesTrue(hasRelisted, clock, signal);
  };
  if (isOlderResourceVersion(list.resourceVersion, before)) return relist();
  if (informer.hasReached(list.resourceVersion)) return true;
  const isComparable = isSmall && list.continueToken === undefined;
  if (isComparable) {
    const untilMs = clock.monotonic() + COMPARE_TIMEOUT_MS;
    if (await becomesTrue(() => contains(informer, list), clock, signal, untilMs)) return true;
  }
  const last = await lastChange(informer, list.resourceVersion, signal);
  if (last === undefined) return false;
  const hasReachedLast = () => informer.hasReached(last) || hasRelisted();
  if (!(await becomesTrue(hasReachedLast, clock, signal))) return false;
  return !isComparable || contains(informer, list) || relist();
}

/**
 * Returns the resourceVersion of the last change up to `target` that the informer has not seen yet, or
 * the informer's own if there is none. Undefined if the watch ended before it was known.
 */
async function lastChange(
  { source, lastSyncResourceVersion }: BarrierCache,
  target: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  let last = lastSyncResourceVersion;
  const events = await source.watch({
    resourceVersion: last,
    allowWatchBookmarks: true,
    timeoutSeconds: PROBE_SECONDS,
    signal,
  });
  for await (const event of events) {
    if (event.type === 'error') throw event.error;
    if (event.type === 'bookmark') {
      if (compareResourceVersions(event.resourceVersion, target) >= 0) return last;
      continue;
    }
    const { resourceVersion } = event.object.metadata;
    const order = compareResourceVersions(resourceVersion, target);
    if (order > 0) return last;
    last = resourceVersion;
    if (order === 0) return last;
  }
  return undefined;
}

/**
 * Whether the cache contains the listed state or a later one: none of its objects is older, and each
 * object that is only in one of the two was created or deleted after the list.
 */
function contains(
  informer: BarrierCache,
  { items, resourceVersion }: ObjectList<KubernetesObject>,
): boolean {
  if (informer.hasReached(resourceVersion)) return true;
  const { lister } = informer;
  const keys = new Set<ObjectKey>();
  for (const object of items) {
    const key = keyOf(object);
    const cached = lister.get(key);
    if (!cached || !(hasSameVersion(cached, object) || isNewer(cached, object))) return false;
    keys.add(key);
  }
  if (lister.size === keys.size) return true;
  return lister.list().every((cached) => {
    return (
      keys.has(keyOf(cached)) ||
      compareResourceVersions(cached.metadata.resourceVersion, resourceVersion) >= 0
    );
  });
}

function isNewer(
  { metadata }: DeepReadonly<KubernetesObject>,
  { metadata: listed }: KubernetesObject,
): boolean {
  return compareResourceVersions(metadata.resourceVersion, listed.resourceVersion) > 0;
}

/** Polls `condition`: true once it is true; false if `signal` aborts or the clock passes `untilMs`. */
async function becomesTrue(
  condition: () => boolean,
  clock: Clock,
  signal: AbortSignal,
  untilMs = Infinity,
): Promise<boolean> {
  const poll = new Backoff(POLL);
  while (!signal.aborted) {
    if (condition()) return true;
    if (clock.monotonic() >= untilMs) return false;
    await clock.sleep(poll.next(), signal);
  }
  return false;
}
