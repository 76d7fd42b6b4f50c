import { qualifiedNameProblems } from '../../../api/object-names.ts';
import { typedText } from '../../../api/field-error.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, setOwn } from '../../../util/json-value.ts';
import { compareQuantities, quantityNanos } from '../../../api/quantity.ts';
import type { CheckSteps } from '../../objects/check-steps.ts';
import { PART_WEIGHT } from '../../objects/check-steps.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import {
  canOvercommit,
  validateContainerResourceName,
  validateResourceName,
} from '../pods/container-resources.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const LIMIT_RANGE: BuiltinKind = {
  resource: 'limitranges',
  revalidatesName: 'object',
  createOnUpdate: true,
  defaults: { 'spec.limits': null },
  hooks: {
    applyDefaults: (range) => {
      for (const limit of objectsIn(objectIn(range, 'spec'), 'limits')) applyLimitDefaults(limit);
    },
    prepareForCreate: ({ metadata }, context) => {
      metadata.name ||= context.uid();
    },
  },
  *validateInSteps(range) {
    const types = new Set<string>();
    for (const limit of range.in('spec').items('limits')) yield* validateLimit(limit, types);
  },
};

const TYPES = new Set(['Container', 'PersistentVolumeClaim', 'Pod']);
const WORDS = { min: 'min', max: 'max', default: 'default', defaultRequest: 'default request' };
const AMOUNTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;

/** Limits of containers default to the maximum, requests to the limit, or else to the minimum. */
function applyLimitDefaults(limit: JsonObject): void {
  if (limit['type'] !== 'Container') return;
  const defaults: JsonObject = {};
  const requests: JsonObject = {};
  addAmounts(limit, ['max', 'default'], defaults);
  addAmounts(limit, ['min', 'max', 'default', 'defaultRequest'], requests);
  if (Object.keys(defaults).length > 0) limit['default'] = defaults;
  if (Object.keys(requests).length > 0) limit['defaultRequest'] = requests;
}

/** Adds the amounts in these fields; the last field counts. Takes a fraction of the time of spreading a wide object. */
function addAmounts(
  limit: JsonObject,
  fields: readonly (typeof AMOUNTS)[number][],
  to: JsonObject,
): void {
  for (const field of fields) {
    const amounts = objectIn(limit, field) ?? {};
    for (const name of Object.keys(amounts)) setOwn(to, name, amounts[name]);
  }
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

function* validateLimit(limit: CheckedObject, types: Set<string>): CheckSteps {
  const type = limit.text('type');
  const problems = qualifiedNameProblems(type);
  limit.problems('type', problems, typedText(type));
  if (problems.length === 0 && !TYPES.has(type) && !type.includes('/')) {
    limit.invalid('type', 'must be a standard limit type or fully qualified', typedText(type));
  }
  if (types.has(type)) limit.duplicate('type', typedText(type));
  types.add(type);
  const fields = AMOUNTS.filter((field) => type !== 'Pod' || !field.startsWith('default'));
  for (const field of AMOUNTS.filter((each) => !fields.includes(each))) {
    if (Object.keys(limit.in(field).value).length === 0) continue;
    limit.forbidden(field, "may not be specified when `type` is 'Pod'");
  }
  const amount = (field: (typeof AMOUNTS)[number], name: string) =>
    fields.includes(field) ? limit.in(field).text(name) : '';
  const isUnlimited = amount('min', 'storage') === '' && amount('max', 'storage') === '';
  if (type === 'PersistentVolumeClaim' && isUnlimited) {
    const why = 'either minimum or maximum storage value is required, but neither was provided';
    limit.required('limits', why);
  }
  const isOfContainers = type === 'Pod' || type === 'Container';
  const validateName = isOfContainers ? validateContainerResourceName : validateResourceName;
  const names = new Set<string>();
  for (const field of fields) {
    for (const name of Object.keys(limit.in(field).value)) {
      validateName(limit, `${field}[${name}]`, name);
      names.add(name);
      yield PART_WEIGHT;
    }
  }
  for (const name of names) {
    yield 2 * PART_WEIGHT;
    for (const [low, high, field, shown] of ORDER) {
      const [less, more] = [amount(low, name), amount(high, name)];
      if (less === '' || more === '' || compareQuantities(less, more) <= 0) continue;
      const than = high === 'default' && low === 'defaultRequest' ? 'default limit' : WORDS[high];
      const why = `${WORDS[low]} value ${less} is greater than ${than} value ${more}`;
      limit.invalid(`${field}[${name}]`, why, amount(shown, name));
    }
    const [most, request] = [amount('default', name), amount('defaultRequest', name)];
    const isSame = most === '' || request === '' || compareQuantities(most, request) === 0;
    if (!isSame && !canOvercommit(name)) {
      const why = `default value ${most} must equal to defaultRequest value ${request} in ${name}`;
      limit.invalid(`defaultRequest[${name}]`, why, request);
    }
    const ratio = amount('maxLimitRequestRatio', name);
    if (ratio === '') continue;
    const field = `maxLimitRequestRatio[${name}]`;
    if (compareQuantities(ratio, '1') < 0)
      limit.invalid(field, `ratio ${ratio} is less than 1`, ratio);
    const [min, max] = [amount('min', name), amount('max', name)];
    if (min === '' || max === '') continue;
    const limitRatio = Number(quantityNanos(max) ?? 0n) / Number(quantityNanos(min) ?? 0n);
    if (!(Number(quantityNanos(ratio) ?? 0n) / 1e9 > limitRatio)) continue;
    limit.invalid(
      field,
      `ratio ${ratio} is greater than max/min = ${limitRatio.toFixed(6)}`,
      ratio,
    );
  }
}
