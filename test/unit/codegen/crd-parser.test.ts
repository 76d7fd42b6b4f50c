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

test('returns each served version, the stored one first', () => {
  const widget = { group: 'example.com', plural: 'widgets', kind: 'Widget', namespaced: true };
  const stored = { type: 'object', description: 'stored' };
  assert.deepEqual(parseCustomResources(JSON.stringify(definition)), [
    { ...widget, version: 'v1', schema: stored, isMain: true },
    { ...widget, version: 'v1beta1', schema: { type: 'object' }, isMain: false },
  ]);
});

test('returns the first served version first if the stored one is not served', () => {
  const versions = definition.spec.versions.map((version) => ({
    ...version,
    served: version.name === 'v1beta1',
  }));
  const spec = { ...definition.spec, versions };
  const [main, ...more] = parseCustomResources(JSON.stringify({ ...definition, spec }));
  assert.deepEqual([main?.version, main?.isMain, more], ['v1beta1', true, []]);
});

test('finds definitions in lists, as kubectl prints them', () => {
  const list = { apiVersion: 'v1', kind: 'List', items: [definition, { kind: 'Pod' }, null] };
  assert.equal(parseCustomResources(JSON.stringify(list)).length, 2);
});

test('a cluster-scoped kind is not namespaced', () => {
  const cluster = { ...definition, spec: { ...definition.spec, scope: 'Cluster' } };
  assert.equal(parseCustomResources(JSON.stringify(cluster))[0]?.namespaced, false);
});

test('skips empty documents and other kinds', () => {
  const text = `---\napiVersion: v1\nkind: Namespace\n---\n---\n${JSON.stringify(definition)}\n`;
  assert.deepEqual(
    parseCustomResources(text).map(({ kind }) => kind),
    ['Widget', 'Widget'],
  );
});

test('rejects invalid definitions with the path of the problem', () => {
  const invalid: [Record<string, unknown>, RegExp][] = [
    [{ apiVersion: 'apiextensions.k8s.io/v1beta1' }, /apiVersion must be apiextensions.k8s.io\/v1/],
    [{ spec: undefined }, /^spec: expected a mapping/],
    [{ spec: { ...definition.spec, versions: [] } }, /no version has served: true/],
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
  for (const [change, message] of invalid) {
    assert.throws(() => parseCustomResources(JSON.stringify({ ...definition, ...change })), {
      name: 'TypeError',
      message,
    });
  }
});

test('rejects invalid YAML with a SyntaxError', () => {
  assert.throws(() => parseCustomResources('kind: [CustomResourceDefinition'), SyntaxError);
});

test('rejects an invalid schema with the path of the problem', () => {
  const invalid: [unknown, RegExp][] = [
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
  for (const [schema, message] of invalid) {
    assert.throws(() => asSchema(schema, 'Widget'), { name: 'TypeError', message });
  }
});

test('rejects a schema that is nested too deeply', () => {
  let schema: object = { type: 'string' };
  for (let depth = 0; depth < 100_000; depth++) schema = { type: 'array', items: schema };
  assert.throws(() => asSchema(schema, 'Deep'), /nested deeper than 64 levels$/);
  let branches: object = { type: 'string' };
  for (let depth = 0; depth < 100_000; depth++) branches = { not: { anyOf: [branches] } };
  assert.throws(() => asSchema(branches, 'Deep'), /nested deeper than 64 levels$/);
});
