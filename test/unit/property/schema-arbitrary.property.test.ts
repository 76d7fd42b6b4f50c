import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import type { JsonSchema } from '../../../src/api/json-schema.ts';
import { validateStructure } from '../../../src/apiserver/schema/validate.ts';
import { schemaArbitrary } from '../../../src/property/schema-arbitrary.ts';
import type { SchemaArbitraryOptions } from '../../../src/property/schema-arbitrary.ts';
import { isRecord } from '../../../src/util/values.ts';

const CRDS = join(import.meta.dirname, '../../../crds');

function samples(schema: JsonSchema, options: Partial<SchemaArbitraryOptions> = {}): unknown[] {
  const arbitrary = schemaArbitrary(fc, schema, '', { values: {}, partial: false, ...options });
  return fc.sample(arbitrary as fc.Arbitrary<unknown>, { numRuns: 40, seed: 1 });
}

const quantity = '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$';

const SCHEMAS: Record<string, JsonSchema> = {
  boolean: { type: 'boolean' },
  'bounded integer': { type: 'integer', minimum: -3, maximum: 3, exclusiveMinimum: true },
  'integer of a format': { type: 'integer', format: 'int32' },
  multiple: { type: 'integer', minimum: 7, maximum: 100, multipleOf: 5 },
  'large minimum': { type: 'number', minimum: 1e12 },
  'bounded number': { type: 'number', minimum: 0, maximum: 1, exclusiveMaximum: true },
  'bounded text': { type: 'string', minLength: 3, maxLength: 5 },
  'long text': { type: 'string', minLength: 1000 },
  pattern: { type: 'string', pattern: '^[a-z]+-[0-9]{2,4}$', maxLength: 8 },
  'unanchored pattern': { type: 'string', pattern: 'x[0-9]' },
  enumeration: { enum: ['a', 1, null, { b: true }], nullable: true },
  nullable: { type: 'string', nullable: true, minLength: 1 },
  quantity: { 'x-kubernetes-int-or-string': true, pattern: quantity },
  set: {
    type: 'array',
    'x-kubernetes-list-type': 'set',
    items: { type: 'integer', minimum: 1, maximum: 9 },
    minItems: 3,
  },
  'list map': {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['port', 'protocol'],
    minItems: 2,
    maxItems: 4,
    items: {
      type: 'object',
      required: ['port'],
      properties: {
        port: { type: 'integer', minimum: 1, maximum: 3 },
        protocol: { type: 'string', enum: ['TCP', 'UDP'], default: 'TCP' },
      },
    },
  },
  map: {
    type: 'object',
    additionalProperties: { type: 'integer' },
    minProperties: 2,
    maxProperties: 3,
  },
  'open object': {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { a: { type: 'string' } },
    required: ['a'],
  },
  'any value': { 'x-kubernetes-preserve-unknown-fields': true },
  'embedded resource': {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { apiVersion: { type: 'string' }, spec: { type: 'object' } },
  },
  ...Object.fromEntries(
    'bsonobjectid byte cidr creditcard date date-time duration email hexcolor hostname ipv4 ipv6 isbn isbn10 isbn13 k8s-long-name k8s-short-name mac password rgbcolor ssn uri uuid uuid3 uuid4 uuid5 unknown'
      .split(' ')
      .map((format) => [`format ${format}`, { type: 'string', format }]),
  ),
};

describe('Arbitraries of schemas', () => {
  test('generate valid values only', () => {
    for (const [name, schema] of Object.entries(SCHEMAS)) {
      for (const value of samples(schema)) {
        assert.deepEqual(validateStructure({ value }, { properties: { value: schema } }), [], name);
      }
    }
  });

  test('generate valid objects of real CRDs', () => {
    for (const file of readdirSync(CRDS)) {
      const crd = parse(readFileSync(join(CRDS, file), 'utf8')) as {
        spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] };
      };
      for (const { schema } of crd.spec.versions) {
        const errors = samples(schema.openAPIV3Schema).flatMap((object) =>
          isRecord(object) ? validateStructure(object, schema.openAPIV3Schema) : [],
        );
        assert.deepEqual(errors, [], file);
      }
    }
  });

  test('generate different values: absent and present fields, items and keys', () => {
    const schema = {
      type: 'object',
      properties: {
        list: { type: 'array', items: { type: 'string' } },
        map: { type: 'object', additionalProperties: { type: 'string' } },
        text: { type: 'string', nullable: true },
      },
    };
    const all = samples(schema).filter(isRecord);
    for (const name of ['list', 'map', 'text']) {
      assert.ok(
        all.some((object) => !(name in object)),
        `absent ${name}`,
      );
    }
    assert.ok(all.some(({ text }) => text === null));
    assert.ok(all.some(({ list }) => Array.isArray(list) && list.length > 1));
    assert.ok(all.some(({ map }) => isRecord(map) && Object.keys(map).length > 1));
  });

  test('omit required fields of parts of objects, but not the keys of items', () => {
    const { 'list map': list = {} } = SCHEMAS;
    const schema = {
      type: 'object',
      required: ['list'],
      properties: { list: { ...list, minItems: 0 } },
    };
    const all = samples(schema, { partial: true }).filter(isRecord);
    assert.ok(all.some((object) => !('list' in object)));
    const items = all.flatMap(({ list: some }) => (some ?? []) as object[]);
    assert.ok(items.length > 0 && items.every((item) => 'port' in item));
  });

  test('are replaced by path', () => {
    const text = { type: 'string' };
    const schema = {
      type: 'object',
      required: ['a', 'list', 'map'],
      properties: {
        a: text,
        list: {
          type: 'array',
          items: { type: 'object', required: ['b'], properties: { b: text } },
          minItems: 1,
        },
        map: { type: 'object', additionalProperties: text, minProperties: 1 },
      },
    };
    const values = { a: fc.constant('A'), 'list[].b': fc.constant('B'), 'map.*': fc.constant('C') };
    for (const object of samples(schema, { values })) {
      const { a, list, map } = object as { a: string; list: { b: string }[]; map: object };
      assert.deepEqual([a, list[0], Object.values(map)[0]], ['A', { b: 'B' }, 'C']);
    }
  });

  test('fail with the path of the field if no value is found', () => {
    const value = (schema: JsonSchema) => ({
      type: 'object',
      required: ['a'],
      properties: { a: schema },
    });
    assert.throws(
      () => samples(value({ type: 'string', pattern: '^a$', minLength: 2 })),
      /no text for the schema of a was found/,
    );
    assert.throws(() => samples(value({ type: 'string', pattern: '(?i)a' })), /the pattern of a/);
  });
});
