import { objectIn, objectsIn } from '../../../util/json-value.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';

interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Returns the conditions of the Pod with `condition` in place of the one of its type. */
export function withPodCondition(pod: StoredObject, condition: PodCondition): unknown[] {
  const current = objectsIn(objectIn(pod, 'status'), 'conditions');
  const others = current.filter(({ type }) => type !== condition.type);
  return [...others, { lastProbeTime: null, ...condition }];
}
