import type { Resource } from '../../api/resource.ts';
import { apiVersionOf } from '../../api/resource.ts';
import { editDistance } from '../../util/did-you-mean.ts';
import type { Client } from '../client.ts';
import { discover } from '../discovery.ts';
import type { DiscoveredResource, Discovery } from '../discovery.ts';

/** What a server has under a name. */
export type RestMapping =
  | { readonly kind: 'found'; readonly resource: DiscoveredResource }
  | {
      readonly kind: 'unknown';
      /** Other names, likeliest first: `apps/v1 Deployment`. */
      readonly suggestions: readonly string[];
      /** The server lists the group version and cannot describe it now. */
      readonly isDown: boolean;
    };

/** How many other names are offered. */
const MAX_SUGGESTIONS = 3;
/** Letters by which a word may differ from what was meant. */
const MAX_TYPOS = 2;
/** Nobody mistypes what is longer; no name of a kind is. */
const MAX_NAME = 253;

/**
 * Finds the resource of a kind. The server is asked once for all it has, and again for a kind that it
 * did not have then.
 */
export class RestMapper {
  readonly #client: Client;
  #discovery: Discovery | undefined;
  /** Kinds that were not there either when the server was asked again. */
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

  /** Asks the server anew: it has got, or lost, kinds. */
  async refresh(signal?: AbortSignal): Promise<void> {
    this.#missed.clear();
    await this.#ask(signal);
  }

  /** True if the server had the kind when it was last asked. */
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

/** Where several resources have the kind, the one that can be patched. */
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

/** Undefined if nobody would take one for the other. */
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
  // Somewhere else altogether: only if it is called exactly so.
  return typos === 0 ? 5 : undefined;
}
