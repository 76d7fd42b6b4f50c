import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { checkedFormat, hasFormat } from '../../api/formats.ts';
import { goNumber } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { pattern } from '../../cel/values/pattern.ts';

/** Returns the JSON type of a non-null value, and the format that Go's decoder gives numbers. */
export function jsonTypeOf(value: unknown): { readonly type: string; readonly format: string } {
  switch (typeof value) {
    case 'string':
      return { type: 'string', format: '' };
    case 'boolean':
      return { type: 'boolean', format: '' };
    case 'number':
      return Number.isInteger(value) && Math.abs(value) < 2 ** 63
        ? { type: 'integer', format: 'int64' }
        : { type: 'number', format: 'float64' };
    default:
      return { type: Array.isArray(value) ? 'array' : 'object', format: '' };
  }
}

/** Returns the first error of a string: its length, its pattern or its format. */
export function validateString(
  text: string,
  schema: JsonSchema,
  path: string,
): FieldError | undefined {
  const { minLength, maxLength } = schema;
  if (maxLength !== undefined && text.length > maxLength && runes(text) > maxLength) {
    return fieldError.tooLong(path, maxLength);
  }
  if (minLength !== undefined && runes(text) < minLength) {
    const detail = `${path} in body should be at least ${minLength} chars long`;
    return fieldError.invalid(path, text, detail);
  }
  return validatePattern(text, schema, path) ?? validateFormat(text, schema, path);
}

/** Returns all errors of a number: range of its format, multiple, minimum, maximum. */
export function validateNumber(value: number, schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const expect = (holds: boolean, expectation: string) => {
    if (!holds) {
      errors.push(fieldError.invalid(path, value, `${path} in body should be ${expectation}`));
    }
  };
  const { type, minimum, maximum, multipleOf } = schema;
  const format = checkedFormat(schema);
  if (!fitsFormat(value, type, format)) {
    const how = format === undefined ? '(default format)' : `with format ${format}`;
    const detail = `Checked value must be of type ${type} ${how} in ${path}`;
    errors.push(fieldError.invalid('', '', detail));
  }
  if (multipleOf !== undefined) {
    expect(isMultiple(value, multipleOf), `a multiple of ${goNumber(multipleOf)}`);
  }
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum) expect(value > minimum, `greater than ${goNumber(minimum)}`);
    else expect(value >= minimum, `greater than or equal to ${goNumber(minimum)}`);
  }
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum) expect(value < maximum, `less than ${goNumber(maximum)}`);
    else expect(value <= maximum, `less than or equal to ${goNumber(maximum)}`);
  }
  return errors;
}

function validatePattern(text: string, schema: JsonSchema, path: string): FieldError | undefined {
  const source = schema.pattern;
  if (!source) return undefined;
  const compiled = pattern(source);
  if ('matches' in compiled && compiled.matches(text)) return undefined;
  const shown =
    'error' in compiled ? `${source}, but pattern is invalid: ${compiled.error}` : source;
  return fieldError.invalid(path, text, `${path} in body should match '${shown}'`);
}

function validateFormat(text: string, schema: JsonSchema, path: string): FieldError | undefined {
  const format = checkedFormat(schema);
  if (format === undefined || hasFormat(format, text)) return undefined;
  const detail = `${path} in body must be of type ${format}: ${goQuote(text)}`;
  return fieldError.typeInvalid(path, text, detail);
}

/** Length in code points, as Go counts it. */
function runes(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

function fitsFormat(value: number, type: string | undefined, format: string | undefined): boolean {
  switch (format ?? type) {
    case 'int32':
      return Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31;
    case 'int64':
    case 'integer':
      return Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63;
    case 'float':
      return Math.abs(value) <= 3.4028234663852886e38;
    default:
      return true;
  }
}

function isMultiple(value: number, factor: number): boolean {
  if (factor <= 0) return false;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(factor)) return value % factor === 0;
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  return (
    Math.abs(quotient) <= Number.MAX_SAFE_INTEGER &&
    Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.abs(quotient)
  );
}
