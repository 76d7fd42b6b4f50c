import { hasFinalizer, withFinalizer } from '../../api/metadata.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { Attributes } from './attributes.ts';

const FINALIZERS: ReadonlyMap<string, string> = new Map([
  ['persistentvolumeclaims.', 'kubernetes.io/pvc-protection'],
  ['persistentvolumes.', 'kubernetes.io/pv-protection'],
]);

/** Returns the finalizer by which the admission plugin StorageObjectInUseProtection protects new objects of a kind. */
export function protectionOf({
  group,
  plural,
}: Pick<ResourceDefinition, 'group' | 'plural'>): string | undefined {
  return FINALIZERS.get(`${plural}.${group}`);
}

/** The admission plugin StorageObjectInUseProtection. Returns a new object with its finalizer; others unchanged. */
export function withProtection(
  object: StoredObject | undefined,
  { definition, operation, subresource }: Attributes,
): StoredObject | undefined {
  const finalizer = protectionOf(definition);
  if (!object || finalizer === undefined || operation !== 'CREATE' || subresource !== '')
    return object;
  if (hasFinalizer(object, finalizer)) return object;
  const finalizers = withFinalizer(object, finalizer);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}
