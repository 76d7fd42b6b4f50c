import type { FieldShape } from './field-shape.ts';
import type { KubernetesObject } from './object.ts';
import type { ObjectName } from './object-key.ts';

/** Describes a resource for clients, informers, listers and event recorders: its URL and the type of its objects. */
export interface Resource<T extends KubernetesObject = KubernetesObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Lower-case name in URLs: `pods`. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /**
   * Which fields of a custom kind are written as a whole, so that additions by other writers are differences.
   * @default known for built-in kinds; else none but lists of plain values
   */
  readonly fields?: FieldShape;
  /** Carries the type `T`. Never has a value. */
  readonly objectType?: T;
}

/** Returns the apiVersion: `v1` or `apps/v1`. */
export function apiVersionOf(resource: Pick<Resource, 'group' | 'version'>): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

/** Returns the API group of an apiVersion: empty for `v1`, `apps` for `apps/v1`. */
export function apiGroupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')));
}

/** Returns the group and the version of an apiVersion; undefined if it has more than two parts. */
export function parseGroupVersion(
  apiVersion: string,
): Pick<Resource, 'group' | 'version'> | undefined {
  const [version = '', group = '', ...others] = apiVersion.split('/').reverse();
  return others.length > 0 ? undefined : { group, version };
}

/** Returns the name in kubectl and in messages of the server: `pods` or `counts.demo.mark8s.io`. */
export function groupResourceOf(resource: Pick<Resource, 'group' | 'plural'>): string {
  return resource.group ? `${resource.plural}.${resource.group}` : resource.plural;
}

/** Returns the path of a collection, in one namespace or in all. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group
    ? `/apis/${resource.group}/${resource.version}`
    : `/api/${resource.version}`;
  const scope =
    resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${resource.plural}`;
}

/** Returns the path of an object or of its subresource. */
export function objectPath(resource: Resource, at: ObjectName, subresource?: string): string {
  const path = `${collectionPath(resource, at.namespace)}/${encodeURIComponent(at.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}
