import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManifestError, parseManifests } from '../../../../src/client/apply/manifest.ts';
import type { Manifest } from '../../../../src/client/apply/manifest.ts';

function read(text: string): Manifest[] {
  return parseManifests([{ source: 'a.yaml', text }]);
}

function complaints(text: string): string[] {
  try {
    return read(text).map(({ object }) => `no complaint about ${object.kind}`);
  } catch (error) {
    assert.ok(error instanceof ManifestError);
    return error.message.split('\n');
  }
}

/** A ConfigMap with additional lines. */
function manifest(lines: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n${lines}`;
}

const value = (text: string): unknown => read(manifest(`value: ${text}`))[0]?.object['value'];

describe('parseManifests', () => {
  test('reads any number of documents; empty ones are counted and skipped', () => {
    const found = read(
      `# nothing\n---\n${manifest('')}---\n---\n\n${manifest('data: {a: b}')}\n...\n`,
    );
    assert.deepEqual(
      found.map(({ place }) => place),
      [
        { source: 'a.yaml', document: 1, line: 3 },
        { source: 'a.yaml', document: 3, line: 9 },
      ],
    );
    assert.deepEqual(found[1]?.object, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
      data: { a: 'b' },
    });
    assert.deepEqual(read(''), []);
  });

  test('reads JSON with tabs, and several consecutive JSON objects', () => {
    const one = JSON.stringify(
      { apiVersion: 'v1', kind: 'A', metadata: { name: 'a{"\\' } },
      null,
      '\t',
    );
    const two = one.replace('"A"', '"B"');
    assert.equal(read(one)[0]?.object.metadata.name, 'a{"\\');
    assert.deepEqual(
      read(`${one}\n${two}`).map(({ object, place }) => [object.kind, place.document, place.line]),
      [
        ['A', 1, 1],
        ['B', 2, 8],
      ],
    );
  });

  test('reads lists and nested lists; each item has its line', () => {
    const found = read(
      [
        'apiVersion: v1',
        'kind: List',
        'items:',
        '- {apiVersion: v1, kind: A, metadata: {name: a}}',
        '- apiVersion: v1',
        '  kind: ConfigMapList',
        '  items:',
        '  - {apiVersion: v1, kind: B, metadata: {name: b}}',
      ].join('\n'),
    );
    assert.deepEqual(
      found.map(({ object, place }) => [object.kind, place.line, place.item]),
      [
        ['A', 4, 'items[0]'],
        ['B', 8, 'items[1].items[0]'],
      ],
    );
  });

  test('does not treat an object with items as a list unless its kind ends with List', () => {
    const found = read('apiVersion: v1\nkind: Basket\nmetadata: {name: a}\nitems: [{kind: Apple}]');
    assert.deepEqual(
      found.map(({ object }) => object.kind),
      ['Basket'],
    );
  });

  test('reads YAML as Kubernetes does, except that keys are always strings', () => {
    for (const [text, expected] of [
      ['0644', 420],
      ['yes', true],
      ['"yes"', 'yes'],
      ['1:30', '1:30'],
      ['2026-11-21T10:12:00Z', '2026-11-21T10:12:00Z'],
      ['~', null],
      ['1.5', 1.5],
      [
        '{on: 1, 8080: 2, __proto__: 3}',
        Object.fromEntries([
          ['on', 1],
          ['8080', 2],
          ['__proto__', 3],
        ]),
      ],
    ] as const) {
      assert.deepEqual(value(text), expected, text);
    }
  });

  test('keeps every digit of a large integer', () => {
    const sent = JSON.stringify(read(manifest('max: 9223372036854775807\nmin: -12'))[0]?.object);
    assert.match(sent, /"max":9223372036854775807,"min":-12/);
  });

  test('supports anchors, aliases and merge keys', () => {
    assert.deepEqual(value('{a: &x {b: 1, c: 2}, d: {<<: *x, c: 3}, e: *x}'), {
      a: { b: 1, c: 2 },
      d: { b: 1, c: 3 },
      e: { b: 1, c: 2 },
    });
  });
});

