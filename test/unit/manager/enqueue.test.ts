import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import type { Pod } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import {
  byController,
  CONTROLLER_INDEX,
  enqueue,
  toController,
  toItself,
} from '../../../src/manager/enqueue.ts';
import { LOW_PRIORITY } from '../../../src/workqueue/work-queue.ts';
import { aCount, aPodOf } from '../../support/objects.ts';

function recording() {
  const added: [key: string, priority: number | undefined, cause: string | undefined][] = [];
  const sink = {
    add: (key: string, { priority, cause }: { priority?: number; cause?: string } = {}) =>
      void added.push([key, priority, cause]),
  };
  return { added, sink };
}

const changed = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, resourceVersion: '2' },
});

describe('the handler that turns objects into keys', () => {
  const count = aCount();
  const pod = aPodOf(count, 0);

  it('queues an object for itself, and says why', () => {
    const { added, sink } = recording();
    const handler = enqueue(COUNTS, sink, toItself);
    handler.onAdd?.(count, false);
    handler.onDelete?.(count, true);
    assert.deepEqual(added, [
      ['default/test-count', undefined, 'Count default/test-count added'],
      ['default/test-count', undefined, 'Count default/test-count deleted'],
    ]);
  });

  it('lets keys of the first list and of resyncs yield to fresh changes', () => {
    const { added, sink } = recording();
    const handler = enqueue(PODS, sink, toController(COUNTS));
    handler.onAdd?.(pod, true);
    handler.onUpdate?.(pod, pod);
    handler.onUpdate?.(pod, changed(pod));
    assert.deepEqual(
      added.map(([, priority]) => priority),
      [LOW_PRIORITY, LOW_PRIORITY, undefined],
    );
  });

  it('wakes the old owner and the new one when a child changes hands', () => {
    const { added, sink } = recording();
    const handler = enqueue(PODS, sink, toController(COUNTS));
    handler.onUpdate?.(pod, changed(aPodOf(aCount({ name: 'other' }), 0)));
    assert.deepEqual(
      added.map(([key]) => key),
      ['default/test-count', 'default/other'],
    );
  });

  it('wakes whom an object concerned before, however that is found out', () => {
    const { added, sink } = recording();
    const toLabelled = ({ metadata }: { metadata: { labels?: Record<string, string> } }) =>
      (metadata.labels?.['for'] ?? '').split('.').map((name) => objectKey('default', name));
    const labelled = (names: string, resourceVersion: string): Pod => ({
      ...pod,
      metadata: { ...pod.metadata, resourceVersion, labels: { for: names } },
    });
    const handler = enqueue(PODS, sink, toLabelled);
    handler.onUpdate?.(labelled('a.b', '1'), labelled('b.c', '2'));
    assert.deepEqual(
      added.map(([key, , cause]) => `${key} ${cause}`),
      [
        'default/a Pod default/test-count-0 left',
        'default/b Pod default/test-count-0 changed',
        'default/c Pod default/test-count-0 changed',
      ],
    );
  });

  it('ignores children of other kinds and of the same kind in another group', () => {
    const toCount = toController(COUNTS);
    const [reference] = pod.metadata.ownerReferences ?? [];
    const owned = (overrides: object): Pod => ({
      ...pod,
      metadata: { ...pod.metadata, ownerReferences: [{ ...reference!, ...overrides }] },
    });
    assert.equal(toCount(owned({})), 'default/test-count');
    assert.equal(toCount(owned({ apiVersion: 'demo.mark8s.io/v2' })), 'default/test-count');
    assert.equal(toCount(owned({ kind: 'Foo' })), undefined);
    assert.equal(toCount(owned({ apiVersion: 'example.com/v1' })), undefined);
    assert.equal(toCount(owned({ apiVersion: 'v1' })), undefined);
    assert.equal(toCount(owned({ controller: false })), undefined);
  });

  it('indexes children by the uid of their controller', () => {
    const indexOf = byController[CONTROLLER_INDEX]!;
    assert.deepEqual(indexOf(pod), [count.metadata.uid]);
    assert.deepEqual(indexOf(count), []);
  });
});
