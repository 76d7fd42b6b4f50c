import { createHash } from 'node:crypto';
import { JSON_TYPE, mediaRanges, requireAcceptable, takesObject } from './negotiation.ts';
import type { ApiGroup, GroupVersion, Registry } from './registry.ts';
import type { ResourceDefinition, Subresources } from './resource-definition.ts';

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

/**
 * Returns the discovery document at `/api`, `/apis` or a path below, or undefined for other paths.
 *
 * @throws {StatusError} 406 if the client accepts no form of it
 */
export function discover(
  registry: Registry,
  segments: readonly string[],
  accept: string | undefined,
): Document | undefined {
  const document = documentAt(registry, segments, accept);
  if (document) requireAcceptable(accept);
  return document;
}

function documentAt(
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
    if (!takesObject(range)) continue;
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
    ...(isStored(definition) && { storageVersionHash: storageVersionHash(definition) }),
  };
}

function isStored(definition: ResourceDefinition): boolean {
  const verbs = verbsOf(definition);
  return verbs.includes('create') && verbs.includes('get');
}

/** Built-in kinds that kube-apiserver stores in another group or version than the listed one. */
const STORED_AS: Readonly<Record<string, string>> = {
  'apiextensions.k8s.io/v1/CustomResourceDefinition':
    'apiextensions.k8s.io/v1beta1/CustomResourceDefinition',
  'autoscaling/v1/HorizontalPodAutoscaler': 'autoscaling/v2/HorizontalPodAutoscaler',
  'certificates.k8s.io/v1/ClusterTrustBundle': 'certificates.k8s.io/v1beta1/ClusterTrustBundle',
  'certificates.k8s.io/v1/PodCertificateRequest':
    'certificates.k8s.io/v1beta1/PodCertificateRequest',
  'events.k8s.io/v1/Event': '/v1/Event',
  'resource.k8s.io/v1/DeviceTaintRule': 'resource.k8s.io/v1beta2/DeviceTaintRule',
  'storagemigration.k8s.io/v1/StorageVersionMigration':
    'storagemigration.k8s.io/v1beta1/StorageVersionMigration',
};

/** Returns upstream's hash of the group, version and kind in which objects are stored. */
function storageVersionHash({ group, version, kind, storageVersion }: ResourceDefinition): string {
  const name = `${group}/${storageVersion ?? version}/${kind}`;
  const hash = createHash('sha256').update(STORED_AS[name] ?? name);
  return hash.digest().toString('base64', 0, 8);
}

function verbsOf({ verbs = VERBS }: ResourceDefinition): readonly string[] {
  return verbs;
}

const READ_AND_WRITE = ['get', 'patch', 'update'];
const PROXY_VERBS = ['create', 'delete', 'get', 'patch', 'update'];

/** Verbs of each subresource, and its kind if it is not that of the resource. */
const SUBRESOURCES: Readonly<
  Record<
    keyof Subresources,
    { readonly verbs: readonly string[]; readonly kind?: Partial<SubresourceInfo['kind']> }
  >
> = {
  approval: { verbs: READ_AND_WRITE },
  attach: { verbs: ['create', 'get'], kind: { kind: 'PodAttachOptions' } },
  binding: { verbs: ['create'], kind: { kind: 'Binding' } },
  ephemeralcontainers: { verbs: READ_AND_WRITE },
  eviction: { verbs: ['create'], kind: { group: 'policy', version: 'v1', kind: 'Eviction' } },
  exec: { verbs: ['create', 'get'], kind: { kind: 'PodExecOptions' } },
  finalize: { verbs: ['update'] },
  log: { verbs: ['get'] },
  portforward: { verbs: ['create', 'get'], kind: { kind: 'PodPortForwardOptions' } },
  proxy: { verbs: PROXY_VERBS },
  resize: { verbs: READ_AND_WRITE },
  scale: {
    verbs: READ_AND_WRITE,
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
  },
  status: { verbs: READ_AND_WRITE },
  token: {
    verbs: ['create'],
    kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
  },
};

function subresourcesOf(definition: ResourceDefinition): SubresourceInfo[] {
  const { subresources, group, version, kind } = definition;
  return Object.entries(SUBRESOURCES).flatMap(([name, { verbs, kind: other }]) => {
    if (!subresources[name as keyof Subresources]) return [];
    const options = name === 'proxy' ? { kind: `${kind}ProxyOptions` } : other;
    return [{ name, verbs, kind: { group, version, kind, ...options } }];
  });
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
