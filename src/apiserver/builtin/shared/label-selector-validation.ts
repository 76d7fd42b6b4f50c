import { labelValueProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import { Verbatim, typedText } from '../../../api/field-error.ts';
import { goJson } from '../../../util/go-format.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

/** Reports what is wrong with a label selector, if there is one. */
export function validateLabelSelector(selector: CheckedObject | undefined): void {
  if (!selector) return;
  validateLabels(selector, 'matchLabels');
  for (const expression of selector.items('matchExpressions')) {
    requireValuesOfOperator(expression);
    requireSelectorKey(expression, 'key');
    requireLabelValues(expression);
  }
}

/** A label selector with its fields in the order of Go's struct, as messages show it. */
export function selectorInGo(selector: CheckedObject): Verbatim {
  const matchExpressions = selector.items('matchExpressions').map((expression) => {
    const members = ['key', 'operator', 'values'].filter((field) => expression.has(field));
    return `{${members.map((field) => `"${field}":${goJson(expression.value[field])}`).join(',')}}`;
  });
  const labels = selector.in('matchLabels').value;
  const members = [
    ...(Object.keys(labels).length > 0 ? [`"matchLabels":${goJson(labels)}`] : []),
    ...(matchExpressions.length > 0 ? [`"matchExpressions":[${matchExpressions.join(',')}]`] : []),
  ];
  return new Verbatim(`{${members.join(',')}}`);
}

/** Keys and values of labels, which are reported with the path of the whole. */
export function validateLabels(holder: CheckedObject, field: string): void {
  for (const [key, value] of Object.entries(holder.in(field).value)) {
    holder.problems(field, qualifiedNameProblems(key), key);
    holder.problems(field, labelValueProblems(String(value)), value);
  }
}

/** The operator of an expression determines whether it has values. */
export function requireValuesOfOperator(expression: CheckedObject): void {
  const count = expression.list('values').length;
  const operator = expression.text('operator');
  if (operator === 'In' || operator === 'NotIn') {
    const why = "must be specified when `operator` is 'In' or 'NotIn'";
    if (count === 0) expression.required('values', why);
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (count > 0) expression.forbidden('values', why);
  } else {
    // An operator has a type of its own, which messages encode as JSON.
    expression.invalid('operator', 'not a valid selector operator', typedText(operator));
  }
}

/** A text, also an absent one, is the key of a label. */
export function requireSelectorKey(holder: CheckedObject, field: string): void {
  const key = holder.text(field);
  holder.problems(field, qualifiedNameProblems(key), key);
}

export function requireLabelValues(expression: CheckedObject): void {
  for (const [index, value] of expression.list('values').map(String).entries()) {
    expression.problems(`values[${index}]`, labelValueProblems(value), value);
  }
}
