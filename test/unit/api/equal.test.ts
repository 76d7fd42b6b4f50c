import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCHEMAS } from '../../../src/apiserver/generated/schemas.ts';
import { ATOMIC_MAPS, covers, MERGED_LISTS } from '../../../src/api/equal.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-list-type'?: string;
}

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

test('compares maps and lists of built-in kinds as a whole if they are written as a whole', () => {
  const service = (selector: object) => ({ apiVersion: 'v1', kind: 'Service', spec: { selector } });
  assert.ok(covers(service({ app: 'a' }), service({ app: 'a' })));
  assert.ok(!covers(service({ app: 'a', more: 'b' }), service({ app: 'a' })));
  const deployment = (template: object, labels: object = { app: 'a' }) => ({
    apiVersion: 'apps/v1',
    spec: { selector: { matchLabels: labels }, template: { spec: template } },
  });
  assert.ok(!covers(deployment({}, { app: 'a', more: 'b' }), deployment({})));
  const nodes = (more: object) => deployment({ nodeSelector: { disk: 'ssd', ...more } });
  assert.ok(!covers(nodes({ zone: 'a' }), nodes({})));
  const tolerations = (...list: object[]) => deployment({ tolerations: list });
  assert.ok(covers(tolerations({ key: 'a', operator: 'Exists' }), tolerations({ key: 'a' })));
  assert.ok(!covers(tolerations({ key: 'a' }, { key: 'b' }), tolerations({ key: 'a' })));
  const containers = (...list: object[]) => deployment({ containers: list });
  assert.ok(covers(containers({ name: 'sidecar' }, { name: 'a' }), containers({ name: 'a' })));
  const labelled = (labels: object) => ({ apiVersion: 'v1', metadata: { labels } });
  assert.ok(covers(labelled({ app: 'a', team: 'b' }), labelled({ app: 'a' })));
});

test('keeps additional members of objects of other kinds', () => {
  const custom = (selector: object) => ({ apiVersion: 'example.com/v1', spec: { selector } });
  assert.ok(covers(custom({ app: 'a', more: 'b' }), custom({ app: 'a' })));
});

test('knows the fields of the built-in kinds that are written as a whole', () => {
  const atomicMaps = new Set<string>();
  const mergedLists = new Set<string>();
  const definition = /^"\w+":(\{.*\}),?$/;
  for (const line of Object.values(SCHEMAS).join('\n').split('\n')) {
    const [, text] = definition.exec(line.trim()) ?? [];
    const schema: Schema = JSON.parse(text ?? '{}');
    const isAtomic = schema['x-kubernetes-map-type'] === 'atomic';
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      const isMap = field.additionalProperties !== undefined;
      if (isMap && (isAtomic || field['x-kubernetes-map-type'] === 'atomic')) atomicMaps.add(name);
      if (field['x-kubernetes-list-type'] === 'map') mergedLists.add(name);
    }
  }
  assert.deepEqual(new Set(ATOMIC_MAPS), atomicMaps);
  assert.deepEqual([...MERGED_LISTS].toSorted(), [...mergedLists].toSorted());
});
