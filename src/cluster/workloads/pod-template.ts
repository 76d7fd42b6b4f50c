import { createHash } from 'node:crypto';
import type { Deployment, ReplicaSet } from '../../api/builtin.ts';
import { equalJson } from '../../api/equal.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isRecord } from '../../util/values.ts';

/** The label that tells apart the Pods of one Deployment's ReplicaSets. */
export const HASH_LABEL = 'pod-template-hash';

type Template = NonNullable<DeepReadonly<Deployment>['spec']>['template'];

/** The same template always has the same hash; collisions are told apart by `collisionCount`. */
export function templateHash(template: Template, collisionCount: number): string {
  const text = `${canonical(template)}${collisionCount || ''}`;
  const digest = createHash('sha256').update(text).digest();
  // Without vowels and what looks like them, so that no word comes of it.
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  return Array.from(digest.subarray(0, 10), (byte) => letters[byte % letters.length]).join('');
}

/** True if the set makes Pods of this template. */
export function isOfTemplate(set: DeepReadonly<ReplicaSet>, template: Template): boolean {
  const own = set.spec?.template;
  const { [HASH_LABEL]: _, ...labels } = own?.metadata?.labels ?? {};
  return equalJson({ ...own, metadata: { ...own?.metadata, labels } }, withLabels(template));
}

function withLabels(template: Template): object {
  return {
    ...template,
    metadata: { ...template.metadata, labels: template.metadata?.labels ?? {} },
  };
}

/** JSON with the members of each object in one order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
