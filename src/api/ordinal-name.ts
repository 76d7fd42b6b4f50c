import { objectKey } from './object-key.ts';
import type { ObjectKey } from './object-key.ts';
import type { DeepReadonly, KubernetesObject } from './object.ts';

/** Returns the name of the owned object with an ordinal: `web-0`. */
export function ordinalName({ metadata }: DeepReadonly<KubernetesObject>, ordinal: number): string {
  return `${metadata.name}-${ordinal}`;
}

/** Returns the ordinal in the name of an object; infinite if the owner does not use that name. */
export function ordinalIn(
  owner: DeepReadonly<KubernetesObject>,
  { metadata }: DeepReadonly<KubernetesObject>,
): number {
  const ordinal = Number(/-(\d{1,6})$/.exec(metadata.name)?.[1]);
  return metadata.name === ordinalName(owner, ordinal) ? ordinal : Infinity;
}

/** Returns the key of the owner that may want an object of this name, or undefined. */
export function ordinalOwnerKey({
  metadata,
}: DeepReadonly<KubernetesObject>): ObjectKey | undefined {
  const owner = /^(.+)-\d{1,6}$/.exec(metadata.name)?.[1];
  return owner === undefined ? undefined : objectKey(metadata.namespace, owner);
}
