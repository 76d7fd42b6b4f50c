import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { prune, unknownFields } from '../../../../src/apiserver/schema/pruning.ts';
import { deepFreeze, nested, object, objectSchema } from './arbitraries.ts';

function spec(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'object', properties: { spec: { type: 'object', properties } } };
}

test('removes unknown fields and returns their paths', () => {
  const list: JsonSchema = {
    type: 'array',
    items: { type: 'object', properties: { y: { type: 'string' } } },
  };
  const value: JsonObject = {
    zoo: 1,
    spec: { foo: 1, list: [{ x: 1, y: 'kept' }, { x: 2 }] },
  };
  assert.deepEqual(prune(value, spec({ list })), [
    'zoo',
    'spec.foo',
    'spec.list[0].x',
    'spec.list[1].x',
  ]);
  assert.deepEqual(value, { spec: { list: [{ y: 'kept' }, {}] } });
});

test('keeps apiVersion, kind and metadata without declaration', () => {
  const value: JsonObject = { apiVersion: 'v1', kind: 'X', metadata: { name: 'a', odd: 1 } };
  assert.deepEqual(prune(value, { type: 'object' }), []);
  assert.deepEqual(value, { apiVersion: 'v1', kind: 'X', metadata: { name: 'a', odd: 1 } });
});

test('preserves unknown fields where declared, but prunes below declared fields', () => {
  const open: JsonSchema = {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { known: { type: 'object', properties: {} } },
  };
  const value: JsonObject = { spec: { open: { any: { thing: 1 }, known: { odd: 1 } } } };
  assert.deepEqual(prune(value, spec({ open })), ['spec.open.known.odd']);
  assert.deepEqual(value, { spec: { open: { any: { thing: 1 }, known: {} } } });
});

test('prunes the values of a map, but not its keys', () => {
  const map: JsonSchema = {
    type: 'object',
    additionalProperties: { type: 'object', properties: { a: { type: 'string' } } },
  };
  const value: JsonObject = { spec: { map: { one: { a: 'x', b: 1 } } } };
  assert.deepEqual(prune(value, spec({ map })), ['spec.map.one.b']);
});

test('additionalProperties without a schema declares names, but no fields below them', () => {
  const map: JsonSchema = { type: 'object', additionalProperties: true };
  const value: JsonObject = { spec: { map: { scalar: 1, object: { odd: 1 } } } };
  assert.deepEqual(prune(value, spec({ map })), ['spec.map.object.odd']);
  assert.deepEqual(value, { spec: { map: { scalar: 1, object: {} } } });
});

test('an embedded resource keeps apiVersion, kind and metadata', () => {
  const template: JsonSchema = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    properties: { spec: { type: 'object', properties: {} } },
  };
  const value: JsonObject = {
    spec: { template: { kind: 'Pod', metadata: { name: 'a' }, spec: { odd: 1 }, status: 1 } },
  };
  assert.deepEqual(prune(value, spec({ template })), [
    'spec.template.spec.odd',
    'spec.template.status',
  ]);
});

test('prunes the metadata of embedded resources if its schema is given', () => {
  const metadata: JsonSchema = { type: 'object', properties: { name: { type: 'string' } } };
  const template: JsonSchema = { type: 'object', 'x-kubernetes-embedded-resource': true };
  const value: JsonObject = {
    metadata: { odd: 1 },
    spec: { template: { metadata: { name: 'a', odd: 1 } } },
  };
  assert.deepEqual(prune(value, spec({ template }), { metadata }), ['spec.template.metadata.odd']);
  assert.deepEqual(value, {
    metadata: { odd: 1 },
    spec: { template: { metadata: { name: 'a' } } },
  });
});

test('keys with a meaning in JavaScript are ordinary data', () => {
  const value = JSON.parse('{"spec": {"__proto__": {"polluted": 1}, "constructor": 2}}');
  assert.deepEqual(prune(value, spec({})), ['spec.__proto__', 'spec.constructor']);
  assert.deepEqual(Object.keys(value.spec), []);
  assert.equal(({} as JsonObject)['polluted'], undefined);

  const declared: JsonSchema = spec(JSON.parse('{"__proto__": {"type": "object"}}'));
  const kept = JSON.parse('{"spec": {"__proto__": {}, "odd": 1}}');
  assert.deepEqual(prune(kept, declared), ['spec.odd']);
  assert.deepEqual(Object.keys(kept.spec), ['__proto__']);
  assert.equal(Object.getPrototypeOf(kept.spec), Object.prototype);
});

test('does not modify values below the object', () => {
  const value: JsonObject = { spec: deepFreeze({ foo: { bar: 1 }, kept: { odd: 1 } }) };
  const before = value['spec'];
  prune(value, spec({ kept: { type: 'object', properties: {} } }));
  assert.deepEqual(value, { spec: { kept: {} } });
  assert.deepEqual(before, { foo: { bar: 1 }, kept: { odd: 1 } });
});

test('throws a NestingError for deep nesting', () => {
  const open: JsonSchema = { type: 'object' };
  const schema = { ...open, properties: { a: {} as JsonSchema } };
  schema.properties.a = schema;
  assert.throws(() => prune(nested(100_000), schema), NestingError);
});

test('pruning is idempotent and leaves no unknown fields', () => {
  fc.assert(
    fc.property(object, objectSchema, (value, schema) => {
      const pruned = { ...value };
      prune(pruned, schema);
      const again = { ...pruned };
      assert.deepEqual(prune(again, schema), []);
      assert.deepEqual(again, pruned);
      assert.deepEqual(
        unknownFields(pruned, { ...schema, 'x-kubernetes-embedded-resource': true }),
        [],
      );
    }),
  );
});

test('unknownFields does not modify the value', () => {
  fc.assert(
    fc.property(object, objectSchema, (value, schema) => {
      const embedded = { ...schema, 'x-kubernetes-embedded-resource': true };
      const expected = unknownFields(deepFreeze(value), embedded);
      assert.deepEqual(prune({ ...value }, schema).sort(), expected);
    }),
  );
});
