import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../../../src/api/object.ts';
import { customResource } from '../../../src/crd/custom-resource.ts';
import type { Infer, PrinterColumn } from '../../../src/crd/custom-resource.ts';
import * as s from '../../../src/crd/schema.ts';

const SPEC = s.object({
  name: s.string({ pattern: '^a' }),
  mode: s.enumeration(['On', 'Off'], { default: 'On' }),
  size: s.optional(s.integer({ minimum: 1, format: 'int32' })),
  limit: s.nullable(s.boolean()),
  ports: s.list(s.object({ name: s.string(), port: s.intOrString() }), { mapKeys: ['name'] }),
  labels: s.optional(s.map(s.string(), { mapType: 'atomic' })),
});

const names = { group: 'example.com', kind: 'Widget', plural: 'widgets' } as const;
const WIDGETS = customResource({ ...names, version: 'v1', spec: SPEC, status: s.object({}) });

test('an object schema requires the fields that are not optional and have no default', () => {
  assert.deepEqual(SPEC.node, {
    type: 'object',
    required: ['name', 'limit', 'ports'],
    properties: {
      name: { type: 'string', pattern: '^a' },
      mode: { type: 'string', enum: ['On', 'Off'], default: 'On' },
      size: { type: 'integer', minimum: 1, format: 'int32' },
      limit: { type: 'boolean', nullable: true },
      ports: {
        type: 'array',
        items: {
          type: 'object',
          required: ['name', 'port'],
          properties: {
            name: { type: 'string' },
            port: {
              anyOf: [{ type: 'integer' }, { type: 'string' }],
              'x-kubernetes-int-or-string': true,
            },
          },
        },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      },
      labels: {
        type: 'object',
        additionalProperties: { type: 'string' },
        'x-kubernetes-map-type': 'atomic',
      },
    },
  });
});

test('the types of specs and objects are inferred from the schema', () => {
  const spec: Infer<typeof SPEC> = {
    name: 'a',
    mode: 'Off',
    limit: null,
    ports: [{ name: 'web', port: '80%' }],
  };
  const widget: Draft<Infer<typeof WIDGETS>> = {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'a' },
    spec,
  };
  assert.equal(widget.spec.ports[0]?.port, '80%');
  // @ts-expect-error mode is one of the values.
  spec.mode = 'Sometimes';
  // @ts-expect-error name is required.
  spec.name = undefined;
  // @ts-expect-error size is a number.
  spec.size = '1';
  // @ts-expect-error a key is a field of the items.
  s.list(s.object({ name: s.string() }), { mapKeys: ['port'] });
  // @ts-expect-error a default is one of the values.
  s.enumeration(['On', 'Off'], { default: 'Maybe' });
});

test('a kind with conditions has the columns Ready, Reason and Age after its own', () => {
  const columnsOf = (columns?: PrinterColumn[]) => {
    const status = s.status({ phase: s.optional(s.string()) });
    const kind = customResource({
      ...names,
      version: 'v1',
      spec: SPEC,
      status,
      ...(columns && { columns }),
    });
    const [version] = kind.definition.spec.versions;
    return version?.additionalPrinterColumns?.map(({ name, jsonPath }) => `${name} ${jsonPath}`);
  };
  const ready = 'Ready .status.conditions[?(@.type=="Ready")].status';
  const reason = 'Reason .status.conditions[?(@.type=="Ready")].reason';
  const age = 'Age .metadata.creationTimestamp';
  const phase = { name: 'Phase', type: 'string', jsonPath: '.status.phase' } as const;
  assert.deepEqual(columnsOf(), [ready, reason, age]);
  assert.deepEqual(columnsOf([phase]), ['Phase .status.phase', ready, reason, age]);
  const own = { ...phase, name: 'Ready' };
  assert.deepEqual(columnsOf([own]), ['Ready .status.phase', reason, age]);
});

test('a kind has the names, subresources and columns of its options', () => {
  const { definition, ...descriptor } = customResource({
    ...names,
    version: 'v1',
    scope: 'Cluster',
    shortNames: ['wd'],
    categories: ['all'],
    description: 'A widget.',
    annotations: { a: 'b' },
    spec: SPEC,
    status: s.object({ replicas: s.integer() }),
    rules: [{ rule: 'self.metadata.name.size() < 20' }],
    columns: [{ name: 'Mode', type: 'string', jsonPath: '.spec.mode' }],
    scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.replicas' },
    selectableFields: ['.spec.mode'],
  });
  const fields = { spec: { fields: { labels: { atomic: true }, ports: { items: {} } } } };
  assert.deepEqual(descriptor, { ...names, version: 'v1', namespaced: false, fields: { fields } });
  assert.deepEqual(definition, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com', annotations: { a: 'b' } },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: {
        kind: 'Widget',
        listKind: 'WidgetList',
        plural: 'widgets',
        singular: 'widget',
        shortNames: ['wd'],
        categories: ['all'],
      },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.replicas' },
          },
          additionalPrinterColumns: [{ name: 'Mode', type: 'string', jsonPath: '.spec.mode' }],
          selectableFields: [{ jsonPath: '.spec.mode' }],
          schema: {
            openAPIV3Schema: {
              description: 'A widget.',
              type: 'object',
              required: ['spec'],
              properties: {
                spec: SPEC.node,
                status: {
                  type: 'object',
                  required: ['replicas'],
                  properties: { replicas: { type: 'integer' } },
                },
              },
              'x-kubernetes-validations': [{ rule: 'self.metadata.name.size() < 20' }],
            },
          },
        },
      ],
    },
  });
});

test('objects can omit an optional spec', () => {
  const kind = customResource({ ...names, version: 'v1', spec: s.optional(SPEC) });
  const widget: Draft<Infer<typeof kind>> = {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'a' },
  };
  assert.equal(widget.spec, undefined);
  const [version] = kind.definition.spec.versions;
  assert.equal(version?.schema?.openAPIV3Schema?.required, undefined);
});

test('a kind with two versions stores the version of its own call', () => {
  const old = customResource({
    ...names,
    version: 'v1beta1',
    deprecationWarning: 'use v1',
    spec: s.object({ name: s.string() }),
  });
  const both = customResource({ ...names, version: 'v1', spec: SPEC, otherVersions: [old] });
  assert.deepEqual(
    both.definition.spec.versions.map(({ name, storage, deprecated }) => [
      name,
      storage,
      deprecated,
    ]),
    [
      ['v1', true, undefined],
      ['v1beta1', false, true],
    ],
  );
  assert.throws(
    () =>
      customResource({ ...names, kind: 'Gadget', version: 'v1', spec: SPEC, otherVersions: [old] }),
    /^TypeError: customResource: otherVersions of Gadget\.example\.com contains Widget\.example\.com$/,
  );
  assert.throws(
    () =>
      customResource({
        ...names,
        scope: 'Cluster',
        version: 'v1',
        spec: SPEC,
        otherVersions: [old],
      }),
    /is Cluster in v1 and Namespaced in v1beta1/,
  );
});

test('unknown options are rejected with the name of the function', () => {
  const kind = { ...names, version: 'v1', spec: SPEC, colums: [] };
  assert.throws(() => customResource(kind), /^TypeError: customResource: unknown option colums/);
});
