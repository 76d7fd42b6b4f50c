import { equalJson } from '../../api/equal.ts';
import { Correlation } from '../../cel/correlation.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS, Verbatim } from '../../api/field-error.ts';
import { MICRO_TIME, TIME, checkedFormat } from '../../api/formats.ts';
import { goJson } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { validateListTypes } from './list-type.ts';
import { jsonTypeOf, validateNumber, validateString } from './validate-scalar.ts';
import { requireDepth } from '../../util/json-value.ts';

/**
 * Validates `value` by `schema`. Returns the errors with upstream's texts; empty if it is valid.
 *
 * @param path path of `value`, a prefix of the paths of the errors; empty for an object
 * @param previous the stored value, if this is an update. Errors in unchanged values are then ignored
 *   (ratcheting), so that a stricter schema does not block updates of existing objects.
 * @throws {NestingError} if the value is nested too deeply
 */
export function validateStructure(
  value: unknown,
  schema: JsonSchema,
  path: string = '',
  previous?: unknown,
): FieldError[] {
  let errors = validateValues(value, schema);
  let listErrors = validateListTypes(value, schema, path);
  if (previous !== undefined) {
    if (errors.length > 0) {
      errors = validateValues(value, schema, new Correlation(value, previous, schema));
    }
    if (listErrors.length > 0 && validateListTypes(previous, schema, path).length > 0) {
      listErrors = [];
    }
  }
  return [...(path === '' ? errors : errors.map((error) => below(path, error))), ...listErrors];
}

/**
 * Validates each value by itself: checks neither embedded resources nor the keys of lists.
 *
 * @param history correlates the value with the stored one. Errors in unchanged values are ignored.
 * @throws {NestingError} if the value is nested too deeply
 */
export function validateValues(
  value: unknown,
  schema: JsonSchema,
  history?: Correlation,
): FieldError[] {
  const result = new Result();
  validate(value, schema, '', result, 0, history);
  return result.errors;
}

/** The errors of one schema, and the number of met constraints: a composition reports its best failure. */
class Result {
  readonly errors: FieldError[] = [];
  matches = 0;

  /** Whether the rest of the value is not validated. */
  get isFull(): boolean {
    return this.errors.length >= MAX_FIELD_ERRORS;
  }

  add(error: FieldError | undefined): void {
    if (error && !this.isFull) this.errors.push(error);
  }

  merge(other: Result): void {
    for (const error of other.errors) this.add(error);
    this.matches += other.matches;
  }
}

function below(path: string, error: FieldError): FieldError {
  return { ...error, field: error.field ? `${path}.${error.field}` : path };
}

function validate(
  value: unknown,
  schema: JsonSchema,
  path: string,
  result: Result,
  depth: number,
  history?: Correlation,
): void {
  // As upstream, the object itself is never unchanged: its managedFields have new times.
  if (path !== '' && history?.unchanged) return;
  requireDepth(depth);
  validateType(value, schema, path, result);
  if (value === null) {
    validateEnum(value, schema, path, result);
    return;
  }
  // Counts the whole schema, its composition, its enum and the validator of the value's type.
  result.matches += 4;
  validateComposition(value, schema, path, result, depth);
  if (typeof value === 'string') {
    result.add(validateString(value, schema, path));
  } else if (typeof value === 'number') {
    result.matches++;
    for (const error of validateNumber(value, schema, path)) result.add(error);
  } else if (Array.isArray(value)) {
    result.matches++;
    validateList(value, schema, path, result, depth, history);
  }
  validateEnum(value, schema, path, result);
  if (isRecord(value)) validateObject(value, schema, path, result, depth, history);
}

function typesOf(schema: JsonSchema): readonly string[] {
  if (schema['x-kubernetes-int-or-string']) return ['integer', 'string'];
  return schema.type ? [schema.type] : [];
}

