import type { Resource } from '../api/resource.ts';
import { apiGroupOf, apiVersionOf } from '../api/resource.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import { editDistance } from '../util/did-you-mean.ts';
import type { Client } from './client.ts';
import { discover } from './discovery.ts';
import type { DiscoveredResource, Discovery } from './discovery.ts';

/** Options of {@link RestMapper}. */
export interface RestMapperOptions {
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
}

/** The resource of a kind, or suggestions if the server does not have the kind. */
export type RestMapping =
  | { readonly kind: 'found'; readonly resource: DiscoveredResource }
  | {
      readonly kind: 'unknown';
      /** Similar kinds, the most similar first: `apps/v1 Deployment`. */
      readonly suggestions: readonly string[];
      /** True if the server lists the group version but cannot describe it. */
      readonly isDown: boolean;
    };

/** The server has no such kind or resource. The message suggests similar kinds. */
export class NoMatchError extends Error {
  override readonly name = 'NoMatchError';
}

/** Time after which a missing kind is looked up again, in milliseconds. */
const MISS_MS = 10_000;
/** Maximum number of repeated discoveries in this time. */
const MAX_MISSES = 50;
/** Maximum number of suggestions. */
const MAX_SUGGESTIONS = 3;
/** Maximum edit distance of a suggestion. */
const MAX_TYPOS = 2;
/** Maximum length of names for which suggestions are computed; no kind has a longer name. */
const MAX_NAME = 253;

/**
 * Maps kinds and names to resources by discovery, as client-go's RESTMapper does. The result is cached. A kind or name
 * that it does not contain requests discovery again, at most once in 10 s for the same one.
 */
export class RestMapper {
  readonly #client: Pick<Client, 'raw'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #discovery: Discovery | undefined;
  /** Kinds and names that were also missing in a repeated discovery. */
  readonly #missed = new Set<string>();
  #missedMs = 0;

  constructor(client: Pick<Client, 'raw'>, options: RestMapperOptions = {}) {
    this.#client = client;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Returns the resource of a kind.
   *
   * @throws {NoMatchError} if the server does not have the kind
   * @throws {ApiError} if the server cannot be asked
   */
  async get(apiVersion: string, kind: string, signal?: AbortSignal): Promise<DiscoveredResource> {
    const found = await this.find(apiVersion, kind, signal);
    if (found.kind === 'found') return found.resource;
    const { suggestions, isDown } = found;
    const why = isDown
      ? `; ${apiVersion} is listed but not available; check its APIService`
      : suggestions.length > 0
        ? `; did you mean ${suggestions.join(', or ')}?`
        : '';
    throw new NoMatchError(`the server has no kind ${kind} in ${apiVersion}${why}`);
  }

  /**
   * Returns the resource with a name as kubectl accepts it: `deployments`, `deployment`, `Deployment`, a short name, or
   * one of these with the group (`deployments.apps`) or version and group (`deployments.v1.apps`).
   *
   * @throws {NoMatchError} if the server does not have it
   * @throws {ApiError} if the server cannot be asked
   */
  async resolve(name: string, signal?: AbortSignal): Promise<DiscoveredResource> {
    const { found } = await this.#lookUp(name, (discovery) => discovery.resolve(name), signal);
    if (found) return found;
    throw new NoMatchError(`the server has no resource ${name}`);
  }

  /** Returns the resource of a kind, or suggestions. */
  async find(apiVersion: string, kind: string, signal?: AbortSignal): Promise<RestMapping> {
    const { found, discovery } = await this.#lookUp(
      `${apiVersion} ${kind}`,
      (known) => resourceOf(known, apiVersion, kind),
      signal,
    );
    if (found) return { kind: 'found', resource: found };
    return {
      kind: 'unknown',
      suggestions: suggestionsFor(apiVersion, kind, discovery.resources),
      isDown: discovery.failed.includes(apiVersion),
    };
  }

  /** Requests discovery again, after kinds were added or removed. */
  async refresh(signal?: AbortSignal): Promise<void> {
    this.#missed.clear();
    await this.#ask(signal);
  }

  /** Reports whether the cached discovery contains the kind. */
  knows(apiVersion: string, kind: string): boolean {
    return (
      this.#discovery !== undefined && resourceOf(this.#discovery, apiVersion, kind) !== undefined
    );
  }

  async #lookUp(
    name: string,
    look: (discovery: Discovery) => DiscoveredResource | undefined,
    signal: AbortSignal | undefined,
  ) {
    const isFirst = this.#discovery === undefined;
    let discovery = this.#discovery ?? (await this.#ask(signal));
    let found = look(discovery);
    if (found) return { found, discovery };
    const now = this.#clock.monotonic();
    if (now - this.#missedMs >= MISS_MS) this.#missed.clear();
    if (this.#missed.size === 0) this.#missedMs = now;
    if (!isFirst && !this.#missed.has(name) && this.#missed.size < MAX_MISSES) {
      discovery = await this.#ask(signal);
      found = look(discovery);
    }
    if (!found) this.#missed.add(name);
    return { found, discovery };
  }

  async #ask(signal?: AbortSignal): Promise<Discovery> {
    this.#discovery = await discover(this.#client, signal);
    return this.#discovery;
  }
}

/** Returns the resource of a kind; of several, the one that supports patch. */
function resourceOf(
  { resources }: Discovery,
  apiVersion: string,
  kind: string,
): DiscoveredResource | undefined {
  const all = resources.filter(
    (resource) => resource.kind === kind && apiVersionOf(resource) === apiVersion,
  );
  return all.find(({ verbs }) => verbs.includes('patch')) ?? all[0];
}

function suggestionsFor(
  apiVersion: string,
  kind: string,
  resources: readonly Resource[],
): readonly string[] {
  if (kind.length > MAX_NAME || apiVersion.length > MAX_NAME) return [];
  const scored = resources
    .map((resource) => ({
      name: `${apiVersionOf(resource)} ${resource.kind}`,
      score: distanceOf(apiVersion, kind, resource),
    }))
    .filter(({ score }) => score !== undefined)
    .toSorted((a, b) => (a.score ?? 0) - (b.score ?? 0));
  return [...new Set(scored.map(({ name }) => name))].slice(0, MAX_SUGGESTIONS);
}

/** Returns the distance between a kind and a resource; undefined if they are not similar. */
function distanceOf(apiVersion: string, kind: string, resource: Resource): number | undefined {
  const most = Math.min(MAX_TYPOS, Math.floor(kind.length / 3));
  const typos = editDistance(kind.toLowerCase(), resource.kind.toLowerCase(), most);
  if (typos > most) return undefined;
  const actual = apiVersionOf(resource);
  if (actual === apiVersion) return typos;
  const group = apiGroupOf(apiVersion);
  if (group === resource.group) return typos + 1;
  const groupTypos = editDistance(group, resource.group, MAX_TYPOS);
  if (groupTypos <= MAX_TYPOS) return typos + 1 + groupTypos;
  // In an unrelated group, only the same kind is similar.
  return typos === 0 ? 5 : undefined;
}
