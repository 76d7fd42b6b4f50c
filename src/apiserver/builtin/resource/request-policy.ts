import { addQuantities, compareQuantities, quantityNanos } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

const MAX_VALUES = 10;
const ONE = 1_000_000_000n;
const MAX_INT64 = String(2n ** 63n - 1n);

/** Reports what is wrong with the amounts that claims may request of a capacity. */
export function validateRequestPolicy(capacity: CheckedObject): void {
  const policy = capacity.get('requestPolicy');
  if (!policy) return;
  const values = policy.list('validValues').map(String);
  const range = policy.get('validRange');
  if (values.length > 0 && range) {
    const why =
      'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time';
    policy.forbidden('', why);
    return;
  }
  if (values.length === 0 && !range) return;
  if (!policy.has('default')) {
    policy.required('default', `required when ${range ? 'validRange' : 'validValues'} is defined`);
    return;
  }
  const amounts = { total: capacity.text('value'), usual: policy.text('default') };
  if (range) validateRange(range, amounts);
  else validateValues(policy, values, amounts);
}

interface Amounts {
  /** The whole capacity. */
  readonly total: string;
  /** The default of a request. */
  readonly usual: string;
}

function validateValues(
  policy: CheckedObject,
  values: readonly string[],
  { total, usual }: Amounts,
): void {
  const field = 'validValues';
  for (const [index, value] of values.entries()) {
    const previous = values[index - 1];
    if (previous === undefined || compareQuantities(previous, value) <= 0) continue;
    policy.invalid(`${field}[${index}]`, 'values must be sorted in ascending order', value);
  }
  if (policy.requireAtMost(field, MAX_VALUES)) {
    for (const [index, value] of values.entries()) {
      if (compareQuantities(value, total) <= 0) continue;
      const why = `option is larger than capacity value: ${total}`;
      policy.invalid(`${field}[${index}]`, why, value);
    }
    for (const [index, value] of values.entries()) {
      const isKnown = values.slice(0, index).some((each) => whole(each) === whole(value));
      if (isKnown) policy.duplicate(`${field}[${index}]`, value);
    }
    if (values.some((value) => compareQuantities(value, usual) === 0)) return;
  }
  policy.invalid(field, 'default value is not valid according to the requestPolicy', usual);
}

function validateRange(range: CheckedObject, { total, usual }: Amounts): void {
  if (!range.has('min')) {
    range.required('min', 'required when validRange is defined');
    return;
  }
  const [min, max, step] = [range.text('min'), range.text('max'), range.text('step')];
  const requireAtMost = (field: string, value: string, limit: string, why: string) => {
    if (compareQuantities(value, limit) > 0) range.invalid(field, `${why}: ${limit}`, value);
  };
  requireAtMost('min', min, total, 'min is larger than capacity value');
  if (compareQuantities(usual, min) < 0) {
    range.invalid('default', `default is less than min: ${min}`, usual);
  }
  if (max !== '') {
    requireAtMost('max', min, max, 'min is larger than max');
    requireAtMost('max', max, total, 'max is larger than capacity value');
    requireAtMost('default', usual, max, 'default is more than max');
  }
  if (step === '') return;
  if (compareQuantities(step, '0') <= 0) {
    range.invalid('step', 'must be greater than zero', step);
    return;
  }
  const first = addQuantities(min, step);
  if (compareQuantities(first, total) > 0) {
    range.invalid('step', `one step ${first} is larger than capacity value: ${total}`, step);
  }
  const amounts = Object.entries({ default: usual, min, max, step });
  if (!requireInt64(range, amounts)) return;
  for (const value of max === '' ? [usual] : [usual, max]) {
    if ((whole(value) - whole(min)) % whole(step) === 0n) continue;
    const why = `value is not a multiple of a given step (${step}) from (${min})`;
    range.invalid('step', why, value);
  }
}

/** Whether a server can calculate with the amounts as integers. */
function requireInt64(
  range: CheckedObject,
  amounts: readonly (readonly [string, string])[],
): boolean {
  let areValid = true;
  for (const [field, amount] of amounts) {
    const isNegative = compareQuantities(amount, '0') < 0;
    if (!isNegative && compareQuantities(amount, MAX_INT64) <= 0) continue;
    areValid = false;
    const why = isNegative
      ? 'must be greater than or equal to 0'
      : `must not be larger than ${MAX_INT64}`;
    range.invalid(field, why, amount);
  }
  return areValid;
}

/** The amount that a server calculates with: by default, a feature gate turns parts of one off. */
function whole(amount: string): bigint {
  const nanos = quantityNanos(amount) ?? 0n;
  return nanos > 0n ? (nanos + ONE - 1n) / ONE : nanos / ONE;
}
