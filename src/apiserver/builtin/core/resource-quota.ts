import { Verbatim, typedText } from '../../../api/field-error.ts';
import { escapeHtml } from '../../../util/go-format.ts';
import { listIn, objectIn, textIn } from '../../../util/json-value.ts';
import { compareQuantities } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { textOf } from '../../objects/field-path.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { column, columns } from '../../table/column.ts';
import {
  isQuotaResource,
  validateAmount,
  validateResourceName,
} from '../pods/container-resources.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const RESOURCE_QUOTA: BuiltinKind = {
  resource: 'resourcequotas',
  returnsDeleted: true,
  validate: (quota) => {
    const spec = quota.in('spec');
    validateAmounts(spec, 'hard');
    for (const list of ['hard', 'used']) validateAmounts(quota.in('status'), list);
    validateScopes(spec);
    validateScopeSelector(spec);
  },
  validateUpdate: (quota, previous) => {
    const scopes = new Set(quota.in('spec').list('scopes'));
    const before = new Set(listIn(objectIn(previous, 'spec'), 'scopes'));
    if (scopes.symmetricDifference(before).size === 0) return;
    quota.in('spec').invalid('scopes', 'field is immutable');
  },
  columns: columns(
    column('Request', 'Used and allowed amounts, without limits.', (quota) =>
      quotaText(quota, (resource) => !resource.startsWith('limits.')),
    ),
    column('Limit', 'Used and allowed limits.', (quota) =>
      quotaText(quota, (resource) => resource.startsWith('limits.')),
    ),
  ),
  warnings: (quota, previous) => (previous ? [] : quotaWarnings(quota.in('spec').in('hard'))),
};

function validateAmounts(holder: CheckedObject, list: string): void {
  const amounts = holder.in(list).value;
  for (const name of Object.keys(amounts)) {
    const field = `${list}[${name}]`;
    validateResourceName(holder, field, name);
    if (!name.includes('/') && !isQuotaResource(name)) {
      holder.invalid(field, 'must be a standard resource for quota', typedText(name));
    }
    validateAmount(holder, field, name, textIn(amounts, name));
  }
}

const EXISTING = [
  'BestEffort',
  'CrossNamespacePodAffinity',
  'NotBestEffort',
  'NotTerminating',
  'Terminating',
];

const SCOPES = new Set([...EXISTING, 'PriorityClass', 'VolumeAttributesClass']);

const CONFLICTS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
];

/** A server reports these errors for the whole list. */
function validateScopes(spec: CheckedObject): void {
  const scopes = spec.list('scopes').map(String);
  for (const scope of scopes) {
    if (!SCOPES.has(scope)) spec.invalid('scopes', 'unsupported scope');
    for (const name of Object.keys(spec.in('hard').value)) {
      if (!isQuotaResource(name) || canLimit(scope, name)) continue;
      spec.invalid('scopes', 'unsupported scope applied to resource');
    }
  }
  requireNoConflict(spec, scopes, 'scopes');
}

/** @param field where the scopes are; the message has those of the whole quota */
function requireNoConflict(spec: CheckedObject, scopes: readonly string[], field: string): void {
  for (const pair of CONFLICTS) {
    if (!pair.every((scope) => scopes.includes(scope))) continue;
    spec.invalid(field, 'conflicting scopes', spec.value['scopes'] ?? null);
  }
}

const OF_PODS = /^(?:pods|(?:(?:requests|limits)\.)?(?:cpu|memory))$/;

/** Whether the Pods or claims of a scope use the resource. */
function canLimit(scope: string, name: string): boolean {
  if (scope === 'BestEffort') return name === 'pods';
  if (scope === 'VolumeAttributesClass') {
    return ['persistentvolumeclaims', 'requests.storage'].includes(name);
  }
  return !SCOPES.has(scope) || OF_PODS.test(name);
}

function validateScopeSelector(spec: CheckedObject): void {
  const selector = spec.get('scopeSelector');
  if (!selector) return;
  const at = (field: string) => `matchExpressions.${field}`;
  const expressions = selector.items('matchExpressions');
  for (const expression of expressions) {
    const scope = expression.text('scopeName');
    const operator = expression.text('operator');
    const values = expression.list('values');
    if (!SCOPES.has(scope))
      selector.invalid(at('scopeName'), 'unsupported scope', typedText(scope));
    for (const name of Object.keys(spec.in('hard').value)) {
      if (!isQuotaResource(name) || canLimit(scope, name)) continue;
      const shown = new Verbatim(selectorText(expressions));
      selector.invalid('matchExpressions', 'unsupported scope applied to resource', shown);
    }
    if (EXISTING.includes(scope) && operator !== 'Exists') {
      const why =
        "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
      selector.invalid(at('operator'), why, typedText(operator));
    }
    if (operator === 'In' || operator === 'NotIn') {
      const why =
        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
      if (values.length === 0) selector.required(at('values'), why);
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      const why =
        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
      if (values.length > 0) selector.invalid(at('values'), why, values);
    } else selector.invalid(at('operator'), 'not a valid selector operator', typedText(operator));
  }
  requireNoConflict(
    spec,
    expressions.map((expression) => expression.text('scopeName')),
    'scopeSelector.matchExpressions',
  );
}

/** A selector with the names of Go's fields, which upstream shows. */
function selectorText(expressions: readonly CheckedObject[]): string {
  const shown = expressions.map(({ value: { scopeName, operator, values = null } }) => ({
    ScopeName: scopeName,
    Operator: operator,
    Values: values,
  }));
  return escapeHtml(JSON.stringify({ MatchExpressions: shown }));
}

/** Requests of a quota beyond its limits. */
function quotaWarnings(hard: CheckedObject): string[] {
  return ['cpu', 'memory', 'ephemeral-storage'].flatMap((resource) => {
    const names = [`requests.${resource}`, ...(resource === 'ephemeral-storage' ? [] : [resource])];
    const request = names.find((name) => hard.has(name));
    const limit = `limits.${resource}`;
    if (request === undefined || !hard.has(limit)) return [];
    const [less, more] = [hard.text(request), hard.text(limit)];
    return compareQuantities(less, more) > 0
      ? [`ResourceQuota ${request} (${less}) should be less than ${limit} (${more})`]
      : [];
  });
}

function quotaText(quota: StoredObject, isShown: (resource: string) => boolean): string {
  const hard = objectIn(objectIn(quota, 'status') ?? {}, 'hard') ?? {};
  const used = objectIn(objectIn(quota, 'status') ?? {}, 'used') ?? {};
  return Object.keys(hard)
    .sort()
    .filter(isShown)
    .map((resource) => `${resource}: ${textOf(used[resource], '0')}/${textOf(hard[resource], '0')}`)
    .join(', ');
}
