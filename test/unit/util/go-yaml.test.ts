import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGoYaml } from '../../../src/util/go-yaml.ts';

test('reads scalars and duplicate keys as Go does', () => {
  const cases: [text: string, value: unknown][] = [
    ['yes', true],
    ['Off', false],
    ['oN', 'oN'],
    ['010', 8],
    ['1_000', 1000],
    ['1_0.5e+1_0', 10.5e10],
    ['0O17', 15],
    ['0o', '0o'],
    ['0x_', '0x_'],
    ['|\n a', 'a'],
    ['|\n a\n', 'a\n'],
    ['12:30', '12:30'],
    ['2026-01-02', '2026-01-02'],
    ['!secret abc', 'abc'],
    ['{a: 1, a: 2}', { a: 2 }],
    ['{1: a, __proto__: b}', JSON.parse('{"1": "a", "__proto__": "b"}')],
  ];
  for (const [text, value] of cases) assert.deepEqual(parseGoYaml(text), value, text);
});

test('merges maps in the order of the keys, and the first of a list has precedence', () => {
  const maps = 'maps: [&a {x: 1}, &b {x: 2, w: 2}, &c {<<: *a, z: 3}]';
  const cases: [merged: string, value: object][] = [
    ['<<: *a, x: own', { x: 'own' }],
    ['x: own, <<: *a', { x: 1 }],
    ['<<: [*a, *b]', { x: 1, w: 2 }],
    ['<<: *c', { x: 1, z: 3 }],
    ['"<<": 1', { '<<': 1 }],
  ];
  for (const [merged, value] of cases) {
    const parsed = parseGoYaml(`${maps}\nmerged: {${merged}}`) as { readonly merged: object };
    assert.deepEqual(parsed.merged, value, merged);
  }
  assert.throws(() => parseGoYaml('{<<: 1}'), /value of a merge key << must be a map/);
});

test('reads the first document only', () => {
  const texts = [
    'a: 1\n---\n[',
    '# c\n---\na: 1\n...\n}',
    '--- {a: 1}\n--- x',
    'a: 1\r\n---\r\nb: 2',
  ];
  for (const text of texts) assert.deepEqual(parseGoYaml(text), { a: 1 }, text);
  assert.deepEqual(parseGoYaml('a: ---'), { a: '---' });
});

test('refuses aliases that contain themselves or expand to too much', () => {
  assert.throws(() => parseGoYaml('&a [*a]'), RangeError);
  const lines = Array.from(
    { length: 9 },
    (_, n) => `l${n + 1}: &l${n + 1} [${`*l${n},`.repeat(9)}]`,
  );
  assert.throws(() => parseGoYaml(['l0: &l0 x', ...lines].join('\n')), RangeError);
});
