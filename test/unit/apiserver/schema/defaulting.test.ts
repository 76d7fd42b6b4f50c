import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { applyDefaults } from '../../../../src/apiserver/schema/defaulting.ts';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { deepFreeze, nested, object, objectSchema } from './arbitraries.ts';

const port: JsonSchema = {
  type: 'object',
  properties: { protocol: { type: 'string', default: 'TCP' } },
};

test('absent fields get their defaults, also in lists and maps', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      replicas: { type: 'integer', default: 1 },
      ports: { type: 'array', items: port },
      named: { type: 'object', additionalProperties: port },
    },
  };
  const value = { ports: [{}, { protocol: 'UDP' }], named: { http: {} } };
  assert.deepEqual(applyDefaults(deepFreeze(value), schema), {
    replicas: 1,
    ports: [{ protocol: 'TCP' }, { protocol: 'UDP' }],
    named: { http: { protocol: 'TCP' } },
  });
});

test('a default object gets the defaults of its fields; an absent object without default gets none', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: { given: { ...port, default: {} }, other: port },
  };
  assert.deepEqual(applyDefaults({}, schema), { given: { protocol: 'TCP' } });
});

test('null is replaced by the default, kept if nullable, and removed otherwise', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      defaulted: { type: 'integer', default: 3 },
      nullable: { type: 'integer', nullable: true, default: 3 },
      plain: { type: 'integer' },
      list: { type: 'array', items: { type: 'integer', default: 3 } },
    },
  };
  const value = { defaulted: null, nullable: null, plain: null, list: [null], undeclared: null };
  assert.deepEqual(applyDefaults(deepFreeze(value), schema), {
    defaulted: 3,
    nullable: null,
    list: [3],
    undeclared: null,
  });
});

test('returns the same object if nothing changes', () => {
  const value = deepFreeze({ protocol: 'TCP', deep: { list: [{}] } });
  assert.equal(applyDefaults(value, port), value);
});

test('a default named __proto__ becomes a member, not a prototype', () => {
  const properties = JSON.parse('{"__proto__": {"type": "object", "default": {"bad": true}}}');
  const value = applyDefaults<Record<string, unknown>>({}, { type: 'object', properties });
  assert.deepEqual(Object.keys(value), ['__proto__']);
  assert.equal(value['bad'], undefined);
});

test('throws a NestingError for deep nesting', () => {
  const schema = { type: 'object', properties: { a: {} as JsonSchema } };
  schema.properties.a = schema;
  assert.throws(() => applyDefaults(nested(100_000), schema), NestingError);
});

test('defaulting is idempotent', () => {
  fc.assert(
    fc.property(object, objectSchema, (value, schema) => {
      const once = applyDefaults(deepFreeze(value), schema);
      assert.equal(applyDefaults(once, schema), once);
    }),
  );
});
