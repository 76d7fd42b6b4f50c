import type { Status, StatusCause } from './status.ts';
import { goJson, goNumber, listed } from '../util/go-format.ts';
import { goQuote } from '../util/go-quote.ts';

/** Reason of a field error, `Status.details.causes[].reason`. */
export type FieldErrorReason =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/** An error in one field of an object. `formatFieldError` formats it. */
export interface FieldError {
  readonly reason: FieldErrorReason;
  /** Path of the field, `spec.list[0].name`; empty for the object itself. */
  readonly field: string;
  /** The invalid value, shown by some reasons. May be `OMITTED`. */
  readonly badValue?: unknown;
  /** May be empty. */
  readonly detail: string;
}

/** A value that messages show without quotes or encoding. */
export class Verbatim {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns a text whose type in Go is not `string`, which messages encode as JSON. */
export function typedText(text: string): Verbatim {
  return new Verbatim(goJson(text));
}

/** Returns a text whose type in Go is `string`, for `notSupported`: it encodes others as JSON. */
export function plainText(text: string): Verbatim {
  return new Verbatim(goQuote(text));
}

/** Placeholder of a value that is too large for a message. */
export const OMITTED: Verbatim = new Verbatim('');

export const fieldError: {
  required(field: string, detail?: string): FieldError;
  invalid(field: string, badValue: unknown, detail: string): FieldError;
  typeInvalid(field: string, badValue: unknown, detail: string): FieldError;
  duplicate(field: string, badValue: unknown): FieldError;
  forbidden(field: string, detail: string): FieldError;
  notSupported(field: string, badValue: unknown, supported: readonly string[]): FieldError;
  tooLong(field: string, max: number, unit?: 'byte' | 'character'): FieldError;
  tooMany(field: string, actual: number, max: number): FieldError;
} = {
  required: (field, detail = '') => ({ reason: 'FieldValueRequired', field, detail }),
  invalid: (field, badValue, detail) => ({ reason: 'FieldValueInvalid', field, badValue, detail }),
  typeInvalid: (field, badValue, detail) => ({
    reason: 'FieldValueTypeInvalid',
    field,
    badValue,
    detail,
  }),
  duplicate: (field, badValue) => ({ reason: 'FieldValueDuplicate', field, badValue, detail: '' }),
  forbidden: (field, detail) => ({ reason: 'FieldValueForbidden', field, detail }),
  notSupported: (field, badValue, supported) => ({
    reason: 'FieldValueNotSupported',
    field,
    badValue,
    detail: supported.length > 0 ? `supported values: ${supported.map(goQuote).join(', ')}` : '',
  }),
  tooLong: (field, max, unit = 'byte') => ({
    reason: 'FieldValueTooLong',
    field,
    detail: `may not be more than ${max} ${max === 1 ? unit : `${unit}s`}`,
  }),
  tooMany: (field, actual, max) => ({
    reason: 'FieldValueTooMany',
    field,
    badValue: actual,
    detail: `must have at most ${max} ${max === 1 ? 'item' : 'items'}`,
  }),
};

/** Maximum number of errors of one object. Its validation ends there. */
export const MAX_FIELD_ERRORS = 1000;

/** Formats an error: `spec.count: Invalid value: -1: spec.count in body should be …`. */
export function formatFieldError(error: FieldError): string {
  return `${displayField(error)}: ${body(error)}`;
}

/** Returns one entry of `Status.details.causes` for each error. */
export function toCauses(errors: readonly FieldError[]): StatusCause[] {
  return errors.map((error) => ({
    reason: error.reason,
    message: body(error),
    field: displayField(error),
  }));
}

/** The invalid object. The group is empty for the core group. */
interface InvalidObject {
  readonly kind: string;
  readonly group: string;
  readonly name: string;
}

/** Returns the message `Count.demo.mark8s.io "x" is invalid: …`, with several errors in brackets. */
export function invalidMessage(object: InvalidObject, errors: readonly FieldError[]): string {
  const kind = object.group ? `${object.kind}.${object.group}` : object.kind;
  const subject = `${kind} ${goQuote(object.name)} is invalid`;
  const { texts } = limitErrors(errors);
  const isComplete = texts.length === errors.length && errors.length < MAX_FIELD_ERRORS;
  const messages = [...new Set(texts), ...(isComplete ? [] : ['and more'])];
  if (messages.length === 0) return subject;
  return `${subject}: ${messages.length === 1 ? messages[0] : `[${messages.join(', ')}]`}`;
}

/** Returns the Status (422) for an invalid object. */
export function invalidStatus(object: InvalidObject, errors: readonly FieldError[]): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: invalidMessage(object, errors),
    reason: 'Invalid',
    details: {
      ...(object.name && { name: object.name }),
      ...(object.group && { group: object.group }),
      ...(object.kind && { kind: object.kind }),
      causes: toCauses(limitErrors(errors).items),
    },
    code: 422,
  };
}

function limitErrors(errors: readonly FieldError[]) {
  return listed(errors.slice(0, MAX_FIELD_ERRORS), formatFieldError);
}

/** Returns the path as upstream prints it: `<nil>` for an error in the whole object. */
function displayField(error: FieldError): string {
  return error.field || '<nil>';
}

function body(error: FieldError): string {
  const parts = [describe(error)];
  if (error.detail) parts.push(error.detail);
  return parts.join(': ');
}

function describe(error: FieldError): string {
  switch (error.reason) {
    case 'FieldValueRequired':
      return 'Required value';
    case 'FieldValueForbidden':
      return 'Forbidden';
    case 'FieldValueTooLong':
      return 'Too long';
    case 'InternalError':
      return 'Internal error';
    case 'FieldValueInvalid':
    case 'FieldValueTypeInvalid':
      return withValue('Invalid value', error);
    case 'FieldValueDuplicate':
      return withValue('Duplicate value', error);
    case 'FieldValueNotSupported':
      // The types of enumerations are no texts in Go, which encodes their values as JSON.
      return `Unsupported value: ${typeof error.badValue === 'string' ? goJson(error.badValue) : display(error.badValue)}`;
    case 'FieldValueNotFound':
      return withValue('Not found', error);
    case 'FieldValueTooMany':
      return withValue('Too many', error);
  }
}

function withValue(prefix: string, { badValue }: FieldError): string {
  return badValue === OMITTED ? prefix : `${prefix}: ${display(badValue)}`;
}

function display(value: unknown): string {
  if (value instanceof Verbatim) return value.text;
  switch (typeof value) {
    case 'string':
      return goQuote(value);
    case 'number':
      return goNumber(value);
    default:
      return goJson(value);
  }
}
