import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { compareFields } from '../../../../src/apiserver/managedfields/compare-fields.ts';
import { FieldSet, fieldElement } from '../../../../src/apiserver/managedfields/field-set.ts';
import { UNMANAGED } from '../../../../src/apiserver/managedfields/managed-fields.ts';
import { MAX_NODES, newFields } from '../../../../src/apiserver/managedfields/new-fields.ts';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';

const ATOMIC = { 'x-kubernetes-map-type': 'atomic' } as const;

/** A schema with all shapes of values. */
function schemaOf(extra: JsonSchema = {}): JsonSchema {
  const text: JsonSchema = { type: 'string' };
  return {
    type: 'object',
    properties: {
      a: text,
      b: {
        type: 'object',
        properties: {
          a: text,
          b: { type: 'object', additionalProperties: text },
          c: { type: 'array', items: text },
        },
      },
      c: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
      d: { type: 'object', additionalProperties: text, ...ATOMIC },
      e: { 'x-kubernetes-preserve-unknown-fields': true },
      ...extra.properties,
    },
  };
}

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'apiVersion', '__proto__', '');
const { value: anyValue } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>(
  (tie) => ({
    object: fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, 0, 1, '', 'x', true, undefined),
      fc.array(fc.constantFrom('x', 'y', 1), { maxLength: 2 }),
      tie('object'),
    ),
  }),
);
const anyObject = fc.dictionary(name, anyValue, { maxKeys: 5, noNullPrototype: true });

/** The fields of a new object by comparison with an empty one, without a cache. */
function compared(object: JsonObject, schema: JsonSchema, reset: readonly string[]): FieldSet {
  return compareFields({}, object, schema)
    .added.recursiveDifference(FieldSet.of(reset.map(fieldElement)))
    .difference(UNMANAGED);
}

test('the fields of a new object are those of a comparison with an empty one', () => {
  const schema = schemaOf();
  const reset = fc.constantFrom([], ['b'], ['d', 'e']);
  fc.assert(
    fc.property(anyObject, reset, (object, fields) => {
      const found = newFields(object, schema, fields);
      assert.deepEqual(found.toJson(), compared(object, schema, fields).toJson());
    }),
    { numRuns: 800 },
  );
});

test('objects of the same shape have the same set, others have not', () => {
  const schema = schemaOf();
  const first = newFields({ a: 'x', b: { a: 'y', b: { k: 'v' } } }, schema);
  assert.equal(newFields({ a: '', b: { a: 'z', b: { k: 'w' } } }, schema), first);
  const others: readonly JsonObject[] = [
    { a: 'x', b: { a: 'y', b: { other: 'v' } } },
    { a: 'x', b: { a: 'y', b: {} } },
    { a: 'x', b: { a: 'y' }, e: { k: 'v' } },
    { a: 'x', b: { a: 'y', b: { k: 'v' }, c: [] } },
    { a: 'x', b: { a: 'y', b: { k: 'v' } }, c: ['1'] },
    { a: 'x', b: { a: 'y', b: { k: 'v' } }, c: [] },
  ];
  for (const other of others) {
    assert.notEqual(newFields(other, schema), first);
    assert.deepEqual(newFields(other, schema).toJson(), compared(other, schema, []).toJson());
  }
});

test('another schema has other sets', () => {
  const object = { f: { k: 'v' } };
  const map: JsonSchema = { type: 'object', additionalProperties: { type: 'string' } };
  const split = schemaOf({ properties: { f: map } });
  const whole = schemaOf({ properties: { f: { ...map, ...ATOMIC } } });
  assert.deepEqual(newFields(object, split).toJson(), { 'f:f': { '.': {}, 'f:k': {} } });
  assert.deepEqual(newFields(object, whole).toJson(), { 'f:f': {} });
});

test('the number of shapes that are kept is limited', () => {
  const schema = schemaOf();
  const object = (key: string): JsonObject => ({ b: { b: { [key]: 'x' } } });
  const first = newFields(object('first'), schema);
  for (let key = 0; key < MAX_NODES / 4; key++) newFields(object(`k${key}`), schema);
  assert.equal(newFields(object('first'), schema), first);
  for (let key = 0; key < MAX_NODES / 2; key++) newFields(object(`l${key}`), schema);
  const again = newFields(object('first'), schema);
  assert.notEqual(again, first);
  assert.ok(again.equals(first));
});
