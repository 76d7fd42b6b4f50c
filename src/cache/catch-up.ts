import { isApiError } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import { compareResourceVersions } from '../api/resource-version.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { ListerWatcher } from './lister-watcher.ts';

/** As much of an informer as it takes to see how far it has come. */
export interface Follower {
  readonly name: string;
  readonly source: ListerWatcher<KubernetesObject>;
  readonly hasSynced: boolean;
  /** How far its store has come. */
  readonly lastSyncResourceVersion: string;
  hasReached(resourceVersion: string): boolean;
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

/**
 * Resolves to true once `informer` shows at least what a read shows that begins now and goes to the
 * quorum; to false if `signal` aborts before. A resource that the server does not have holds nobody
 * up: there is nothing to be behind of.
 *
 * The read tells the revision of the whole server, which an informer of a quiet resource comes to
 * know by a bookmark a minute later. So a short watch, from where the informer is, tells what the
 * last change before that revision was; mostly none.
 */
export async function catchUp(
  informer: Follower,
  { clock, log, random }: CatchUpDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const pace = new Backoff(ASK_AGAIN, random);
  while (!signal.aborted) {
    try {
      // One object is enough: it is the revision that counts.
      const { resourceVersion: target } = await informer.source.list({ limit: 1, signal });
      if (!(await holds(() => informer.hasSynced, clock, signal))) break;
      if (informer.hasReached(target)) return true;
      const last = await lastChange(informer, target, signal);
      if (last !== undefined) return await holds(() => informer.hasReached(last), clock, signal);
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

/** Resolves to true once `condition` holds, to false if `signal` aborts before. */
async function holds(
  condition: () => boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const pace = new Backoff(LOOK_AGAIN);
  while (!signal.aborted) {
    if (condition()) return true;
    await clock.sleep(pace.next(), signal);
  }
  return false;
}