describe('parseManifests reports document, line and field of', () => {
  for (const [what, text, expected] of [
    [
      'a tab',
      'a:\n\tb: 1',
      /^a\.yaml: document 1, line 2, column 1: invalid YAML: this line is indented with a tab/,
    ],
    [
      'a key twice',
      `${manifest('')}---\na: 1\na: 2`,
      /document 2, line 6, column 1: .* this key occurs twice/,
    ],
    ['a quote', 'a: "b', /line 1, column 6: invalid YAML: Missing closing/],
    ['an unknown alias', 'a: *b', /an alias \(\*\) has no anchor/],
    ['an unknown tag', 'a: !b c', /a tag \(!\) is unknown/],
    [
      'no object',
      'a',
      /line 1: expected an object with apiVersion and kind, found another string$/,
    ],
    [
      'no apiVersion',
      'kind: A',
      /apiVersion: expected a string, as in apps\/v1, but it is missing$/,
    ],
    ['no kind', 'apiVersion: v1\nkind: 1', /kind: expected a string.* found a number; quote it$/],
    ['no metadata', 'apiVersion: v1\nkind: A', /metadata: expected a mapping with a name/],
    [
      'no name',
      'apiVersion: v1\nkind: A\nmetadata: {}',
      /metadata\.name: expected the name of one/,
    ],
    [
      'a path for a name',
      manifest('').replace('a}', 'a/b}'),
      /metadata\.name: .* found another string$/,
    ],
    [
      'a generated name',
      manifest('').replace('name', 'generateName'),
      /metadata\.name: .* generateName, which apply does not support/,
    ],
    ['no number', manifest('a: {b: [.nan]}'), /a\.b\[0\]: JSON has no NaN or infinity$/],
    [
      'an item of a list',
      'apiVersion: v1\nkind: List\nitems:\n- {kind: A}',
      /document 1, line 4, items\[0\]: apiVersion: expected/,
    ],
  ] as const) {
    test(what, () => {
      const [first = '', ...others] = complaints(text);
      assert.match(first, expected);
      assert.deepEqual(others, []);
    });
  }

  test('all problems of a text, and returns no objects', () => {
    assert.equal(complaints(`${manifest('')}---\na: 1\n---\nkind: B\n---\nb: 1\n c: 2`).length, 3);
  });

  test('a problem without quoting a value, which can be secret', () => {
    const broken = [
      'password: hunter2: x',
      'password: @hunter2',
      'password: "hunter2',
      'password: "\\hunter2"',
      'password: [hunter2',
      '- password\nb: hunter2',
      'password: *hunter2',
      'password: !hunter2 x',
      'password: |hunter2\n x',
      "password: 'hunter2' hunter2",
      '%hunter2\n---\nhunter2',
      'kind: {hunter2: hunter2}',
      'apiVersion: v1\nkind: Secret\nmetadata: {name: hunter2/, namespace: hunter2}',
    ];
    for (const text of broken) {
      const [first = ''] = complaints(text);
      assert.match(first, /^a\.yaml: document 1, line \d/, text);
      assert.doesNotMatch(first, /hunter2|no complaint/, text);
    }
  });
});

describe('parseManifests limits', () => {
  test('the expansion of aliases', () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) => `l${level + 1}: &l${level + 1} [${`*l${level}, `.repeat(9)}]`,
    );
    const [first] = complaints(manifest(`l0: &l0 [lol]\n${levels.join('\n')}`));
    assert.match(first ?? '', /aliases \(\*\) expand to more than/);
    const copies = `a: &a ${'x'.repeat(100_000)}\nb: [${'*a, '.repeat(90)}]`;
    assert.match(complaints(manifest(copies))[0] ?? '', /larger than the 3 MiB .* exceeded in b\[/);
  });

  test('the nesting to 100 levels, also for aliases that contain themselves', () => {
    const nested = (levels: number) => manifest(`a: ${'['.repeat(levels)}${']'.repeat(levels)}`);
    assert.equal(read(nested(99)).length, 1);
    assert.match(complaints(nested(101))[0] ?? '', /nested deeper than 100 levels$/);
    assert.match(complaints(nested(5000))[0] ?? '', /nested too deeply$/);
    assert.match(complaints(manifest('a: &a [*a]'))[0] ?? '', /nested deeper than 100 levels$/);
  });
});
