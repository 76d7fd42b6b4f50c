import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import type { FieldTree } from '../../../../src/apiserver/objects/field-tree.ts';
import { deleteFields, fieldTree } from '../../../../src/apiserver/objects/field-tree.ts';

const CASES: Readonly<
  Record<string, readonly [paths: readonly string[], before: object, after: object]>
> = {
  'a field': [['spec.a'], { spec: { a: 1, b: 2 } }, { spec: { b: 2 } }],
  'a field whose parents are absent': [['spec.a.b'], { spec: {} }, { spec: {} }],
  'a field whose parent is a text': [['spec.a.b'], { spec: { a: 'b' } }, { spec: { a: 'b' } }],
  'fields of items': [
    ['list[].a'],
    { list: [{ a: 1 }, 'a', { b: 2 }] },
    { list: [{}, 'a', { b: 2 }] },
  ],
  'fields of the values of a map': [['map{}.a'], { map: { a: { a: 1 } } }, { map: { a: {} } }],
  'a key with dots': [['map[a.b/c]'], { map: { 'a.b/c': 1, d: 1 } }, { map: { d: 1 } }],
  'a parent that becomes empty': [['a?.b', 'a.c.d'], { a: { b: 1 } }, {}],
  'a parent with another field': [['a?.b'], { a: { b: 1, c: 1 } }, { a: { c: 1 } }],
  'a parent that was empty': [['a?.b'], { a: {} }, { a: {} }],
};

for (const [title, [paths, before, after]] of Object.entries(CASES)) {
  test(`deletes ${title}`, () => {
    const value = structuredClone(before);
    deleteFields(value, fieldTree(paths));
    assert.deepEqual(value, after);
  });
}

/** Returns the paths of a tree that a schema does not have. */
function unknownPaths(tree: FieldTree, schema: JsonSchema | undefined, path: string): string[] {
  if (!schema) return [path];
  return [...tree.fields].flatMap(([field, inner]) => {
    const { items, additionalProperties, properties = {} } = schema;
    const ofMap = field === '{}' || !Object.hasOwn(properties, field);
    const next = field === '[]' ? items : ofMap ? additionalProperties : properties[field];
    return unknownPaths(inner, typeof next === 'object' ? next : undefined, `${path}.${field}`);
  });
}

test('the disabled fields of all kinds are in their schemas', () => {
  const disabled = BUILTIN_KINDS.filter(({ disabledFields }) => disabledFields);
  assert.ok(disabled.length > 0);
  for (const { kind, disabledFields, schema } of disabled) {
    assert.deepEqual(disabledFields && unknownPaths(disabledFields, schema, kind), []);
  }
});