function validateType(value: unknown, schema: JsonSchema, path: string, result: Result): void {
  // Fast path: nearly every value has the declared type.
  if (typeof value === schema.type && value !== null && !Array.isArray(value)) {
    result.matches += 2;
    return;
  }
  const types = typesOf(schema);
  const format = checkedFormat(schema);
  if (types.length === 0 && format === undefined) return;
  const error = typeError(value, types, format, schema.nullable ?? false, path);
  if (error) result.add(error);
  else result.matches += 2;
}

function typeError(
  value: unknown,
  types: readonly string[],
  format: string | undefined,
  nullable: boolean,
  path: string,
): FieldError | undefined {
  if (value === null) {
    return types.length === 0 || nullable ? undefined : invalidType(path, types.join(','), 'null');
  }
  const { type, format: actual } = jsonTypeOf(value);
  const fits =
    types.length === 0 || types.includes(type) || (type === 'integer' && types.includes('number'));
  if (fits && types.length > 0) return undefined;
  const isGo = format === TIME || format === MICRO_TIME;
  if (format !== undefined && type !== 'string' && (type !== 'array' || isGo)) {
    // A boolean has no format, and is no empty text.
    const shown = actual === '' ? new Verbatim('""') : actual;
    return { ...invalidType(path, format, actual), badValue: shown };
  }
  return fits ? undefined : invalidType(path, types.join(','), type);
}

function invalidType(path: string, expected: string, actual: string): FieldError {
  const detail = `${path} in body must be of type ${expected}: ${goQuote(actual)}`;
  return fieldError.typeInvalid(path, actual, detail);
}

function validateEnum(value: unknown, schema: JsonSchema, path: string, result: Result): void {
  const allowed = schema.enum;
  if (!allowed || allowed.length === 0) return;
  if (allowed.some((member) => equalJson(member, value))) return;
  const supported = allowed.map((member) => (typeof member === 'string' ? member : goJson(member)));
  result.add(fieldError.notSupported(path, value, supported));
}

function validateComposition(
  value: unknown,
  schema: JsonSchema,
  path: string,
  result: Result,
  depth: number,
): void {
  const { allOf, anyOf, oneOf, not } = schema;
  if (!allOf && !anyOf && !oneOf && !not) return;
  const attempt = (branch: JsonSchema): Result => {
    const outcome = new Result();
    validate(value, branch, path, outcome, depth + 1);
    return outcome;
  };
  if (anyOf && anyOf.length > 0) {
    const { passed, best } = attemptAll(value, anyOf, attempt, 1);
    if (passed === 0) {
      result.add(compositionError(`${goQuote(path)} must validate at least one schema (anyOf)`));
    }
    if (best) result.merge(best);
  }
  if (oneOf && oneOf.length > 0) {
    const { passed, best } = attemptAll(value, oneOf, attempt, oneOf.length);
    if (passed !== 1) {
      const found = passed === 0 ? 'Found none valid' : `Found ${passed} valid alternatives`;
      result.add(
        compositionError(
          `${goQuote(path)} must validate one and only one schema (oneOf). ${found}`,
        ),
      );
    }
    if (best && passed <= 1) result.merge(best);
  }
  if (allOf && allOf.length > 0) {
    const outcomes = allOf.map(attempt);
    for (const outcome of outcomes) result.merge(outcome);
    const passed = outcomes.filter((outcome) => outcome.errors.length === 0).length;
    if (passed !== allOf.length) {
      const none = passed === 0 ? '. None validated' : '';
      result.add(compositionError(`${goQuote(path)} must validate all the schemas (allOf)${none}`));
    }
  }
  if (not && attempt(not).errors.length === 0) {
    result.add(compositionError(`${goQuote(path)} must not validate the schema (not)`));
  }
}

