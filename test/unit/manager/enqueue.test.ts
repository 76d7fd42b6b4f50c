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

  // upstream: 92g
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

  it('says what is a child, as long as somebody reads it', () => {
    const { added, sink } = recording();
    let detailed = true;
    const owner = objectKey('default', 'test-count');
    const handler = enqueue(PODS, sink, () => [owner, objectKey('default', 'friend')], {
      detailed: () => detailed,
      isChild: (key, object) => toController(COUNTS)(object) === key,
    });
    handler.onDelete?.(pod, true);
    detailed = false;
    handler.onDelete?.(pod, true);
    assert.deepEqual(
      added.map(([key, , cause]) => `${key}: ${cause}`),
      [
        'default/test-count: child Pod default/test-count-0 deleted',
        'default/friend: Pod default/test-count-0 deleted',
        'default/test-count: Pod default/test-count-0 deleted',
        'default/friend: Pod default/test-count-0 deleted',
      ],
    );
  });

  it('says what changed, as long as somebody reads it', () => {
    const { added, sink } = recording();
    let reads = 0;
    let detailed = true;
    const handler = enqueue(PODS, sink, toController(COUNTS), {
      detailed: () => {
        reads++;
        return detailed;
      },
    });
    const { metadata } = pod;
    const labels = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, '1']));
    handler.onUpdate?.(pod, changed({ ...pod, status: { ...pod.status, phase: 'Failed' } }));
    handler.onUpdate?.(pod, changed({ ...pod, metadata: { ...metadata, labels } }));
    handler.onUpdate?.(
      { ...pod, metadata: { ...metadata, labels: {} } },
      {
        ...pod,
        metadata: { ...metadata, labels, resourceVersion: '2' },
      },
    );
    handler.onUpdate?.(pod, changed(pod));
    handler.onUpdate?.(pod, { ...pod, metadata: { ...metadata, uid: 'x', resourceVersion: '3' } });
    const long = Object.fromEntries(['a', 'b', 'c'].map((name) => [name.repeat(200), '1']));
    handler.onUpdate?.(
      { ...pod, metadata: { ...metadata, annotations: {} } },
      changed({ ...pod, metadata: { ...metadata, annotations: long } }),
    );
    assert.ok((added.pop()?.[2]?.length ?? 0) < 400, 'names are as long as their authors like');
    detailed = false;
    handler.onUpdate?.(pod, changed({ ...pod, status: { phase: 'Failed' } }));
    assert.deepEqual(
      added.map(([, , cause]) => cause?.replace('Pod default/test-count-0 ', '')),
      [
        'changed: .status.phase',
        'changed: .metadata.labels',
        'changed: .metadata.labels.a, .metadata.labels.b, .metadata.labels.c, .metadata.labels.d, .metadata.labels.e, …',
        'changed: nothing but who wrote it',
        'replaced by another of its name',
        'changed',
      ],
    );
    const before = reads;
    const { ownerReferences: _, ...orphaned } = metadata;
    handler.onUpdate?.({ ...pod, metadata: orphaned }, changed({ ...pod, metadata: orphaned }));
    assert.equal(reads, before, 'not for what concerns nobody');
  });

  it('tells of each change that concerns a key before the key is added, and of no resync', () => {
    const { added, sink } = recording();
    const told: unknown[] = [];
    const handler = enqueue(PODS, sink, toController(COUNTS), {
      onChange: (key, before, after) =>
        told.push([
          key,
          before?.metadata.resourceVersion,
          after?.metadata.resourceVersion,
          added.length,
        ]),
    });
    handler.onAdd?.(pod, true);
    handler.onUpdate?.(pod, pod);
    handler.onUpdate?.(pod, changed(pod));
    handler.onUpdate?.(pod, changed(aPodOf(aCount({ name: 'other' }), 0)));
    handler.onDelete?.(pod, true);
    assert.deepEqual(told, [
      ['default/test-count', undefined, '1', 0],
      ['default/test-count', '1', '2', 2],
      ['default/test-count', '1', undefined, 3],
      ['default/other', '1', '2', 4],
      ['default/test-count', '1', undefined, 5],
    ]);
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
