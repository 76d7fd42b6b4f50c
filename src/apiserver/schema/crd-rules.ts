import { fieldPathOf } from './cel/field-path.ts';
import type { FieldError } from './field-error.ts';
import { fieldError } from './field-error.ts';
import { textAt } from './json-fields.ts';
import type { JsonObject } from './json-value.ts';
import { own } from './json-value.ts';
import { isRecord } from '../../util/values.ts';

const REASONS = [
  'FieldValueDuplicate',
  'FieldValueForbidden',
  'FieldValueInvalid',
  'FieldValueRequired',
];

/**
 * What is wrong with the form of validation rules (`x-kubernetes-validations`). What they say is
 * looked at by `checkRuleExpressions`, once everything else about a schema is right.
 */
export function checkRules(schema: JsonObject, path: string, errors: FieldError[]): void {
  const rules = own(schema, 'x-kubernetes-validations');
  if (!Array.isArray(rules)) return;
  for (const [index, rule] of rules.entries()) {
    if (!isRecord(rule)) continue;
    const at = `${path}.x-kubernetes-validations[${index}]`;
    checkRule(rule, at, errors);
    const fieldPath = textAt(rule, 'fieldPath');
    if (fieldPath !== '' && fieldPathOf(fieldPath, schema) === undefined) {
      errors.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, 'must be a valid path'));
    }
  }
}

function checkRule(rule: JsonObject, path: string, errors: FieldError[]): void {
  const text = (name: string) => textAt(rule, name);
  const isBlank = (name: string) => text(name) !== '' && text(name).trim() === '';
  const message = text('message').trim();
  const source = text('rule').trim();
  if (source === '') {
    errors.push(fieldError.required(`${path}.rule`, 'rule is not specified'));
  } else if (isBlank('message')) {
    const detail = 'must be non-empty if specified';
    errors.push(fieldError.invalid(`${path}.message`, text('message'), detail));
  } else if (hasLineBreaks(message)) {
    const detail = 'must not contain line breaks';
    errors.push(fieldError.invalid(`${path}.message`, text('message'), detail));
  } else if (hasLineBreaks(source) && message === '') {
    const detail = 'message must be specified if rule contains line breaks';
    errors.push(fieldError.required(`${path}.message`, detail));
  }
  if (isBlank('messageExpression')) {
    const detail = 'messageExpression must be non-empty if specified';
    errors.push(fieldError.required(`${path}.messageExpression`, detail));
  }
  const reason = own(rule, 'reason');
  if (typeof reason === 'string' && !REASONS.includes(reason)) {
    errors.push(fieldError.notSupported(`${path}.reason`, reason, REASONS));
  }
  if (isBlank('fieldPath')) {
    const detail = 'must be non-empty if specified';
    errors.push(fieldError.invalid(`${path}.fieldPath`, text('fieldPath'), detail));
  }
  if (hasLineBreaks(text('fieldPath'))) {
    const detail = 'must not contain line breaks';
    errors.push(fieldError.invalid(`${path}.fieldPath`, text('fieldPath'), detail));
  }
}

function hasLineBreaks(text: string): boolean {
  return /[\n\r]/.test(text);
}