/** Tries branches until `enough` pass. `best` is the first that passes, else the best failure. */
function attemptAll(
  value: unknown,
  branches: readonly JsonSchema[],
  attempt: (branch: JsonSchema) => Result,
  enough: number,
): { readonly passed: number; readonly best: Result | undefined } {
  // Most values pass one of two types. The failure of the other takes long to describe, and is not reported.
  const possible = branches.filter((branch) => !isOfOtherScalar(value, branch));
  if (possible.length < branches.length) {
    const outcome = attemptAll(value, possible, attempt, enough);
    if (outcome.passed > 0) return outcome;
  }
  let passed = 0;
  let best: Result | undefined;
  for (const branch of branches) {
    const outcome = attempt(branch);
    if (outcome.errors.length === 0) {
      if (passed === 0) best = outcome;
      if (++passed === enough) break;
    } else if (passed === 0 && (!best || outcome.matches > best.matches)) {
      best = outcome;
    }
  }
  return { passed, best };
}

/** Whether a schema has a type that a text or a number does not have. */
function isOfOtherScalar(value: unknown, schema: JsonSchema): boolean {
  const { type } = schema;
  if (!type || schema['x-kubernetes-int-or-string']) return false;
  if (typeof value === 'string') return type !== 'string';
  return typeof value === 'number' && type === 'string';
}

/** Errors of compositions have the field only in their text, as upstream. */
function compositionError(detail: string): FieldError {
  return fieldError.invalid('', '', detail);
}

function validateList(
  list: readonly unknown[],
  schema: JsonSchema,
  path: string,
  result: Result,
  depth: number,
  history: Correlation | undefined,
): void {
  const { items, minItems, maxItems } = schema;
  if (items) {
    for (let index = 0; index < list.length && !result.isFull; index++) {
      validate(list[index], items, `${path}[${index}]`, result, depth + 1, history?.item(index));
    }
  }
  if (minItems !== undefined && list.length < minItems) {
    const detail = `${path} in body should have at least ${minItems} items`;
    result.add(fieldError.invalid(path, list.length, detail));
  }
  if (maxItems !== undefined && list.length > maxItems) {
    result.add(fieldError.tooMany(path, list.length, maxItems));
  }
  if (schema.uniqueItems && new Set(list.map(goJson)).size < list.length) {
    result.add(fieldError.invalid(path, '', `${path} in body shouldn't contain duplicates`));
  }
}

function validateObject(
  object: JsonObject,
  schema: JsonSchema,
  path: string,
  result: Result,
  depth: number,
  history: Correlation | undefined,
): void {
  const { additionalProperties, required, minProperties, maxProperties } = schema;
  const keys = Object.keys(object);
  if (minProperties !== undefined && keys.length < minProperties) {
    const detail = `${path} in body should have at least ${minProperties} properties`;
    result.add(fieldError.invalid(path, keys.length, detail));
  }
  if (maxProperties !== undefined && keys.length > maxProperties) {
    result.add(fieldError.tooMany(path, keys.length, maxProperties));
  }
  for (const key of keys) {
    if (result.isFull) return;
    const at = path === '' ? key : `${path}.${key}`;
    const field = declaredField(schema, key);
    if (field) {
      validate(object[key], field, at, result, depth + 1, historyOf(key, path, history));
    } else if (additionalProperties === false) {
      result.add(fieldError.invalid(path, key, `${path}.${key} in body is a forbidden property`));
    } else if (typeof additionalProperties === 'object') {
      validate(object[key], additionalProperties, at, result, depth + 1, history?.field(key));
    }
  }
  for (const key of required ?? []) {
    if (result.isFull) return;
    if (!Object.hasOwn(object, key)) {
      result.add(fieldError.required(path === '' ? key : `${path}.${key}`));
    }
  }
}

/** Changes of the type and version of an object are invisible. */
function historyOf(
  key: string,
  path: string,
  history: Correlation | undefined,
): Correlation | undefined {
  return path === '' && (key === 'apiVersion' || key === 'kind') ? undefined : history?.field(key);
}
