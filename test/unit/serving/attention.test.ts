import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { attentionOf } from '../../../src/serving/attention.ts';
import { keysReport } from '../../../src/serving/key-list.ts';
import type {
  ControllerView,
  KeyHistoryView,
  QueuePagesDeps,
  SyncView,
} from '../../../src/serving/controller-view.ts';
import { aPodOf, aCount } from '../../support/objects.ts';

const MINUTE = (minute: number) => `2026-01-01T00:0${minute}:00Z`;

function sync(minute: number, error?: string): SyncView {
  return { startedAt: MINUTE(minute), end: { ...(error && { error }) } } as SyncView;
}

function history(name: string, last: readonly SyncView[], failingSince?: string): KeyHistoryView {
  const failures = last.filter(({ end }) => end?.error !== undefined).length;
  const key = objectKey('default', name);
  return { controller: 'web', key, syncs: last.length, failures, busyMs: 0, failingSince, last };
}

function notReady(name: string, minute: number): KubernetesObject {
  const pod = aPodOf(aCount(), 0, { name });
  const conditions = [
    { type: 'Ready', status: 'False', message: 'waits', lastTransitionTime: MINUTE(minute) },
  ];
  return { ...pod, status: { conditions } } as KubernetesObject;
}

test('failing keys come before objects that are not ready, and the oldest first', () => {
  const objects = [notReady('failing', 1), notReady('recovered', 7), notReady('waiting', 2)];
  const lister = { list: () => objects, get: () => undefined };
  const controller = {
    name: 'web',
    hotLoops: [],
    queue: { snapshot: () => ({ ready: [], delayed: [], processing: [] }) },
    reconciled: 'pods',
    informers: [{ name: 'pods', resource: PODS, lister }],
  } as unknown as ControllerView;
  const { items, counts } = attentionOf(
    [controller],
    [
      history('failing', [sync(3), sync(4, 'a'), sync(5, 'b')], MINUTE(4)),
      history('recovered', [sync(4, 'c'), sync(6)]),
      history('over', [sync(5, 'd'), sync(6)]),
      history('early', [sync(1, 'e')]),
      history('fine', [sync(1)]),
    ],
  );
  assert.deepEqual(
    items.map(({ key, problem, since, message }) => [key, problem, since, message]),
    [
      ['default/early', 'failing', MINUTE(1), 'e'],
      ['default/failing', 'failing', MINUTE(4), 'b'],
      ['default/waiting', 'notReady', MINUTE(2), 'waits'],
      ['default/recovered', 'notReady', MINUTE(7), 'waits'],
      ['default/over', 'recovered', MINUTE(5), 'd'],
    ],
  );
  assert.deepEqual(counts.get('web'), { ready: 0, notReady: 3, stalled: 0, unknown: 0 });
});

test('messages in the list of keys are redacted', () => {
  const deps = {
    controllers: () => [],
    history: { all: () => [history('failing', [sync(1, 'password hunter2')])] },
    redact: (text: string) => text.replace('hunter2', '***'),
  };
  const { count, keys } = keysReport(deps as unknown as QueuePagesDeps);
  assert.deepEqual([count, keys[0]?.message], [1, 'password ***']);
});
