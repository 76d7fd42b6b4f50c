import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCustomResources } from '../../../src/codegen/crd-parser.ts';
import { asSchema } from '../../../src/codegen/schema.ts';

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets' },
    versions: [
      { name: 'v1alpha1', served: false, storage: false },
      {
        name: 'v1beta1',
        served: true,
        storage: false,
        schema: { openAPIV3Schema: { type: 'object' } },
      },
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', description: 'stored' } },
      },
    ],
  },
};

test('each served version counts, the stored one first', () => {
  const widget = { group: 'example.com', plural: 'widgets', kind: 'Widget', namespaced: true };
  const stored = { type: 'object', description: 'stored' };
  assert.deepEqual(parseCustomResources(JSON.stringify(definition)), [
    { ...widget, version: 'v1', schema: stored, isMain: true },
    { ...widget, version: 'v1beta1', schema: { type: 'object' }, isMain: false },
  ]);
});

test('where the stored version is not served, the first one that is comes first', () => {
  const versions = definition.spec.versions.map((version) => ({
    ...version,
    served: version.name === 'v1beta1',
  }));
  const spec = { ...definition.spec, versions };
  const [main, ...more] = parseCustomResources(JSON.stringify({ ...definition, spec }));
  assert.deepEqual([main?.version, main?.isMain, more], ['v1beta1', true, []]);
});

test('definitions in a list, as kubectl prints them, are found', () => {
  const list = { apiVersion: 'v1', kind: 'List', items: [definition, { kind: 'Pod' }, null] };
  assert.equal(parseCustomResources(JSON.stringify(list)).length, 2);
});

test('a cluster-scoped kind is not namespaced', () => {
  const cluster = { ...definition, spec: { ...definition.spec, scope: 'Cluster' } };
  assert.equal(parseCustomResources(JSON.stringify(cluster))[0]?.namespaced, false);
});

test('documents of other kinds and empty ones are passed over', () => {
  const text = `---\napiVersion: v1\nkind: Namespace\n---\n---\n${JSON.stringify(definition)}\n`;
  assert.deepEqual(
    parseCustomResources(text).map(({ kind }) => kind),
    ['Widget', 'Widget'],
  );
});

test('what is no definition of today is refused with its place', () => {
  const refusals: [Record<string, unknown>, RegExp][] = [
    [{ apiVersion: 'apiextensions.k8s.io/v1beta1' }, /apiVersion must be apiextensions.k8s.io\/v1/],
    [{ spec: undefined }, /^spec: expected a mapping/],
    [{ spec: { ...definition.spec, versions: [] } }, /none of them has served: true/],
    [{ spec: { ...definition.spec, group: "x';" } }, /^spec.group: expected .* found "x';"/],
    [
      { spec: { ...definition.spec, names: { kind: 'A-B', plural: 'abs' } } },
      /^spec.names.kind: expected/,
    ],
    [
      { spec: { ...definition.spec, versions: [{ name: 'v1', served: true }] } },
      /^Widget: schema: expected a mapping/,
    ],
  ];
  for (const [change, message] of refusals) {
    assert.throws(() => parseCustomResources(JSON.stringify({ ...definition, ...change })), {
      name: 'TypeError',
      message,
    });
  }
});

test('text that is not YAML is a syntax error', () => {
  assert.throws(() => parseCustomResources('kind: [CustomResourceDefinition'), SyntaxError);
});

test('a schema of the wrong shape is refused where it is wrong', () => {
  const refusals: [unknown, RegExp][] = [
    [[], /^Widget: expected a mapping, found \[\]/],
    [{ properties: { a: { type: 1 } } }, /^Widget.a: type must be a string, found 1/],
    [{ items: { nullable: 'yes' } }, /^Widget\[\]: nullable must be a boolean/],
    [{ additionalProperties: { enum: 'a' } }, /^Widget\{\}: enum must be a list/],
    [{ properties: [] }, /^Widget: expected a mapping/],
    [{ required: [1] }, /^Widget: required must be a list of names, found \[1\]/],
    [{ oneOf: {} }, /^Widget: oneOf must be a list/],
    [{ anyOf: ['a'] }, /^Widget\(anyOf\): expected a mapping/],
    [{ not: [] }, /^Widget\(not\): expected a mapping/],
  ];
  for (const [schema, message] of refusals) {
    assert.throws(() => asSchema(schema, 'Widget'), { name: 'TypeError', message });
  }
});

test('a schema that nests without end is refused before the stack is', () => {
  let schema: object = { type: 'string' };
  for (let depth = 0; depth < 100_000; depth++) schema = { type: 'array', items: schema };
  assert.throws(() => asSchema(schema, 'Deep'), /nested deeper than 64 levels$/);
  let branches: object = { type: 'string' };
  for (let depth = 0; depth < 100_000; depth++) branches = { not: { anyOf: [branches] } };
  assert.throws(() => asSchema(branches, 'Deep'), /nested deeper than 64 levels$/);
});
