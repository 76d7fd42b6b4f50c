import { isExpired, isTooLargeResourceVersion } from '../../api/api-error.ts';

/**
 * How fresh a fetched state must be. `any`: whatever a cache of the server has, for the first one.
 * `latest`: by a quorum read, when the server does not have the resourceVersion we know. `atLeast`:
 * a relist, which must not go back in time.
 */
export type Freshness = 'any' | 'latest' | { readonly atLeast: string };

/** The freshness of a state that follows the one at `resourceVersion`. */
export function notOlderThan(resourceVersion: string): Freshness {
  return isPointInTime(resourceVersion) ? { atLeast: resourceVersion } : 'any';
}

/** False for what a server reads as "whichever". */
export function isPointInTime(resourceVersion: string): boolean {
  return resourceVersion !== '' && resourceVersion !== '0';
}

/** What a list asks for; absent means a quorum read. */
export function listResourceVersion(freshness: Freshness): string | undefined {
  return freshness === 'any' ? '0' : streamResourceVersion(freshness);
}

/** What a stream of the initial state asks for: its cheapest state is the latest. */
export function streamResourceVersion(freshness: Freshness): string | undefined {
  return typeof freshness === 'string' ? undefined : freshness.atLeast;
}

/** The server no longer, or not yet, has the resourceVersion asked for. */
export function isLostVersion(error: unknown): boolean {
  return isExpired(error) || isTooLargeResourceVersion(error);
}
