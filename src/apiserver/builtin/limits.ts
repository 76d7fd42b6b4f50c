import { fieldPath, valueAt, withValueAt } from '../field-path.ts';
import type { ApiObject, ResourceHooks, StoredObject } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { KindTraits } from './definition.ts';
import { objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { canonicalizeQuantities } from './pod-defaults.ts';
import { canonicalQuantity, compareQuantities } from '../../api/quantity.ts';
import type { FieldError } from '../../api/field-error.ts';

/** Hooks that write the quantities at these paths, single ones or lists, in their canonical form. */
export function quantitiesAt(...paths: readonly string[]): ResourceHooks {
  return {
    applyDefaults: (object) => {
      for (const path of paths) canonicalize(object, fieldPath(path));
    },
  };
}

function canonicalize(object: ApiObject, path: readonly string[]): void {
  const value = valueAt(object, path);
  const parent = path.length === 1 ? object : valueAt(object, path.slice(0, -1));
  const field = path.at(-1) ?? '';
  if (!isRecord(parent)) return;
  if (isRecord(value)) canonicalizeQuantities(parent, field);
  else if (typeof value === 'string' || typeof value === 'number') {
    const canonical = canonicalQuantity(String(value));
    if (canonical !== undefined) Object.assign(object, withValueAt(object, path, canonical));
  }
}

const TYPES = new Set(['Container', 'PersistentVolumeClaim', 'Pod']);
const WORDS = { min: 'min', max: 'max', default: 'default', defaultRequest: 'default request' };
const AMOUNTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;

export const LIMIT_RANGE: KindTraits = {
  hooks: {
    applyDefaults: (range) => {
      for (const limit of objectsIn(objectIn(range, 'spec'), 'limits')) applyLimitDefaults(limit);
    },
    validate: validateLimitRange,
  },
};

/** Limits of containers default to the maximum, requests to the limit, or else to the minimum. */
function applyLimitDefaults(limit: JsonObject): void {
  for (const field of AMOUNTS) canonicalizeQuantities(limit, field);
  if (limit['type'] !== 'Container') return;
  const amounts = (field: (typeof AMOUNTS)[number]) => objectIn(limit, field) ?? {};
  const defaults = { ...amounts('max'), ...amounts('default') };
  const requests = { ...amounts('min'), ...defaults, ...amounts('defaultRequest') };
  if (Object.keys(defaults).length > 0) limit['default'] = defaults;
  if (Object.keys(requests).length > 0) limit['defaultRequest'] = requests;
}

/** Amounts in their order, with the field and the amount that an error is about. */
const ORDER = [
  ['min', 'max', 'min', 'min'],
  ['min', 'defaultRequest', 'defaultRequest', 'defaultRequest'],
  ['defaultRequest', 'max', 'defaultRequest', 'defaultRequest'],
  ['defaultRequest', 'default', 'defaultRequest', 'defaultRequest'],
  ['min', 'default', 'default', 'min'],
  ['default', 'max', 'default', 'max'],
] as const;

function validateLimitRange(range: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const types = new Set<string>();
  for (const [index, limit] of objectsIn(objectIn(range, 'spec'), 'limits').entries()) {
    const path = `spec.limits[${index}]`;
    const type = textIn(limit, 'type');
    if (!TYPES.has(type) && !type.includes('/')) {
      findings.invalid(`${path}.type`, type, 'must be a standard limit type or fully qualified');
    }
    findings.requireUnique(limit, 'type', types, path);
    for (const field of type === 'Pod' ? (['default', 'defaultRequest'] as const) : []) {
      if (Object.keys(objectIn(limit, field) ?? {}).length === 0) continue;
      findings.forbidden(`${path}.${field}`, "may not be specified when `type` is 'Pod'");
    }
    const amount = (field: (typeof AMOUNTS)[number], name: string) =>
      textIn(objectIn(limit, field), name);
    if (
      type === 'PersistentVolumeClaim' &&
      !amount('min', 'storage') &&
      !amount('max', 'storage')
    ) {
      const why = 'either minimum or maximum storage value is required, but neither was provided';
      findings.required(`${path}.limits`, why);
    }
    const names = new Set(AMOUNTS.flatMap((field) => Object.keys(objectIn(limit, field) ?? {})));
    for (const name of names) {
      for (const [low, high, field, shown] of ORDER) {
        const [less, more] = [amount(low, name), amount(high, name)];
        if (less === '' || more === '' || compareQuantities(less, more) <= 0) continue;
        const than = high === 'default' && low === 'defaultRequest' ? 'default limit' : WORDS[high];
        findings.invalid(
          `${path}.${field}[${name}]`,
          amount(shown, name),
          `${WORDS[low]} value ${less} is greater than ${than} value ${more}`,
        );
      }
      const ratio = amount('maxLimitRequestRatio', name);
      if (ratio === '' || compareQuantities(ratio, '1') >= 0) continue;
      const at = `${path}.maxLimitRequestRatio[${name}]`;
      findings.invalid(at, ratio, `ratio ${ratio} is less than 1`);
    }
  }
  return findings.errors;
}
