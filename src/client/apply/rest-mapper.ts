import type { Resource } from '../../api/resource.ts';
import { apiVersionOf } from '../../api/resource.ts';
import { editDistance } from '../../util/did-you-mean.ts';
import type { Client } from '../client.ts';
import { discover } from '../discovery.ts';
import type { DiscoveredResource, Discovery } from '../discovery.ts';

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

/** Maximum number of suggestions. */
const MAX_SUGGESTIONS = 3;
/** Maximum edit distance of a suggestion. */
const MAX_TYPOS = 2;
/** Maximum length of names for which suggestions are computed; no kind has a longer name. */
const MAX_NAME = 253;

/**
 * Maps kinds to resources by discovery. The result is cached, and requested again for a kind that it does not
 * contain.
 */
export class RestMapper {
  readonly #client: Client;
  #discovery: Discovery | undefined;
  /** Kinds that were also missing in a repeated discovery. */
  readonly #missed = new Set<string>();

  constructor(client: Client) {
    this.#client = client;
  }

  async find(apiVersion: string, kind: string, signal?: AbortSignal): Promise<RestMapping> {
    const name = `${apiVersion} ${kind}`;
    const isFirst = this.#discovery === undefined;
    let discovery = this.#discovery ?? (await this.#ask(signal));
    let resource = resourceOf(discovery, apiVersion, kind);
    if (!resource && !isFirst && !this.#missed.has(name)) {
      discovery = await this.#ask(signal);
      resource = resourceOf(discovery, apiVersion, kind);
    }
    if (resource) return { kind: 'found', resource };
    this.#missed.add(name);
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
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : [];
  if (group === resource.group) return typos + 1;
  const groupTypos = editDistance(group, resource.group, MAX_TYPOS);
  if (groupTypos <= MAX_TYPOS) return typos + 1 + groupTypos;
  // In an unrelated group, only the same kind is similar.
  return typos === 0 ? 5 : undefined;
}
