import { fieldPath, valueAt, withValueAt } from '../field-path.ts';
import type { ApiObject, ResourceHooks } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { KindTraits } from './definition.ts';
import { objectIn, objectsIn } from './fields.ts';
import { canonicalizeQuantities } from './pod-defaults.ts';
import { canonicalQuantity } from '../../api/quantity.ts';

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

const AMOUNTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;

export const LIMIT_RANGE: KindTraits = {
  hooks: {
    applyDefaults: (range) => {
      for (const limit of objectsIn(objectIn(range, 'spec'), 'limits')) applyLimitDefaults(limit);
    },
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
