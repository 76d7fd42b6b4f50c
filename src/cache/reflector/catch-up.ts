import { isApiError } from '../../api/api-error.ts';
import type { DeepReadonly, KubernetesObject, ObjectList } from '../../api/object.ts';
import { keyOf } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import { compareResourceVersions, isOlderResourceVersion } from '../../api/resource-version.ts';
import { Backoff } from '../../util/backoff.ts';
import type { BackoffPolicy } from '../../util/backoff.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { Lister } from '../lister.ts';
import type { ListerWatcher } from './lister-watcher.ts';

/** As much of an informer as it takes to see how far it has come. */
export interface Follower {
  readonly name: string;
  readonly source: ListerWatcher<KubernetesObject>;
  readonly lister: Pick<Lister<KubernetesObject>, 'size' | 'get' | 'list'>;
  readonly hasSynced: boolean;
  /** How far its store has come. */
  readonly lastSyncResourceVersion: string;
  hasReached(resourceVersion: string): boolean;
  /** `Clock.monotonic()` when the last quorum read began that its store was replaced by. */
  readonly quorumReadMs: number;
  relist(): void;
}

export interface CatchUpDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

/** Pace of looking whether the informer has come far enough. */
const LOOK_AGAIN: BackoffPolicy = { initialMs: 10, maxMs: 500, factor: 1.5 };
/** Pace of asking a server that does not answer as it should. */
const ASK_AGAIN: BackoffPolicy = { initialMs: 200, maxMs: 10_000, jitter: 0.5 };
/**
 * How long the watch lasts that asks for the last change. A server sends a bookmark 2 s before it
 * ends a watch, and none in a watch shorter than that; otherwise about one a minute.
 */
const PROBE_SECONDS = 3;

/** Larger caches are not compared: the server would take longer to list them than to answer a probe. */
const MOST_COMPARED = 5000;
/** How long a cache may take to show what it was compared with, before the server is asked again. */
const COMPARE_FOR_MS = 2000;

/**
 * Resolves to true once `informer` shows at least what a read shows that begins now and goes to the
 * quorum; to false if `signal` aborts before. A resource that the server does not have holds nobody
 * up: there is nothing to be behind of.
 *
 * The read tells the revision of the whole server, which an informer of a quiet resource comes to
 * know by a bookmark a minute later. So a small cache is compared with what was read, object by
 * object, which takes milliseconds if it is current. For a large one a short watch, from where the
 * informer is, tells what the last change before that revision was, mostly none; that takes a second
 * or two, however many objects there are.
 *
 * If the server is at an older revision than the informer was before, or has had no change that would
 * explain why the cache differs, it has lost its history: the informer then lists again.
 */
export async function catchUp(
  informer: Follower,
  { clock, log, random }: CatchUpDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const pace = new Backoff(ASK_AGAIN, random);
  while (!signal.aborted) {
    try {
      if (await hasCaughtUp(informer, clock, signal)) return true;
    } catch (error) {
      if (signal.aborted) break;
      if (isApiError(error, 'notFound')) return true;
      log.v(2).info('Could not find out how far a cache has to come; trying again', {
        cache: informer.name,
        err: error,
      });
    }
    await clock.sleep(pace.next(), signal);
  }
  return false;
}

/** @returns false if `signal` aborted, or it could not be found out */
async function hasCaughtUp(
  informer: Follower,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  if (!informer.hasSynced) {
    // If there is no such resource, it never will.
    await informer.source.list({ limit: 1, signal });
    if (!(await holds(() => informer.hasSynced, clock, signal))) return false;
  }
  const before = informer.lastSyncResourceVersion;
  const askedMs = clock.monotonic();
  const isSmall = informer.lister.size <= MOST_COMPARED;
  const list = await informer.source.list(
    isSmall ? { limit: MOST_COMPARED, metadataOnly: true, signal } : { limit: 1, signal },
  );
  const relisted = () => informer.quorumReadMs >= askedMs;
  const relist = () => {
    informer.relist();
    return holds(relisted, clock, signal);
  };
  if (isOlderResourceVersion(list.resourceVersion, before)) return relist();
  if (informer.hasReached(list.resourceVersion)) return true;
  const isComparable = isSmall && list.continueToken === undefined;
  if (isComparable) {
    const untilMs = clock.monotonic() + COMPARE_FOR_MS;
    if (await holds(() => shows(informer, list), clock, signal, untilMs)) return true;
  }
  const last = await lastChange(informer, list.resourceVersion, signal);
  if (last === undefined) return false;
  if (!(await holds(() => informer.hasReached(last) || relisted(), clock, signal))) return false;
  return !isComparable || shows(informer, list) || relist();
}

/**
 * The resourceVersion of the last change up to `target` that the informer does not show yet, or
 * where it is if there is none; undefined if that could not be found out.
 */
async function lastChange(
  { source, lastSyncResourceVersion }: Follower,
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
 * Whether the cache shows `state`, the whole of it at one moment, or more: nothing in it is older, and
 * what is in only one of them came or went after that moment.
 */
function shows(
  informer: Follower,
  { items, resourceVersion }: ObjectList<KubernetesObject>,
): boolean {
  if (informer.hasReached(resourceVersion)) return true;
  const { lister } = informer;
  const keys = new Set<ObjectKey>();
  for (const object of items) {
    const key = keyOf(object);
    const shown = lister.get(key);
    if (!shown || isOlder(shown, object.metadata.resourceVersion)) return false;
    keys.add(key);
  }
  if (lister.size === keys.size) return true;
  return lister.list().every((shown) => {
    return keys.has(keyOf(shown)) || !isOlder(shown, resourceVersion);
  });
}

function isOlder({ metadata }: DeepReadonly<KubernetesObject>, resourceVersion: string): boolean {
  // Most are the same, and need not be read as numbers.
  if (metadata.resourceVersion === resourceVersion) return false;
  return compareResourceVersions(metadata.resourceVersion, resourceVersion) < 0;
}

/**
 * Resolves to true once `condition` holds, to false if `signal` aborts before, or the clock has passed
 * `untilMs`.
 */
async function holds(
  condition: () => boolean,
  clock: Clock,
  signal: AbortSignal,
  untilMs = Infinity,
): Promise<boolean> {
  const pace = new Backoff(LOOK_AGAIN);
  while (!signal.aborted) {
    if (condition()) return true;
    if (clock.monotonic() >= untilMs) return false;
    await clock.sleep(pace.next(), signal);
  }
  return false;
}
