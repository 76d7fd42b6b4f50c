import type { Deployment } from '../../api/builtin.ts';
import { rolloutOf } from '../../api/workloads.ts';
import type { Foo, FooStatus } from '../../api/generated/foo.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { fooSelector } from './deployment.ts';

/** Reasons of the Ready condition after the Deployment was created or updated. */
const AVAILABLE = 'DeploymentAvailable';
const NOT_AVAILABLE = 'DeploymentNotAvailable';
const LATE = 'ProgressDeadlineExceeded';
const SYNCED_REASONS = new Set<string | undefined>([AVAILABLE, NOT_AVAILABLE, LATE]);

/** Returns the status of a Foo with the Deployment, if it has one. */
export function buildFooStatus(
  foo: DeepReadonly<Foo>,
  readiness: Readiness,
  deployment: DeepReadonly<Deployment> | undefined,
  now: number,
): FooStatus {
  const observedGeneration = foo.metadata.generation ?? 0;
  return {
    observedGeneration,
    availableReplicas: deployment?.status?.availableReplicas ?? 0,
    selector: fooSelector(foo),
    conditions: withReadiness(foo.status?.conditions, readiness, observedGeneration, now),
  };
}

/** Returns the readiness of a Foo whose Deployment has the desired spec: it follows the rollout. */
export function fooReadiness(deployment: DeepReadonly<Deployment>): Readiness {
  const { available, desired, isComplete, isDeadlineExceeded } = rolloutOf(deployment);
  const message = `${available} of ${desired} replicas are available`;
  if (isDeadlineExceeded && !isComplete) return { kind: 'stalled', reason: LATE, message };
  return isComplete
    ? { kind: 'ready', reason: AVAILABLE, message }
    : { kind: 'reconciling', reason: NOT_AVAILABLE, message };
}

/** Returns whether the status shows that the Synced event of this generation was recorded. */
export function isSyncedEventRecorded({ metadata, status }: DeepReadonly<Foo>): boolean {
  // sample-controller's CustomResourceDefinition keeps only availableReplicas.
  if (status?.observedGeneration === undefined) return status?.availableReplicas !== undefined;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  return status.observedGeneration === metadata.generation && SYNCED_REASONS.has(ready?.reason);
}
