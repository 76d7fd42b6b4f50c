import type { Deployment } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withSortedKeys } from '../../util/go-format.ts';
import { sha256 } from '../../util/sha256.ts';

export type PodTemplateSpec = NonNullable<DeepReadonly<Deployment>['spec']>['template'];

/** Returns the hash of a template. `collisionCount` changes the hash after a collision. */
export function templateHash(template: PodTemplateSpec, collisionCount: number): string {
  const text = `${JSON.stringify(withSortedKeys(template))}${collisionCount || ''}`;
  // Without vowels and similar digits, so that the hash contains no words.
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  return Array.from(sha256(text).subarray(0, 10), (byte) => letters[byte % letters.length]).join(
    '',
  );
}
