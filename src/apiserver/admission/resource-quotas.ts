import { shallowCopy } from '../objects/resource-definition.ts';
import type { ResourceQuota } from '../../api/builtin.ts';
import { compareQuantities, subtractQuantities } from '../../api/quantity.ts';
import type { QuotaEvaluator } from '../../api/quota.ts';
import { hasDeadline, isWithinScopes, missingAmounts, quotaEvaluator } from '../../api/quota.ts';
import type { ResourceList } from '../../api/resource-list.ts';
import { addLists, selectResources } from '../../api/resource-list.ts';
import type { Collection } from '../storage/object-store.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { forbiddenError } from '../objects/status-error.ts';
import type { Attributes } from './attributes.ts';
import { shownName } from './policies.ts';

/** A stored quota with the usage that a write leads to. */
interface Charge {
  readonly quota: StoredObject;
  readonly used: ResourceList;
}

/**
 * Adds the usage of a write to the status of the ResourceQuotas of its namespace. Only quantities in `status.hard`
 * are limited, so a quota has no effect before its controller has computed its status.
 *
 * @throws {StatusError} 403 if the write would exceed a quota
 */
export function chargeQuotas(attributes: Attributes, quotas: Collection, nowMs: number): void {
  const { definition, object, namespace, dryRun } = attributes;
  const evaluator = quotaEvaluator(definition);
  if (!object || !definition.namespaced || !evaluator || !isMeasured(attributes)) return;
  const charges = quotas
    .list(namespace)
    .flatMap((quota) => chargeOf(attributes, quota, { evaluator, object, nowMs }) ?? []);
  if (dryRun) return;
  for (const { quota, used } of charges) {
    const status = { ...(quota as StoredObject & ResourceQuota).status, used };
    quotas.put({ ...shallowCopy(quota), status });
  }
}

/** Whether the write can change the usage of quotas. */
function isMeasured({
  definition,
  operation,
  subresource,
  object,
  oldObject,
}: Attributes): boolean {
  if (operation === 'CREATE') return subresource === '';
  if (operation !== 'UPDATE' || definition.group !== '') return false;
  if (definition.plural !== 'pods') {
    return subresource === '' && ['services', 'persistentvolumeclaims'].includes(definition.plural);
  }
  if (subresource === 'resize') return true;
  if (subresource !== '' || !object || !oldObject) return false;
  return hasDeadline(object) !== hasDeadline(oldObject);
}

/** @throws {StatusError} 403 if the write would exceed the quota */
function chargeOf(
  attributes: Attributes,
  quota: StoredObject,
  {
    evaluator,
    object,
    nowMs,
  }: {
    readonly evaluator: QuotaEvaluator;
    readonly object: StoredObject;
    readonly nowMs: number;
  },
): Charge | undefined {
  const { definition, oldObject } = attributes;
  const { name } = quota.metadata;
  const { status } = quota as StoredObject & ResourceQuota;
  const { hard = {}, used = {} } = status ?? {};
  const isWithin = (each: StoredObject) => isWithinScopes(evaluator, quota, each);
  const tracked = Object.keys(hard).filter((each) => evaluator.tracks(each));
  if (tracked.length === 0 || !isWithin(object)) return undefined;
  const toError = (why: string) => forbiddenError(definition, shownName(attributes), why);
  const missing = definition.plural === 'pods' ? missingAmounts(object, tracked) : undefined;
  if (missing) throw toError(`failed quota: ${name}: ${missing}`);
  if (tracked.some((each) => !Object.hasOwn(used, each))) {
    const names = tracked.toSorted().join(',');
    throw toError(`status unknown for quota: ${name}, resources: ${names}`);
  }
  const usage = evaluator.usage(object, nowMs);
  const before = oldObject && isWithin(oldObject) ? evaluator.usage(oldObject, nowMs) : undefined;
  const added = selectResources(before ? difference(usage, before) : usage, (each) =>
    Object.hasOwn(hard, each),
  );
  const requested = selectResources(
    added,
    (each) => compareQuantities(added[each] ?? '0', '0') !== 0,
  );
  if (Object.keys(requested).length === 0) return undefined;
  const next = addLists(used, requested);
  const exceeded = (each: string) =>
    Object.hasOwn(requested, each) && compareQuantities(next[each] ?? '0', hard[each] ?? '0') > 0;
  if (tracked.some(exceeded)) {
    const shown = (list: ResourceList) => formatList(selectResources(list, exceeded));
    throw toError(
      `exceeded quota: ${name}, requested: ${shown(requested)}, used: ${shown(used)}, limited: ${shown(hard)}`,
    );
  }
  return { quota, used: next };
}

/** Returns `a - b`, at least 0. */
function difference(a: ResourceList, b: ResourceList): ResourceList {
  const left = Object.entries(a).map(([name, amount]) => {
    const rest = subtractQuantities(amount, b[name] ?? '0');
    return [name, rest.startsWith('-') ? '0' : rest];
  });
  return Object.fromEntries(left) as ResourceList;
}

function formatList(list: ResourceList): string {
  const parts = Object.entries(list).map(([name, amount]) => `${name}=${amount}`);
  return parts.toSorted().join(',');
}
