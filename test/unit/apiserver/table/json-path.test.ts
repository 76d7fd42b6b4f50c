import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluateJsonPath, parseJsonPath } from '../../../../src/apiserver/table/json-path.ts';

const object = {
  metadata: { name: 'web', labels: { app: 'nginx', 'app.kubernetes.io/name': 'web' } },
  spec: { replicas: 3, ports: [{ port: 80 }, { port: 443 }, { port: 8080 }], paused: false },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', weight: 2 },
      { type: 'Stalled', status: 'False', weight: 1 },
      { type: 'odd ] )', status: 'Unknown' },
    ],
    empty: [],
    none: null,
  },
};

const found: readonly [path: string, values: readonly unknown[] | undefined][] = [
  ['.metadata.name', ['web']],
  ['$.metadata.name', ['web']],
  ['.metadata.labels.app', ['nginx']],
  [".metadata.labels['app']", ['nginx']],
  [String.raw`.metadata.labels.app\.kubernetes\.io/name`, ['web']],
  [String.raw`.metadata.labels['app\.kubernetes\.io/name']`, ['web']],
  ['.spec.replicas', [3]],
  ['.spec.paused', [false]],
  ['.spec.missing', []],
  ['.spec.missing.more', []],
  ['.spec.replicas.more', []],
  ['.status.none.more', []],
  ['.spec.ports[0].port', [80]],
  ['.spec.ports[-1].port', [8080]],
  ['.spec.ports[-2].port', [443]],
  ['.spec.ports[1:].port', [443, 8080]],
  ['.spec.ports[0:2].port', [80, 443]],
  ['.spec.ports[::2].port', [80, 8080]],
  ['.spec.ports[:-1].port', [80, 443]],
  ['.spec.ports[*].port', [80, 443, 8080]],
  ['.spec.ports[0,2].port', [80, 8080]],
  ['.spec.ports[9].port', undefined],
  ['.status.empty[0]', undefined],
  ['.status.empty[*]', []],
  ['.spec[0]', undefined],
  ['.metadata.labels.*', ['nginx', 'web']],
  ['..port', [80, 443, 8080]],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type=='Ready')].status", ['True']],
  ['.status.conditions[?(@.type == "Ready")].status', ['True']],
  ['.status.conditions[?(@.type!="Ready")].status', ['False', 'Unknown']],
  ['.status.conditions[?(@.type=="odd ] )")].status', ['Unknown']],
  ['.status.conditions[?(@.type=="Absent")].status', []],
  ['.status.conditions[?(@.weight)].type', ['Ready', 'Stalled']],
  ['.status.conditions[?(@.weight>1)].type', ['Ready']],
  ['.status.conditions[?(@.weight<=1)].type', ['Stalled']],
  ['.spec.ports[?(@.port>=443)].port', [443, 8080]],
  ['.status.conditions[?(@.weight=="2")].type', undefined],
  ['.spec[?(@.a=="b")]', undefined],
  ['.spec.ports[0:1:0]', undefined],
  ['.spec.ports[?(@.port=80)]', undefined],
  ['.spec.ports[?(@.missing=80)]', []],
  ['.spec.ports[?(@.port==80)].port', [80]],
  ['.spec.ports[?(@.port==80.0)].port', undefined],
  ['.spec.ports[?(@.port==word)].port', undefined],
  ['.spec.ports[?(@.port word)].port', [80, 443, 8080]],
  [String.raw`.status.conditions[?(@.type=="\x52ead\u0079")].status`, ['True']],
  ['.metadata.name.*', [119, 101, 98]],
  ['.__proto__', []],
  ['.constructor.name', []],
];

for (const [path, values] of found) {
  test(`${path} selects ${values ? JSON.stringify(values) : 'nothing because it does not fit'}`, () => {
    assert.deepEqual(evaluateJsonPath(parseJsonPath(path), object), values);
  });
}

for (const path of [
  '.a[',
  '.a[x]',
  '..*',
  '.a\\',
  String.raw`.a[?(@.b=="\q")]`,
  '.a[?(@.b=="c"]',
  '.a[?(@.b=="c)]',
  '.a[?(@.b=~"c")]',
  '.a[?(@.b=="c")',
  '....a',
  '}{.a',
]) {
  test(`rejects ${path}`, () => {
    assert.throws(() => parseJsonPath(path), SyntaxError);
  });
}

test('stops a path that visits too many values', () => {
  const wide = { list: Array.from({ length: 150_000 }, () => 0) };
  for (const path of ['.list[*]', '..missing']) {
    // Not `equal`, because a failure would print the whole value.
    assert.ok(evaluateJsonPath(parseJsonPath(path), wide) === undefined, path);
  }
});

test('evaluates deep nesting without recursion', () => {
  let deep: unknown = 'end';
  for (let depth = 0; depth < 20_000; depth++) deep = { deep };
  assert.equal(evaluateJsonPath(parseJsonPath('..missing'), deep)?.length, 0);
});
