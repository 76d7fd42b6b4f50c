import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatFieldError, toCauses } from '../../../../src/api/field-error.ts';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import { validateCustom } from '../../../../src/apiserver/request/embedded-resources.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { validateStructure } from '../../../../src/apiserver/schema/validate.ts';
import { nested } from './arbitraries.ts';

/** Messages about the value of `spec.field`. */
function errorsOf(field: JsonSchema, value: unknown): string[] {
  const schema: JsonSchema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { field } } },
  };
  return validateStructure({ spec: { field: value } }, schema).map(formatFieldError);
}

test('reports the actual type of a value that has the wrong type', () => {
  const integer: JsonSchema = { type: 'integer' };
  const wrong = (type: string) =>
    `spec.field: Invalid value: "${type}": spec.field in body must be of type integer: "${type}"`;
  assert.deepEqual(errorsOf(integer, 'x'), [wrong('string')]);
  assert.deepEqual(errorsOf(integer, true), [wrong('boolean')]);
  assert.deepEqual(errorsOf(integer, 1.5), [
    wrong('number'),
    '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.field',
  ]);
  assert.deepEqual(errorsOf(integer, []), [wrong('array')]);
  assert.deepEqual(errorsOf(integer, {}), [wrong('object')]);
  assert.deepEqual(errorsOf(integer, null), [wrong('null')]);
  assert.deepEqual(errorsOf({ ...integer, nullable: true }, null), []);
  assert.deepEqual(errorsOf({ type: 'number' }, 3), []);
});

test('reports limits with the text of upstream', () => {
  assert.deepEqual(errorsOf({ type: 'integer', minimum: 0 }, -1), [
    'spec.field: Invalid value: -1: spec.field in body should be greater than or equal to 0',
  ]);
  assert.deepEqual(errorsOf({ type: 'integer', minimum: 0, exclusiveMinimum: true }, 0), [
    'spec.field: Invalid value: 0: spec.field in body should be greater than 0',
  ]);
  assert.deepEqual(errorsOf({ type: 'number', maximum: 1.5 }, 2.5), [
    'spec.field: Invalid value: 2.5: spec.field in body should be less than or equal to 1.5',
  ]);
  assert.deepEqual(errorsOf({ type: 'integer', maximum: 5, exclusiveMaximum: true }, 5), [
    'spec.field: Invalid value: 5: spec.field in body should be less than 5',
  ]);
  assert.deepEqual(errorsOf({ type: 'integer', multipleOf: 3 }, 4), [
    'spec.field: Invalid value: 4: spec.field in body should be a multiple of 3',
  ]);
  assert.deepEqual(errorsOf({ type: 'number', multipleOf: 0.1 }, 0.3), []);
  assert.deepEqual(errorsOf({ type: 'integer', format: 'int32' }, 3_000_000_000), [
    '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.field',
  ]);
});

test('validates length in characters, pattern and format of strings', () => {
  assert.deepEqual(errorsOf({ type: 'string', maxLength: 2 }, 'abc'), [
    'spec.field: Too long: may not be more than 2 bytes',
  ]);
  assert.deepEqual(errorsOf({ type: 'string', maxLength: 2 }, '😀😀'), []);
  assert.deepEqual(errorsOf({ type: 'string', minLength: 1 }, ''), [
    'spec.field: Invalid value: "": spec.field in body should be at least 1 chars long',
  ]);
  assert.deepEqual(errorsOf({ type: 'string', pattern: '^a+$' }, 'ab"'), [
    `spec.field: Invalid value: "ab\\"": spec.field in body should match '^a+$'`,
  ]);
  assert.deepEqual(errorsOf({ type: 'string', pattern: 'a' }, 'bab'), []);
  assert.deepEqual(errorsOf({ type: 'string', format: 'date-time' }, 'soon'), [
    'spec.field: Invalid value: "soon": spec.field in body must be of type date-time: "soon"',
  ]);
  assert.deepEqual(errorsOf({ type: 'string', format: 'date-time' }, 5), [
    'spec.field: Invalid value: "int64": spec.field in body must be of type date-time: "int64"',
  ]);
  assert.deepEqual(errorsOf({ type: 'string', format: 'fancy' }, 'anything'), []);
});

