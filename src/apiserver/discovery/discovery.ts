import { toBase64 } from '../../util/bytes.ts';
import { sha256 } from '../../util/sha256.ts';
import type { Encoding } from '../request/negotiation.ts';
import {
  OBJECT_TYPES,
  encodingIn,
  mediaRanges,
  requireEncoding,
  requireMediaType,
} from '../request/negotiation.ts';
import type { ApiGroup, GroupVersion, Registry } from '../objects/registry.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { notAcceptable } from '../objects/status-error.ts';
import type { Subresource, SubresourceKind } from '../objects/subresources.ts';
import { subresourcesOf } from '../objects/subresources.ts';

export interface Document {
  readonly value: object;
  readonly encoding: Encoding;
  /** Parameters of the media type, for aggregated discovery. */
  readonly parameters?: string;
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

/** Those of custom resources, in upstream's order. */
const CUSTOM_VERBS = [
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'create',
  'update',
  'watch',
];

const DISCOVERY_GROUP = 'apidiscovery.k8s.io';

/**
 * Returns the discovery document at `/api`, `/apis` or a path below, or undefined for other paths.
 *
 * @throws {StatusError} 406 if the client accepts no form of it
 */
export function findDocument(
  registry: Registry,
  segments: readonly string[],
  { accept, host = 'kubernetes.default.svc' }: Readonly<Record<string, string | undefined>>,
): Document | undefined {
  const [root, first, second, ...rest] = segments;
  if (rest.length > 0 || (root !== 'api' && root !== 'apis')) return undefined;
  if (root === 'api' && second === undefined) requireMediaType(accept);
  const groups = registry.groups().filter(({ name }) => (name === '') === (root === 'api'));
  const plain = documentAt(registry, groups, segments, host);
  if (!plain) return undefined;
  if (root === 'apis' && second !== undefined && hasBuiltIn(registry.group(first ?? ''))) {
    requireMediaType(accept);
  }
  if (first === undefined) return rootDocument(plain, groups, accept);
  return { value: plain, encoding: requireEncoding(accept) };
}

function documentAt(
  registry: Registry,
  groups: readonly ApiGroup[],
  [root, first, second]: readonly string[],
  host: string,
): object | undefined {
  if (root === 'api') {
    if (second !== undefined) return undefined;
    if (first !== undefined) return resourceList(registry.groupVersion('', first));
    return {
      kind: 'APIVersions',
      versions: groups.flatMap(({ versions }) => versions.map(({ version }) => version)),
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: host }],
    };
  }
  if (second !== undefined) return resourceList(registry.groupVersion(first ?? '', second));
  if (first !== undefined) {
    const group = first === '' ? undefined : registry.group(first);
    return group && { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) };
  }
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupEntry) };
}

function hasBuiltIn(group: ApiGroup | undefined): boolean {
  return (
    group?.versions.some(({ definitions }) => definitions.some(({ custom }) => !custom)) === true
  );
}

/** Returns the aggregated discovery document if the client prefers it, else the plain one. */
function rootDocument(
  plain: object,
  groups: readonly ApiGroup[],
  accept: string | undefined,
): Document {
  for (const range of mediaRanges(accept)) {
    const encoding = encodingIn(range);
    if (!encoding) continue;
    const as = range.parameters.get('as');
    if (as === undefined) return { value: plain, encoding };
    const version = range.parameters.get('v');
    const wanted = as === 'APIGroupDiscoveryList' && range.parameters.get('g') === DISCOVERY_GROUP;
    if (!wanted || version !== 'v2') continue;
    return {
      encoding,
      parameters: `;g=${DISCOVERY_GROUP};v=${version};as=${as}`,
      value: {
        kind: as,
        apiVersion: `${DISCOVERY_GROUP}/${version}`,
        metadata: {},
        items: groups.map(({ name, versions }) => ({
          metadata: { ...(name && { name }) },
          versions: versions.map(({ version, definitions }) => ({
            version,
            resources: definitions.map(aggregatedResource),
            freshness: 'Current',
          })),
        })),
      },
    };
  }
  throw notAcceptable(OBJECT_TYPES);
}

function aggregatedResource(definition: ResourceDefinition): object {
  const { group, version, kind, plural, singular, namespaced, shortNames, categories } = definition;
  const subresources = listedSubresources(definition);
  return {
    resource: plural,
    responseKind: responseKind({ group, version, kind }, definition),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(definition),
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map(({ name, verbs, kind }) => ({
        subresource: name,
        responseKind: responseKind(kind, definition),
        verbs,
      })),
    }),
  };
}

/** As upstream, the group and version of a built-in resource are empty if they are those of the list. */
function responseKind(
  kind: SubresourceKind,
  { group, version, custom }: ResourceDefinition,
): object {
  const isListed = !custom && kind.group === group && kind.version === version;
  return isListed ? { ...kind, group: '', version: '' } : kind;
}

function resourceList(groupVersion: GroupVersion | undefined): object | undefined {
  if (!groupVersion) return undefined;
  return {
    kind: 'APIResourceList',
    // As upstream, whose list of the core group has none.
    ...(groupVersion.group && { apiVersion: 'v1' }),
    groupVersion: nameOf(groupVersion),
    resources: groupVersion.definitions.flatMap((definition) => [
      resourceEntry(definition),
      ...listedSubresources(definition).map((subresource) =>
        subresourceEntry(definition, subresource),
      ),
    ]),
  };
}

function subresourceEntry(
  definition: ResourceDefinition,
  { name, verbs, kind }: Subresource,
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
  return toBase64(sha256(STORED_AS[name] ?? name).subarray(0, 8));
}

function verbsOf({ verbs, custom }: ResourceDefinition): readonly string[] {
  return verbs ?? (custom ? CUSTOM_VERBS : VERBS);
}

/** As upstream, `status` precedes `scale` only for custom kinds. */
function listedSubresources(definition: ResourceDefinition): Subresource[] {
  const found = subresourcesOf(definition);
  return definition.custom ? found.toReversed() : found;
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
