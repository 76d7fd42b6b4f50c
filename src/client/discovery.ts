import type { UnstructuredObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { isApiError } from '../api/api-error.ts';
import type { Client } from './client.ts';
import { malformed } from './json.ts';
import { isRecord } from '../util/values.ts';

/**
 * A resource in the server's discovery document. It is a descriptor for clients, informers and listers, whose objects have
 * fields of the type `unknown`.
 */
export interface DiscoveredResource extends Resource<UnstructuredObject> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  /** Names of subresources: `status`, `scale`. */
  readonly subresources: readonly string[];
}

/** The resources that a server served at the time of the request. */
export interface Discovery {
  /** Preferred versions first, groups in the server's order. */
  readonly resources: readonly DiscoveredResource[];
  /** Group versions that the server lists but cannot describe, such as an aggregated API that is down. */
  readonly failed: readonly string[];
  /**
   * Returns the first resource with a name as kubectl accepts it: `counts`, `count`, `Count`, a short name, or
   * one of these with the group (`counts.demo.mark8s.io`) or version and group (`deployments.v1.apps`).
   * Ignores case. Returns undefined if there is none.
   */
  resolve(name: string): DiscoveredResource | undefined;
}

/** The version of an API server, as `/version` reports it. */
export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  /** `v1.36.1` */
  readonly gitVersion: string;
  readonly platform: string;
}

const AGGREGATED =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

/**
 * Requests the resources of a server: two requests if the server supports aggregated discovery, otherwise one
 * for each group version.
 *
 * @example
 * ```ts
 * import { HttpClient } from 'crd-controller';
 * import { discover } from 'crd-controller/client';
 * import { ApiServer } from 'crd-controller/testing';
 *
 * const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
 * const { resources } = await discover(client);
 * console.log(resources.some(({ kind }) => kind === 'Pod')); // prints: true
 * ```
 */
export async function discover(
  client: Pick<Client, 'raw'>,
  signal?: AbortSignal,
): Promise<Discovery> {
  const parts = await Promise.all(
    ['/api', '/apis'].map(async (path): Promise<Part> => {
      const response = await client.raw({ path, accept: AGGREGATED, signal });
      return isRecord(response) && response['kind'] === 'APIGroupDiscoveryList'
        ? aggregated(response)
        : legacy(client, path, response, signal);
    }),
  );
  const resources = parts.flatMap((part) => part.resources);
  return {
    resources,
    failed: parts.flatMap((part) => part.failed),
    resolve: (name) => resolve(resources, name.toLowerCase()),
  };
}

/** Requests the version of a server. */
export async function serverVersion(client: Client, signal?: AbortSignal): Promise<ServerVersion> {
  const response = await client.raw({ path: '/version', signal });
  if (!isRecord(response) || typeof response['gitVersion'] !== 'string') {
    throw malformed(
      'The response to GET /version is not a version. Check that the address is that of a Kubernetes API server.',
    );
  }
  return {
    major: text(response['major']),
    minor: text(response['minor']),
    gitVersion: response['gitVersion'],
    platform: text(response['platform']),
  };
}

interface Part {
  readonly resources: readonly DiscoveredResource[];
  readonly failed: readonly string[];
}

function resolve(
  resources: readonly DiscoveredResource[],
  name: string,
): DiscoveredResource | undefined {
  const [first = '', ...rest] = name.split('.');
  const [version, ...versionedGroup] = rest;
  return resources.find((resource) => {
    if (!namesOf(resource).includes(first)) return false;
    if (rest.length === 0) return true;
    return (
      resource.group === rest.join('.') ||
      (resource.version === version && resource.group === versionedGroup.join('.'))
    );
  });
}

function namesOf({ plural, singular, kind, shortNames }: DiscoveredResource): string[] {
  return [plural, singular, kind.toLowerCase(), ...shortNames];
}

/** Reads an aggregated discovery document, `apidiscovery.k8s.io/v2`. */
function aggregated(list: Record<string, unknown>): Part {
  const versions = records(list['items']).flatMap((group) => {
    const name = isRecord(group['metadata']) ? text(group['metadata']['name']) : '';
    return records(group['versions']).map((version) => ({ group: name, version }));
  });
  return {
    resources: versions.flatMap(({ group, version }) =>
      records(version['resources']).map((resource) => ({
        group,
        version: text(version['version']),
        plural: text(resource['resource']),
        kind: isRecord(resource['responseKind']) ? text(resource['responseKind']['kind']) : '',
        namespaced: resource['scope'] === 'Namespaced',
        singular: text(resource['singularResource']),
        shortNames: texts(resource['shortNames']),
        categories: texts(resource['categories']),
        verbs: texts(resource['verbs']),
        subresources: records(resource['subresources']).map((each) => text(each['subresource'])),
      })),
    ),
    failed: versions
      .filter(({ version }) => version['freshness'] === 'Stale')
      .map(({ group, version }) => `${group}/${text(version['version'])}`),
  };
}

async function legacy(
  client: Pick<Client, 'raw'>,
  root: string,
  response: unknown,
  signal: AbortSignal | undefined,
): Promise<Part> {
  if (!isRecord(response))
    throw malformed(`The response to GET ${root} is not a discovery document`);
  const groupVersions =
    response['kind'] === 'APIVersions'
      ? texts(response['versions'])
      : records(response['groups']).flatMap(groupVersionsOf);
  const parts = await Promise.all(
    groupVersions.map(async (groupVersion): Promise<Part> => {
      try {
        const list = await client.raw({ path: `${root}/${groupVersion}`, signal });
        return { resources: legacyResources(groupVersion, list), failed: [] };
      } catch (error) {
        // An aggregated API that fails must not hide all others.
        if (!isApiError(error, 'unavailable', 'internal', 'notFound', 'timeout')) throw error;
        return { resources: [], failed: [groupVersion] };
      }
    }),
  );
  return {
    resources: parts.flatMap((part) => part.resources),
    failed: parts.flatMap((part) => part.failed),
  };
}

/** Returns the versions of a group, the preferred one first. */
function groupVersionsOf(group: Record<string, unknown>): string[] {
  const preferred = isRecord(group['preferredVersion']) ? group['preferredVersion'] : {};
  const all = [preferred, ...records(group['versions'])].map((each) => text(each['groupVersion']));
  return [...new Set(all)].filter((groupVersion) => groupVersion !== '');
}

function legacyResources(groupVersion: string, list: unknown): DiscoveredResource[] {
  const [group, version] = groupVersion.includes('/')
    ? [groupVersion.split('/')[0] ?? '', groupVersion.split('/')[1] ?? '']
    : ['', groupVersion];
  const entries = isRecord(list) ? records(list['resources']) : [];
  const namesAndParents = entries.map((entry) => text(entry['name']));
  return entries
    .filter((entry) => !text(entry['name']).includes('/'))
    .map((entry) => {
      const plural = text(entry['name']);
      return {
        group,
        version,
        plural,
        kind: text(entry['kind']),
        namespaced: entry['namespaced'] === true,
        singular: text(entry['singularName']) || text(entry['kind']).toLowerCase(),
        shortNames: texts(entry['shortNames']),
        categories: texts(entry['categories']),
        verbs: texts(entry['verbs']),
        subresources: namesAndParents
          .filter((name) => name.startsWith(`${plural}/`))
          .map((name) => name.slice(plural.length + 1)),
      };
    });
}

function records(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? (value as unknown[]).filter(isRecord) : [];
}

function texts(value: unknown): string[] {
  return Array.isArray(value)
    ? (value as unknown[]).filter((item): item is string => typeof item === 'string')
    : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
