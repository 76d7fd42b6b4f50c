import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ObjectGuard } from '../../../src/cache/object-guard.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { thing } from '../../support/fake-source.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

function newFixture() {
  const { log, lines } = recordingLogger();
  let refused = 0;
  const metrics = { ...noInformerMetrics, objectRefused: () => refused++ };
  const guard = new ObjectGuard(new FakeClock(), log, metrics);
  return { guard, lines, refused: () => refused };
}

const metadata = { name: 'a', resourceVersion: '1' };

for (const [name, object] of [
  ['a Table', { apiVersion: 'meta.k8s.io/v1', kind: 'Table', metadata, rows: [] }],
  ['a Table that claims another version', { apiVersion: 'v1', kind: 'Table', metadata }],
  ['nothing', null],
  ['a number', 7],
  ['a list', [thing('a')]],
  ['an object without metadata', { kind: 'Thing' }],
  ['a Status', { kind: 'Status', metadata: {}, status: 'Failure', code: 500 }],
  ['an object without a name', { kind: 'Thing', metadata: { resourceVersion: '1' } }],
  ['an object with an empty name', { kind: 'Thing', metadata: { ...metadata, name: '' } }],
  ['an object whose name is a number', { kind: 'Thing', metadata: { ...metadata, name: 7 } }],
  [
    'an object whose namespace is no text',
    { kind: 'Thing', metadata: { ...metadata, namespace: {} } },
  ],
  [
    'an object with an empty resourceVersion',
    { kind: 'Thing', metadata: { ...metadata, resourceVersion: '' } },
  ],
  ['an object without a resourceVersion', { kind: 'Thing', metadata: { name: 'a' } }],
] as const) {
  // upstream: 27, 46, 54
  test(`rejects, counts and logs ${name}`, () => {
    const { guard, lines, refused } = newFixture();
    assert.equal(guard.admits(object), false);
    assert.equal(refused(), 1);
    assert.equal(lines.length, 1);
  });
}

for (const [name, object] of [
  ['an object in a namespace', thing('demo/a')],
  ['an object of the whole cluster', { kind: 'Node', metadata }],
  ['an object that does not say its kind', { metadata }],
] as const) {
  test(`admits ${name} without a log line`, () => {
    const { guard, lines, refused } = newFixture();
    assert.equal(guard.admits(object), true);
    assert.deepEqual([refused(), lines.length], [0, 0]);
  });
}
