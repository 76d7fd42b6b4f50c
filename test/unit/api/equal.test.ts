import assert from 'node:assert/strict';
import { test } from 'node:test';
import { covers } from '../../../src/api/equal.ts';
import { customShape } from '../../../src/api/field-shape.ts';
import type { JsonSchema } from '../../../src/api/json-schema.ts';
import { apiVersionOf } from '../../../src/api/resource.ts';
import { BUILTIN_KINDS } from '../../../src/apiserver/builtin/kinds.ts';
import { linkedSchema, schemaName } from '../../../src/apiserver/schema/builtin-schemas.ts';
import { isRecord } from '../../../src/util/values.ts';

test('accepts additional members', () => {
  assert.ok(covers({ a: 1, b: { c: 'x', d: true } }, { b: { c: 'x' } }));
  assert.ok(covers({ a: 1 }, { a: 1, b: undefined }));
  assert.ok(covers(undefined, undefined));
});

test('detects missing and different members', () => {
  assert.ok(!covers({ a: 1 }, { a: 2 }));
  assert.ok(!covers({ a: 1 }, { a: { b: 1 } }));
  assert.ok(!covers({}, { a: null }));
  assert.ok(!covers([], {}));
  assert.ok(!covers({ toString: 1 }, { valueOf: 1 }), 'what every object inherits is not there');
});

test('accepts additional objects of a list, and another order', () => {
  const actual = [{ name: 'sidecar' }, { name: 'app', image: 'nginx', pullPolicy: 'Always' }];
  assert.ok(covers(actual, [{ name: 'app', image: 'nginx' }]));
  assert.ok(!covers(actual, [{ name: 'app', image: 'redis' }]));
  assert.ok(!covers(undefined, [{ name: 'app' }]));
});

test('compares a list of plain values as a whole', () => {
  assert.ok(covers(['a', 'b'], ['a', 'b']));
  assert.ok(!covers(['a', 'b'], ['a']));
  assert.ok(!covers(['b', 'a'], ['a', 'b']));
  assert.ok(!covers(['a'], []));
});

/** A value of each field of a kind, and of one element of each list and map. Ends where the schema refers to itself. */
function sampleOf(schema: JsonSchema, parents: readonly JsonSchema[] = []): unknown {
  if (parents.includes(schema)) return {};
  const inner = (each: JsonSchema) => sampleOf(each, [...parents, schema]);
  const { type, properties, items, additionalProperties } = schema;
  if (type === 'array') return [items ? inner(items) : 'a'];
  if (properties)
    return Object.fromEntries(Object.entries(properties).map(([n, s]) => [n, inner(s)]));
  if (typeof additionalProperties === 'object') return { a: inner(additionalProperties) };
  if (type === 'object') return {};
  return type === 'boolean' ? true : type === 'string' ? 'a' : 1;
}

/** Empties all fields of a name. */
function cut(value: unknown, name: string): void {
  if (!isRecord(value)) return;
  for (const [field, member] of Object.entries(value)) {
    if (field === name && isRecord(member)) value[field] = {};
    else cut(member, name);
  }
}

/**
 * Calls `visit` for each object and list of a sample: whether it is written as a whole, and how to add to it.
 *
 * @param published the schema with the required fields, which are in all objects
 */
function eachAddition(
  schema: JsonSchema,
  published: JsonSchema,
  value: unknown,
  visit: (isWhole: boolean, path: string, add: () => () => void, isDefault?: boolean) => void,
  { isWhole = false, path = '' } = {},
): void {
  if (Array.isArray(value)) {
    const list: unknown[] = value;
    const isMerged = ['map', 'set'].includes(schema['x-kubernetes-list-type'] ?? '');
    visit(isWhole || !isMerged, path, () => {
      list.push({ added: 'x' });
      return () => list.pop();
    });
    const inside = { isWhole: isWhole || !isMerged, path: `${path}[]` };
    const { items } = published;
    if (schema.items) eachAddition(schema.items, items ?? {}, list[0], visit, inside);
  } else if (isRecord(value)) {
    const isAtomic = isWhole || schema['x-kubernetes-map-type'] === 'atomic';
    visit(isAtomic, path, () => {
      value['added'] = 'x';
      return () => delete value['added'];
    });
    const { properties = {}, additionalProperties } = schema;
    for (const [name, { default: preset }] of isAtomic ? Object.entries(properties) : []) {
      if (preset === undefined || published.required?.includes(name)) continue;
      const { [name]: before } = value;
      delete value[name];
      visit(
        false,
        `${path}.${name}`,
        () => {
          value[name] = preset;
          return () => delete value[name];
        },
        true,
      );
      value[name] = before;
    }
    for (const [name, field] of Object.entries(value)) {
      const rest = typeof additionalProperties === 'object' ? additionalProperties : {};
      const inside = { isWhole: isAtomic, path: `${path}.${name}` };
      const { [name]: member = published.additionalProperties } = published.properties ?? {};
      const known = typeof member === 'object' ? member : {};
      eachAddition(properties[name] ?? rest, known, field, visit, inside);
    }
  }
}

