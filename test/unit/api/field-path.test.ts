import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changedPaths, formatPath, isWithin, valueAt } from '../../../src/api/field-path.ts';

const changed = (before: unknown, after: unknown, limit = 10) =>
  changedPaths(before, after, limit).map(formatPath);

describe('changedPaths', () => {
  it('returns the smallest fields that differ', () => {
    const before = { spec: { a: 1, b: { c: [1, { d: 'x' }] }, same: {} }, gone: true };
    const after = { spec: { a: 2, b: { c: [1, { d: 'y' }] }, same: {} }, come: null };
    assert.deepEqual(changed(before, after), ['.spec.a', '.spec.b.c[1].d', '.come', '.gone']);
  });

  it('returns a whole list if its length differs, and a whole value if its type differs', () => {
    assert.deepEqual(changed({ l: [1, 2], k: {} }, { l: [1, 2, 3], k: [] }), ['.l', '.k']);
    assert.deepEqual(changed({ k: null }, { k: {} }), ['.k']);
  });

  it('ignores metadata that every write changes', () => {
    const metadata = { resourceVersion: '1', generation: 1, managedFields: [], labels: { a: '1' } };
    const next = { resourceVersion: '2', generation: 2, managedFields: [{}], labels: { a: '2' } };
    assert.deepEqual(changed({ metadata }, { metadata: next }), ['.metadata.labels.a']);
    assert.deepEqual(changed({ spec: { generation: 1 } }, { spec: { generation: 2 } }), [
      '.spec.generation',
    ]);
  });

  it('returns nothing for equal objects, and treats undefined as absent', () => {
    assert.deepEqual(changed({ a: [{}], b: undefined }, { a: [{}] }), []);
  });

  it('returns at most the requested number of fields', () => {
    const wide = (value: number) => ({
      spec: Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`f${at}`, value])),
    });
    assert.deepEqual(changed(wide(1), wide(2), 2), ['.spec.f0', '.spec.f1']);
  });

  it('compares deep objects without a stack overflow', () => {
    const deep = (leaf: string) => {
      let value: unknown = leaf;
      for (let level = 0; level < 50_000; level++) value = { a: value };
      return value;
    };
    assert.deepEqual(changed(deep('x'), deep('y')), ['.a'.repeat(16)]);
  });

  it('supports names of JavaScript properties', () => {
    const hostile = (value: number): unknown =>
      JSON.parse(`{"__proto__": {"x": ${value}}, "constructor": ${value}}`);
    assert.deepEqual(changed(hostile(1), hostile(2)), ['.__proto__.x', '.constructor']);
    assert.equal(valueAt({}, ['constructor']), undefined);
    assert.equal(valueAt(hostile(7), ['__proto__', 'x']), 7);
  });
});

describe('FieldPath', () => {
  it("is formatted like kubectl's JSONPath", () => {
    assert.equal(
      formatPath(['metadata', 'labels', 'example.com/team']),
      '.metadata.labels["example.com/team"]',
    );
    assert.equal(formatPath(['spec', 'ports', 0, 'port']), '.spec.ports[0].port');
    assert.equal(formatPath([]), '.');
  });

  it('is truncated if it is long, and quotes control characters', () => {
    assert.equal(formatPath(['a\n"b']), '["a\\n\\"b"]');
    assert.ok(formatPath(Array<string>(500).fill('x'.repeat(10_000))).length < 300);
  });

  it('is within itself and its ancestors, not within siblings', () => {
    assert.ok(isWithin(['a', 'b'], ['a']) && isWithin(['a'], ['a']));
    assert.ok(!isWithin(['a'], ['a', 'b']) && !isWithin(['b'], ['a']));
  });
});
