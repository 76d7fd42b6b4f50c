import { numberIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { timestamp } from '../../api/conditions.ts';
import { selects } from '../../api/label-selector.ts';
import type { Backend } from './call.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { StatusError, forbiddenError } from '../objects/status-error.ts';

/** Number of evictions that the disruption controller has not yet observed, as in kube-apiserver. */
const MAX_DISRUPTED_PODS = 2000;

/**
 * Asks the PodDisruptionBudget of a Pod whether the Pod may be evicted, and charges the budget.
 *
 * @throws {StatusError} 429 if the budget allows no disruption now, 500 if several budgets select the Pod
 */
export function chargeBudget(
  backend: Backend,
  pod: StoredObject,
  { dryRun }: { readonly dryRun: boolean },
): void {
  const definition = backend.registry.find('policy', 'v1', 'poddisruptionbudgets');
  if (!definition || canIgnoreBudgets(pod)) return;
  const { namespace, labels } = pod.metadata;
  const [budget, ...others] = backend.store
    .collection(definition)
    .list(namespace)
    .filter((each) => selects(objectIn(objectIn(each, 'spec'), 'selector'), labels));
  if (!budget) return;
  if (others.length > 0) {
    throw StatusError.failure({
      code: 500,
      message:
        'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    });
  }
  if (!isReady(pod) && allowsUnhealthy(budget)) return;
  checkBudget(definition, budget);
  if (!dryRun) charge(backend, definition, budget, pod.metadata.name);
}

/** Whether the Pod does not run: its eviction disrupts nothing. */
function canIgnoreBudgets(pod: StoredObject): boolean {
  const phase = textIn(objectIn(pod, 'status'), 'phase');
  return (
    ['Succeeded', 'Failed', 'Pending'].includes(phase) ||
    pod.metadata.deletionTimestamp !== undefined
  );
}

function isReady(pod: StoredObject): boolean {
  return conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True');
}

function allowsUnhealthy(budget: StoredObject): boolean {
  if (textIn(objectIn(budget, 'spec'), 'unhealthyPodEvictionPolicy') === 'AlwaysAllow') return true;
  const desired = statusNumber(budget, 'desiredHealthy');
  return desired > 0 && statusNumber(budget, 'currentHealthy') >= desired;
}

/** @throws {StatusError} if the budget allows no disruption now */
function checkBudget(definition: ResourceDefinition, budget: StoredObject): void {
  const { name, generation = 0 } = budget.metadata;
  if (statusNumber(budget, 'observedGeneration') < generation) {
    throw refused(`The disruption budget ${name} is still being processed by the server.`, 10);
  }
  const status = objectIn(budget, 'status');
  const pending = Object.keys(objectIn(status, 'disruptedPods') ?? {}).length;
  if (pending > MAX_DISRUPTED_PODS) {
    const problem =
      'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    throw forbiddenError({ ...definition, plural: 'poddisruptionbudget' }, name, problem);
  }
  if (statusNumber(budget, 'disruptionsAllowed') > 0) return;
  const current = statusNumber(budget, 'currentHealthy');
  const desired = statusNumber(budget, 'desiredHealthy');
  const condition = conditionsOf(budget).find(({ type }) => type === 'DisruptionAllowed');
  const denies = `The disruption budget ${name} does not allow evicting pods currently`;
  if (condition?.['reason'] === 'SyncFailed') {
    throw refused(`${denies} because it failed sync: ${String(condition['message'])}`, 0);
  }
  throw refused(
    current <= desired
      ? `The disruption budget ${name} needs ${desired} healthy pods and has ${current} currently`
      : denies,
    0,
  );
}

function refused(message: string, retryAfterSeconds: number): StatusError {
  return StatusError.failure({
    code: 429,
    reason: 'TooManyRequests',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      causes: [{ reason: 'DisruptionBudget', message }],
      ...(retryAfterSeconds > 0 && { retryAfterSeconds }),
    },
  });
}

/** Records the Pod, which the disruption controller counts as unavailable until it is deleted. */
function charge(
  { store, observer, clock }: Backend,
  definition: ResourceDefinition,
  budget: StoredObject,
  pod: string,
): void {
  const allowed = statusNumber(budget, 'disruptionsAllowed') - 1;
  const before = objectIn(budget, 'status');
  const status = {
    ...before,
    disruptionsAllowed: allowed,
    disruptedPods: { ...objectIn(before, 'disruptedPods'), [pod]: timestamp(clock.now()) },
    conditions: conditionsOf(budget).map((condition) => {
      if (condition['type'] !== 'DisruptionAllowed' || allowed > 0) return condition;
      const lastTransitionTime = timestamp(clock.now());
      return Object.assign({}, condition, NO_DISRUPTION, { lastTransitionTime });
    }),
  };
  const charged = store.collection(definition).put({ ...shallowCopy(budget), status });
  observer.written(definition, charged);
}

const NO_DISRUPTION = { status: 'False', reason: 'InsufficientPods' };

function statusNumber(budget: StoredObject, field: string): number {
  return numberIn(objectIn(budget, 'status'), field) ?? 0;
}

function conditionsOf(object: StoredObject): readonly JsonObject[] {
  return objectsIn(objectIn(object, 'status'), 'conditions');
}
