import type { Status, StatusCause } from '../../api/status.ts';
import { andMore, goJson, goNumber, listed } from './go-format.ts';
import { goQuote } from '../../util/go-quote.ts';

/** What is wrong with a field, as `Status.details.causes[].reason` says it. */
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

/** One thing wrong with an object. The text comes from `formatFieldError`. */
export interface FieldError {
  readonly reason: FieldErrorReason;
  /** Path of the field, `spec.list[0].name`; empty for the object itself. */
  readonly field: string;
  /** What was found there; shown by the reasons that show a value. May be `OMITTED`. */
  readonly badValue?: unknown;
  /** May be empty. */
  readonly detail: string;
}

/** A value that messages show as it is written here. */
export class Verbatim {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Stands for a value that is too large to be shown. */
export const OMITTED: Verbatim = new Verbatim('');

export const fieldError: {
  required(field: string, detail?: string): FieldError;
  invalid(field: string, badValue: unknown, detail: string): FieldError;
  typeInvalid(field: string, badValue: unknown, detail: string): FieldError;
  duplicate(field: string, badValue: unknown): FieldError;
  forbidden(field: string, detail: string): FieldError;
  notSupported(field: string, badValue: unknown, supported: readonly string[]): FieldError;
  tooLong(field: string, max: number): FieldError;
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
  tooLong: (field, max) => ({
    reason: 'FieldValueTooLong',
    field,
    detail: `may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`,
  }),
  tooMany: (field, actual, max) => ({
    reason: 'FieldValueTooMany',
    field,
    badValue: actual,
    detail: `must have at most ${max} ${max === 1 ? 'item' : 'items'}`,
  }),
};

/** `spec.count: Invalid value: -1: spec.count in body should be …` */
export function formatFieldError(error: FieldError): string {
  return `${displayField(error)}: ${body(error)}`;
}

/** For `Status.details.causes`: one for each error. */
export function toCauses(errors: readonly FieldError[]): StatusCause[] {
  return errors.map((error) => ({
    reason: error.reason,
    message: body(error),
    field: displayField(error),
  }));
}

/** What is invalid: kind and group as the API has them; the group is empty for the core group. */
interface InvalidObject {
  readonly kind: string;
  readonly group: string;
  readonly name: string;
}

/** `Count.demo.mark8s.io "x" is invalid: …`, with brackets round several different errors. */
export function invalidMessage(object: InvalidObject, errors: readonly FieldError[]): string {
  const kind = object.group ? `${object.kind}.${object.group}` : object.kind;
  const subject = `${kind} ${goQuote(object.name)} is invalid`;
  const { texts, omitted } = listed(errors, formatFieldError);
  const messages = [...new Set(texts), ...andMore(omitted)];
  if (messages.length === 0) return subject;
  return `${subject}: ${messages.length === 1 ? messages[0] : `[${messages.join(', ')}]`}`;
}

/** The 422 that an invalid object is answered with. */
export function invalidStatus(object: InvalidObject, errors: readonly FieldError[]): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: invalidMessage(object, errors),
    reason: 'Invalid',
    details: {
      ...(object.name ? { name: object.name } : {}),
      ...(object.group ? { group: object.group } : {}),
      ...(object.kind ? { kind: object.kind } : {}),
      causes: toCauses(listed(errors, formatFieldError).items),
    },
    code: 422,
  };
}

/** An error about the object as a whole has no path; Go prints its nil pointer. */
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
      return withValue('Unsupported value', error);
    case 'FieldValueNotFound':
      return withValue('Not found', error);
    case 'FieldValueTooMany':
      return withValue('Too many', error);
  }
}

function withValue(problem: string, { badValue }: FieldError): string {
  return badValue === OMITTED ? problem : `${problem}: ${display(badValue)}`;
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
