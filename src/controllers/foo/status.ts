import type { Deployment } from '../../api/builtin.ts';
import { rolloutOf } from '../../api/workloads.ts';
import type { Foo, FooStatus } from '../../api/generated/foo.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { podSelector } from './deployment.ts';

/** Reasons of a Foo whose Deployment is as desired. */
const AVAILABLE = 'DeploymentAvailable';
const NOT_AVAILABLE = 'DeploymentNotAvailable';
const LATE = 'ProgressDeadlineExceeded';
const AS_WANTED = new Set<string | undefined>([AVAILABLE, NOT_AVAILABLE, LATE]);

/** The status of a Foo whose Deployment is as given. */
export function buildStatus(
  foo: DeepReadonly<Foo>,
  readiness: Readiness,
  deployment: DeepReadonly<Deployment> | undefined,
  now: number,
): FooStatus {
  const observedGeneration = foo.metadata.generation ?? 0;
  return {
    observedGeneration,
    availableReplicas: deployment?.status?.availableReplicas ?? 0,
    selector: podSelector(foo),
    conditions: withReadiness(foo.status?.conditions, readiness, observedGeneration, now),
  };
}

/** How a Foo stands whose Deployment is as desired, though perhaps not yet rolled out. */
export function readinessOf(deployment: DeepReadonly<Deployment>): Readiness {
  const { available, desired, isComplete, isDeadlineExceeded } = rolloutOf(deployment);
  const message = `${available} of ${desired} replicas are available`;
  if (isDeadlineExceeded && !isComplete) return { kind: 'stalled', reason: LATE, message };
  return isComplete
    ? { kind: 'ready', reason: AVAILABLE, message }
    : { kind: 'reconciling', reason: NOT_AVAILABLE, message };
}

/** True if the user was told already that this spec has been carried out. */
export function wasTold({ metadata, status }: DeepReadonly<Foo>): boolean {
  // A CustomResourceDefinition of sample-controller's own keeps the number of replicas alone.
  if (status?.observedGeneration === undefined) return status?.availableReplicas !== undefined;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  return status.observedGeneration === metadata.generation && AS_WANTED.has(ready?.reason);
}
