import { JSON_TYPE, mediaRanges, takesJson } from './negotiation.ts';
import type { ApiGroup, GroupVersion, Registry } from './registry.ts';
import type { ResourceDefinition } from './resource-definition.ts';

/** A discovery document. */
export interface Document {
  readonly contentType: string;
  readonly value: object;
}

const VERBS = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
] as const;

const DISCOVERY_GROUP = 'apidiscovery.k8s.io';

/** A subresource in discovery. */
interface SubresourceInfo {
  readonly name: string;
  readonly verbs: readonly string[];
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
}

/** Returns the discovery document at `/api`, `/apis` or a path below, or undefined for other paths. */
export function discover(
  registry: Registry,
  segments: readonly string[],
  accept: string | undefined,
): Document | undefined {
  const [root, first, second, ...rest] = segments;
  if (rest.length > 0) return undefined;
  if (root === 'api') {
    if (second !== undefined) return undefined;
    if (first !== undefined) return resourceList(registry.groupVersion('', first));
    const core = registry.groups().filter(({ name }) => name === '');
    return (
      aggregated(core, accept) ??
      json({
        kind: 'APIVersions',
        versions: core.flatMap(({ versions }) => versions.map(({ version }) => version)),
        serverAddressByClientCIDRs: [],
      })
    );
  }
  if (root !== 'apis') return undefined;
  if (second !== undefined) return resourceList(registry.groupVersion(first ?? '', second));
  if (first !== undefined) {
    const group = first === '' ? undefined : registry.group(first);
    return group && json({ kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) });
  }
  const named = registry.groups().filter(({ name }) => name !== '');
  return (
    aggregated(named, accept) ??
    json({ kind: 'APIGroupList', apiVersion: 'v1', groups: named.map(groupEntry) })
  );
}

/** Returns the aggregated discovery document if the client accepts it. */
function aggregated(groups: readonly ApiGroup[], accept: string | undefined): Document | undefined {
  for (const range of mediaRanges(accept)) {
    if (!takesJson(range)) continue;
    const as = range.parameters.get('as');
    if (as === undefined) return undefined;
    const version = range.parameters.get('v');
    const wanted = as === 'APIGroupDiscoveryList' && range.parameters.get('g') === DISCOVERY_GROUP;
    if (!wanted || version !== 'v2') continue;
    return {
      contentType: `${JSON_TYPE};g=${DISCOVERY_GROUP};v=${version};as=${as}`,
      value: {
        kind: as,
        apiVersion: `${DISCOVERY_GROUP}/${version}`,
        metadata: {},
        items: groups.map(({ name, versions }) => ({
          metadata: { ...(name && { name }), creationTimestamp: null },
          versions: versions.map(({ version, definitions }) => ({
            version,
            resources: definitions.map(aggregatedResource),
            freshness: 'Current',
          })),
        })),
      },
    };
  }
  return undefined;
}

function aggregatedResource(definition: ResourceDefinition): object {
  const { group, version, kind, plural, singular, namespaced, shortNames, categories } = definition;
  const subresources = subresourcesOf(definition);
  return {
    resource: plural,
    responseKind: { group, version, kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(definition),
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map(({ name, verbs, kind }) => ({
        subresource: name,
        responseKind: kind,
        verbs,
      })),
    }),
  };
}

function resourceList(groupVersion: GroupVersion | undefined): Document | undefined {
  if (!groupVersion) return undefined;
  return json({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: nameOf(groupVersion),
    resources: groupVersion.definitions.flatMap((definition) => [
      resourceEntry(definition),
      ...subresourcesOf(definition).map((subresource) => subresourceEntry(definition, subresource)),
    ]),
  });
}

function subresourceEntry(
  definition: ResourceDefinition,
  { name, verbs, kind }: SubresourceInfo,
): object {
  const { plural, namespaced, group, version } = definition;
  return {
    name: `${plural}/${name}`,
    singularName: '',
    namespaced,
    // Absent fields default to the listed group and version.
    ...((kind.group !== group || kind.version !== version) && {
      group: kind.group,
      version: kind.version,
    }),
    kind: kind.kind,
    verbs,
  };
}

function resourceEntry(definition: ResourceDefinition): object {
  const { plural, singular, namespaced, kind, shortNames, categories } = definition;
  return {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: verbsOf(definition),
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  };
}

function verbsOf({ deletesCollection = true, review }: ResourceDefinition): readonly string[] {
  if (review) return ['create'];
  return deletesCollection ? VERBS : VERBS.filter((verb) => verb !== 'deletecollection');
}

function subresourcesOf({
  subresources,
  group,
  version,
  kind,
}: ResourceDefinition): SubresourceInfo[] {
  const own = { group, version, kind };
  const infos: SubresourceInfo[] = [];
  if (subresources.binding)
    infos.push({ name: 'binding', verbs: ['create'], kind: { ...own, kind: 'Binding' } });
  if (subresources.eviction) {
    infos.push({
      name: 'eviction',
      verbs: ['create'],
      kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    });
  }
  if (subresources.finalize) infos.push({ name: 'finalize', verbs: ['update'], kind: own });
  if (subresources.log) infos.push({ name: 'log', verbs: ['get'], kind: own });
  if (subresources.scale) {
    infos.push({
      name: 'scale',
      verbs: ['get', 'patch', 'update'],
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    });
  }
  if (subresources.status)
    infos.push({ name: 'status', verbs: ['get', 'patch', 'update'], kind: own });
  return infos;
}

function groupEntry({ name, versions }: ApiGroup): object {
  const entries = versions.map((groupVersion) => ({
    groupVersion: nameOf(groupVersion),
    version: groupVersion.version,
  }));
  return { name, versions: entries, preferredVersion: entries[0] };
}

function nameOf({ group, version }: GroupVersion): string {
  return group ? `${group}/${version}` : version;
}

function json(value: object): Document {
  return { contentType: JSON_TYPE, value };
}
