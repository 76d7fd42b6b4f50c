import type { ResourceDefinition } from './resource-definition.ts';

/** One version of an API group and the resources it serves. */
export interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly definitions: readonly ResourceDefinition[];
}

/** An API group, its versions in order of preference. */
export interface ApiGroup {
  readonly name: string;
  readonly versions: readonly GroupVersion[];
}

/**
 * The served resources. Discovery and OpenAPI are views of the registry and change with it.
 */
export class Registry {
  readonly #definitions = new Map<string, ResourceDefinition>();
  #groups: readonly ApiGroup[] | undefined;

  /** Serves `definition`. It replaces a definition of the same group, version and plural. */
  add(definition: ResourceDefinition): void {
    this.#definitions.set(keyOf(definition), definition);
    this.#groups = undefined;
  }

  remove(definition: Pick<ResourceDefinition, 'group' | 'version' | 'plural'>): void {
    this.#definitions.delete(keyOf(definition));
    this.#groups = undefined;
  }

  find(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#definitions.get(keyOf({ group, version, plural }));
  }

  /** Returns the resource whose objects have the kind. */
  findKind(apiVersion: string, kind: string): ResourceDefinition | undefined {
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    return this.groupVersion(group, version)?.definitions.find((each) => each.kind === kind);
  }

  /** Returns all groups in the order of discovery, those of CRDs by name. The same value until a change. */
  groups(): readonly ApiGroup[] {
    this.#groups ??= groupsOf([...this.#definitions.values()]);
    return this.#groups;
  }

  group(name: string): ApiGroup | undefined {
    return this.groups().find((group) => group.name === name);
  }

  groupVersion(group: string, version: string): GroupVersion | undefined {
    return this.group(group)?.versions.find((each) => each.version === version);
  }
}

/**
 * Orders versions like Kubernetes: stable before beta before alpha, higher numbers first, other names
 * last in alphabetical order.
 */
export function compareVersions(a: string, b: string): number {
  const left = VERSION.exec(a);
  const right = VERSION.exec(b);
  if (!left || !right) return left ? -1 : right ? 1 : a < b ? -1 : a > b ? 1 : 0;
  return (
    stability(right[2]) - stability(left[2]) ||
    Number(right[1]) - Number(left[1]) ||
    Number(right[3] ?? 0) - Number(left[3] ?? 0)
  );
}

const VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

function stability(stage: string | undefined): number {
  return stage === undefined ? 2 : stage === 'beta' ? 1 : 0;
}

/** Built-in groups in the order of discovery, where clients look up the resource of a short name. */
const GROUPS =
  `,apiregistration.k8s.io,apps,events.k8s.io,authentication.k8s.io,authorization.k8s.io,autoscaling,batch,
certificates.k8s.io,networking.k8s.io,policy,rbac.authorization.k8s.io,storage.k8s.io,admissionregistration.k8s.io,
apiextensions.k8s.io,scheduling.k8s.io,coordination.k8s.io,node.k8s.io,discovery.k8s.io,resource.k8s.io,
flowcontrol.apiserver.k8s.io,storagemigration.k8s.io`.split(/,\s*/);

function priorityOf(group: string): number {
  const at = GROUPS.indexOf(group);
  return at < 0 ? GROUPS.length : at;
}

function groupsOf(definitions: readonly ResourceDefinition[]): ApiGroup[] {
  const byGroup = Map.groupBy(definitions, ({ group }) => group);
  return [...byGroup]
    .sort(([a], [b]) => priorityOf(a) - priorityOf(b) || (a < b ? -1 : 1))
    .map(([name, ofGroup]) => ({
      name,
      versions: [...Map.groupBy(ofGroup, ({ version }) => version)]
        .sort(([a], [b]) => compareVersions(a, b))
        .map(([version, ofVersion]) => ({
          group: name,
          version,
          definitions: ofVersion.sort((a, b) => (a.plural < b.plural ? -1 : 1)),
        })),
    }));
}

function keyOf({
  group,
  version,
  plural,
}: Pick<ResourceDefinition, 'group' | 'version' | 'plural'>): string {
  return `${group}/${version}/${plural}`;
}
