import type { KubernetesObject } from './object.ts';
import type { ObjectName } from './object-key.ts';

/**
 * What a client must know of a resource: its URL and, as the type parameter, its objects.
 * One descriptor serves client, informer, lister and event recorder.
 */
export interface Resource<T extends KubernetesObject = KubernetesObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Lower-case, as in URLs: `pods`. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Carries `T`; there is never a value. */
  readonly objectType?: T;
}

/** `v1` or `apps/v1`. */
export function apiVersionOf(resource: Pick<Resource, 'group' | 'version'>): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

/** `pods`, or `counts.demo.mark8s.io`: what kubectl and the server's messages call it. */
export function groupResourceOf(resource: Pick<Resource, 'group' | 'plural'>): string {
  return resource.group ? `${resource.plural}.${resource.group}` : resource.plural;
}

/** The path of a collection, in one namespace or (without one) across all of them. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group
    ? `/apis/${resource.group}/${resource.version}`
    : `/api/${resource.version}`;
  const scope =
    resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${resource.plural}`;
}

/** The path of an object or of its subresource. */
export function objectPath(resource: Resource, at: ObjectName, subresource?: string): string {
  const path = `${collectionPath(resource, at.namespace)}/${encodeURIComponent(at.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}
