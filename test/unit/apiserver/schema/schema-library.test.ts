import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import { SchemaLibrary } from '../../../../src/apiserver/schema/schema-library.ts';
import { validateStructure } from '../../../../src/apiserver/schema/validate.ts';

function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

const definitions = new Map(
  Object.entries<JsonSchema>({
    Tree: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', default: '' },
        port: { type: 'string', default: 'TCP' },
        left: ref('Tree'),
        right: { allOf: [ref('Tree')], default: {}, 'x-kubernetes-map-type': 'atomic' },
        leaf: { allOf: [ref('Leaf')] },
        any: ref('Any'),
      },
    },
    Leaf: { type: 'object', properties: { size: { type: 'integer' }, up: ref('Tree') } },
    Any: {},
    Broken: { type: 'object', properties: { x: ref('Missing') } },
  }),
);

const library = new SchemaLibrary((name) => definitions.get(name));

test('resolves references, also cyclic ones', () => {
  const tree = library.get('Tree');
  assert.equal(tree.properties?.['left'], tree);
  assert.equal(tree.properties?.['leaf'], library.get('Leaf'));
  assert.equal(library.get('Leaf').properties?.['up'], tree);
  const errors = validateStructure({ name: 'a', left: { name: 'b', leaf: { size: 'x' } } }, tree);
  assert.deepEqual(
    errors.map(({ field }) => field),
    ['left.leaf.size'],
  );
});

test('merges the siblings of a reference into the schema', () => {
  const tree = library.get('Tree');
  const right = tree.properties?.['right'];
  assert.equal(right?.['x-kubernetes-map-type'], 'atomic');
  assert.equal(right?.properties, tree.properties);
  assert.equal(tree['x-kubernetes-map-type'], undefined);
});

test('removes defaults that are Go zero values', () => {
  const { properties } = library.get('Tree');
  assert.equal(properties?.['name']?.default, undefined);
  assert.equal(properties?.['right']?.default, undefined);
  assert.equal(properties?.['port']?.default, 'TCP');
});

test('an untyped definition preserves unknown fields', () => {
  assert.equal(library.get('Any')['x-kubernetes-preserve-unknown-fields'], true);
});

test('the error names a missing schema', () => {
  assert.throws(() => library.get('Broken'), /There is no schema "Missing"/);
});