test('matches a pattern that would backtrack exponentially', () => {
  const errors = errorsOf({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(5000)}!`);
  assert.equal(errors.length, 1);
});

test('reports a value outside of its enum as unsupported', () => {
  assert.deepEqual(errorsOf({ type: 'string', enum: ['a', 'b'] }, 'c'), [
    'spec.field: Unsupported value: "c": supported values: "a", "b"',
  ]);
  assert.deepEqual(errorsOf({ enum: [1, { a: 1 }] }, { a: 1 }), []);
});

test('validates the number of items and properties', () => {
  const list: JsonSchema = { type: 'array', items: { type: 'integer' } };
  assert.deepEqual(errorsOf({ ...list, maxItems: 1 }, [1, 2]), [
    'spec.field: Too many: 2: must have at most 1 item',
  ]);
  assert.deepEqual(errorsOf({ ...list, minItems: 1 }, []), [
    'spec.field: Invalid value: 0: spec.field in body should have at least 1 items',
  ]);
  assert.deepEqual(errorsOf({ ...list, uniqueItems: true }, [1, 2, 1]), [
    `spec.field: Invalid value: "": spec.field in body shouldn't contain duplicates`,
  ]);
  const map: JsonSchema = { type: 'object', additionalProperties: { type: 'integer' } };
  assert.deepEqual(errorsOf({ ...map, minProperties: 1 }, {}), [
    'spec.field: Invalid value: 0: spec.field in body should have at least 1 properties',
  ]);
  assert.deepEqual(errorsOf({ ...map, maxProperties: 1 }, { a: 1, b: 2 }), [
    'spec.field: Too many: 2: must have at most 1 item',
  ]);
  assert.deepEqual(errorsOf(list, [1, 'x']), [
    'spec.field[1]: Invalid value: "string": spec.field[1] in body must be of type integer: "string"',
  ]);
  assert.deepEqual(errorsOf(map, { a: 'x' }), [
    'spec.field.a: Invalid value: "string": spec.field.a in body must be of type integer: "string"',
  ]);
});

test('reports missing required fields at every level', () => {
  const schema: JsonSchema = {
    type: 'object',
    required: ['spec'],
    properties: { spec: { type: 'object', required: ['name', 'toString'] } },
  };
  assert.deepEqual(validateStructure({}, schema).map(formatFieldError), ['spec: Required value']);
  assert.deepEqual(validateStructure({ spec: {} }, schema).map(formatFieldError), [
    'spec.name: Required value',
    'spec.toString: Required value',
  ]);
});

test('compositions report the field in the text, and the best failure', () => {
  const either: JsonSchema = { anyOf: [{ minimum: 5 }, { maximum: 1 }] };
  assert.deepEqual(errorsOf({ type: 'integer', ...either }, 7), []);
  assert.deepEqual(errorsOf({ type: 'integer', ...either }, 3), [
    '<nil>: Invalid value: "": "spec.field" must validate at least one schema (anyOf)',
    'spec.field: Invalid value: 3: spec.field in body should be greater than or equal to 5',
  ]);
  assert.deepEqual(errorsOf({ oneOf: [{ minimum: 1 }, { maximum: 5 }] }, 3), [
    '<nil>: Invalid value: "": "spec.field" must validate one and only one schema (oneOf). Found 2 valid alternatives',
  ]);
  assert.deepEqual(errorsOf({ oneOf: [{ minimum: 4 }] }, 3), [
    '<nil>: Invalid value: "": "spec.field" must validate one and only one schema (oneOf). Found none valid',
    'spec.field: Invalid value: 3: spec.field in body should be greater than or equal to 4',
  ]);
  assert.deepEqual(errorsOf({ allOf: [{ minimum: 4 }, { maximum: 9 }] }, 3), [
    'spec.field: Invalid value: 3: spec.field in body should be greater than or equal to 4',
    '<nil>: Invalid value: "": "spec.field" must validate all the schemas (allOf)',
  ]);
  assert.deepEqual(errorsOf({ not: { enum: [3] } }, 3), [
    '<nil>: Invalid value: "": "spec.field" must not validate the schema (not)',
  ]);
});

