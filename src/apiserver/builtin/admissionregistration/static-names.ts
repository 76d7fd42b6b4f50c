import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';

/** Suffix of the names of objects in files, which no request creates. */
const STATIC = '.static.k8s.io';
const RESERVED = `names ending with "${STATIC}" are reserved for static manifest-based configurations and cannot be managed via the API`;

/** @param previous absent on create, where the suffix is not allowed */
export function validateStaticName(object: CheckedObject, previous?: StoredObject): void {
  const metadata = object.in('metadata');
  if (previous || !metadata.text('name').endsWith(STATIC)) return;
  metadata.invalid('name', RESERVED);
}

/** Returns the warning of an update; a create with such a name is an error. */
export function staticNameWarnings(
  { value }: CheckedObject<StoredObject>,
  previous?: StoredObject,
): string[] {
  return previous && value.metadata.name.endsWith(STATIC) ? [`metadata.name: ${RESERVED}`] : [];
}