test('sees additions to fields of built-in kinds that are written as a whole, and no others', () => {
  let additions = 0;
  for (const { group, version, kind, schema } of BUILTIN_KINDS) {
    if (!schema) continue;
    const apiVersion = apiVersionOf({ group, version });
    const { status: _, ...sampled } = sampleOf(schema) as Record<string, unknown>;
    // The kinds share the type of the template.
    if (kind !== 'Deployment') cut(sampled, 'template');
    const sample = { ...sampled, apiVersion, kind };
    const desired = structuredClone(sample);
    const published = linkedSchema(schemaName({ group, version }, kind));
    eachAddition(schema, published, sample, (isWhole, path, add, isDefault) => {
      const wanted = isDefault ? structuredClone(sample) : desired;
      const remove = add();
      assert.equal(covers(sample, wanted), !isWhole, `${apiVersion} ${kind}${path}`);
      remove();
      additions++;
    });
  }
  assert.ok(additions > 1000);
});

test('accepts defaults of the server in fields that are written as a whole', () => {
  const policy = (ingress: object) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    spec: { podSelector: {}, ingress: [ingress] },
  });
  const port = { port: 80 };
  assert.ok(covers(policy({ ports: [{ ...port, protocol: 'TCP' }] }), policy({ ports: [port] })));
  assert.ok(!covers(policy({ ports: [{ ...port, protocol: 'UDP' }] }), policy({ ports: [port] })));
  assert.ok(!covers(policy({ ports: [port, { port: 22 }] }), policy({ ports: [port] })));
  assert.ok(!covers(policy({ ports: [port], from: [] }), policy({ ports: [port] })));
});

test('compares objects of custom kinds by their schema', () => {
  const list = { type: 'array', items: { type: 'object', properties: {} } };
  const shape = customShape({
    properties: {
      spec: {
        properties: {
          ports: { ...list, items: { properties: { protocol: { default: 'TCP' } } } },
          rules: { ...list, 'x-kubernetes-list-type': 'map' },
          tags: { type: 'array', 'x-kubernetes-list-type': 'set' },
          selector: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
          labels: { type: 'object' },
        },
      },
    },
  });
  const isCovered = (name: string, actual: unknown, desired: unknown) =>
    covers({ spec: { [name]: actual } }, { spec: { [name]: desired } }, shape);
  assert.deepEqual(
    [
      isCovered('ports', [{ port: 1, protocol: 'TCP' }], [{ port: 1 }]),
      isCovered('ports', [{ port: 1, protocol: 'UDP' }], [{ port: 1 }]),
      isCovered('ports', [{ port: 1 }, { port: 2 }], [{ port: 1 }]),
      isCovered('rules', [{ name: 'a' }, { name: 'b', more: 1 }], [{ name: 'b' }]),
      isCovered('tags', ['a', 'b'], ['a']),
      isCovered('selector', { a: 1, b: 2 }, { a: 1 }),
      isCovered('labels', { a: 1, b: 2 }, { a: 1 }),
    ],
    [true, false, false, true, true, false, true],
  );
  const finalizers = (...list: string[]) => ({ metadata: { finalizers: list } });
  assert.ok(covers(finalizers('a', 'b'), finalizers('a'), shape));
  assert.equal(customShape({ properties: { spec: { properties: { size: {} } } } }), undefined);
});

test('keeps additional members of objects of other kinds', () => {
  const custom = (selector: object) => ({ apiVersion: 'example.com/v1', spec: { selector } });
  assert.ok(covers(custom({ app: 'a', more: 'b' }), custom({ app: 'a' })));
});