test('int-or-string accepts only integers and strings', () => {
  const either: JsonSchema = { 'x-kubernetes-int-or-string': true };
  assert.deepEqual(errorsOf(either, 1), []);
  assert.deepEqual(errorsOf(either, '50%'), []);
  assert.deepEqual(errorsOf(either, true), [
    'spec.field: Invalid value: "boolean": spec.field in body must be of type integer,string: "boolean"',
  ]);
});

test('reports duplicates in lists of type set and map', () => {
  const set: JsonSchema = {
    type: 'array',
    items: { type: 'string' },
    'x-kubernetes-list-type': 'set',
  };
  assert.deepEqual(errorsOf(set, ['a', 'b', 'a', 'a']), ['spec.field[2]: Duplicate value: "a"']);
  const map: JsonSchema = {
    type: 'array',
    items: { type: 'object', properties: { name: { type: 'string' } } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
  };
  assert.deepEqual(errorsOf(map, [{ name: 'a' }, { name: 'b' }, { name: 'a' }]), [
    'spec.field[2]: Duplicate value: {"name":"a"}',
  ]);
  assert.deepEqual(errorsOf(map, [{}, {}]), ['spec.field[1]: Duplicate value: {}']);
});

test('an embedded resource requires apiVersion and kind, and valid metadata', () => {
  const embedded: JsonSchema = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const errors = (value: unknown) => validateCustom(value, embedded, 'spec').map(formatFieldError);
  assert.deepEqual(errors({ apiVersion: '' }), [
    'spec.apiVersion: Invalid value: "": must not be empty',
    'spec.kind: Required value',
  ]);
  assert.deepEqual(errors({ apiVersion: 'a/b/c', kind: 'Pod', metadata: { namespace: 42 } }), [
    'spec.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
    'spec.metadata: Invalid value: {"namespace":42}: json: cannot unmarshal number into Go struct field ObjectMeta.namespace of type string',
  ]);
  const [kind, name] = errors({ apiVersion: 'v1', kind: '%', metadata: { name: '..' } });
  assert.match(kind ?? '', /^spec\.kind: Invalid value: "%": may have mixed case/);
  assert.match(name ?? '', /^spec\.metadata\.name: Invalid value: "\.\.": may not be/);
});

test('causes have the reasons that clients match', () => {
  const schema: JsonSchema = {
    type: 'object',
    required: ['a'],
    properties: {
      b: { type: 'integer' },
      c: { type: 'string', enum: ['x'] },
      d: { type: 'string', maxLength: 1 },
      e: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set', maxItems: 1 },
    },
  };
  const errors = validateStructure({ b: 'x', c: 'y', d: 'zz', e: ['q', 'q'] }, schema);
  assert.deepEqual(
    toCauses(errors).map(({ reason, field }) => [field, reason]),
    [
      ['b', 'FieldValueTypeInvalid'],
      ['c', 'FieldValueNotSupported'],
      ['d', 'FieldValueTooLong'],
      ['e', 'FieldValueTooMany'],
      ['a', 'FieldValueRequired'],
      ['e[1]', 'FieldValueDuplicate'],
    ],
  );
  assert.equal(
    toCauses(errors)[0]?.message,
    'Invalid value: "string": b in body must be of type integer: "string"',
  );
});

test('a path is a prefix of fields, but not part of texts', () => {
  const errors = validateStructure(
    { a: 1 },
    { type: 'object', properties: { a: { type: 'string' } } },
    'spec.x.default',
  );
  assert.deepEqual(errors.map(formatFieldError), [
    'spec.x.default.a: Invalid value: "integer": a in body must be of type string: "integer"',
  ]);
});

test('deep data in a recursive schema causes a NestingError, not a stack overflow', () => {
  const schema = { type: 'object', properties: { a: {} as JsonSchema } };
  schema.properties.a = schema;
  assert.deepEqual(validateStructure(nested(300, {}), schema), []);
  assert.throws(() => validateStructure(nested(100_000), schema), NestingError);
});
