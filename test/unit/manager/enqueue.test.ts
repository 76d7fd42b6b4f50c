import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import type { Pod } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { keyOf, objectKey } from '../../../src/api/object-key.ts';
import { ownerIndexers, OWNER_INDEX, enqueue, mapToOwner } from '../../../src/manager/enqueue.ts';
import { predicates } from '../../../src/manager/predicate.ts';
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

describe('the handler that enqueues the keys of objects', () => {
  const count = aCount();
  const pod = aPodOf(count, 0);

  it('enqueues the key of an object with the cause', () => {
    const { added, sink } = recording();
    const handler = enqueue(COUNTS, sink, keyOf);
    handler.onAdd?.(count, false);
    handler.onDelete?.(count, true);
    assert.deepEqual(added, [
      ['default/test-count', undefined, 'Count default/test-count added'],
      ['default/test-count', undefined, 'Count default/test-count deleted'],
    ]);
  });

  // upstream: 92g
  it('gives keys of the first list and of resyncs a low priority', () => {
    const { added, sink } = recording();
    const handler = enqueue(PODS, sink, mapToOwner(COUNTS));
    handler.onAdd?.(pod, true);
    handler.onUpdate?.(pod, pod);
    handler.onUpdate?.(pod, changed(pod));
    assert.deepEqual(
      added.map(([, priority]) => priority),
      [LOW_PRIORITY, LOW_PRIORITY, undefined],
    );
  });

  it('enqueues the old and the new owner of an owned object whose owner changes', () => {
    const { added, sink } = recording();
    const handler = enqueue(PODS, sink, mapToOwner(COUNTS));
    handler.onUpdate?.(pod, changed(aPodOf(aCount({ name: 'other' }), 0)));
    assert.deepEqual(
      added.map(([key]) => key),
      ['default/test-count', 'default/other'],
    );
  });

  it('enqueues the keys of the old and the new state of an object', () => {
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

  it('names owned objects in detailed causes', () => {
    const { added, sink } = recording();
    let detailed = true;
    const owner = objectKey('default', 'test-count');
    const handler = enqueue(PODS, sink, () => [owner, objectKey('default', 'friend')], {
      detailed: () => detailed,
      isOwned: (key, object) => mapToOwner(COUNTS)(object) === key,
    });
    handler.onDelete?.(pod, true);
    detailed = false;
    handler.onDelete?.(pod, true);
    assert.deepEqual(
      added.map(([key, , cause]) => `${key}: ${cause}`),
      [
        'default/test-count: owned Pod default/test-count-0 deleted',
        'default/friend: Pod default/test-count-0 deleted',
        'default/test-count: Pod default/test-count-0 deleted',
        'default/friend: Pod default/test-count-0 deleted',
      ],
    );
  });

  it('names changed fields in detailed causes', () => {
    const { added, sink } = recording();
    let reads = 0;
    let detailed = true;
    const handler = enqueue(PODS, sink, mapToOwner(COUNTS), {
      detailed: () => {
        reads++;
        return detailed;
      },
    });
    const { labels: _labels, ...metadata } = pod.metadata;
    const plain = { ...pod, metadata };
    const labels = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, '1']));
    handler.onUpdate?.(pod, changed({ ...pod, status: { ...pod.status, phase: 'Failed' } }));
    handler.onUpdate?.(plain, changed({ ...pod, metadata: { ...metadata, labels } }));
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
    assert.ok((added.pop()?.[2]?.length ?? 0) < 400, 'long names are cut');
    detailed = false;
    handler.onUpdate?.(pod, changed({ ...pod, status: { phase: 'Failed' } }));
    assert.deepEqual(
      added.map(([, , cause]) => cause?.replace('Pod default/test-count-0 ', '')),
      [
        'changed: .status.phase',
        'changed: .metadata.labels',
        'changed: .metadata.labels.a, .metadata.labels.b, .metadata.labels.c, .metadata.labels.d, .metadata.labels.e, …',
        'changed: managedFields only',
        'replaced by another object of its name',
        'changed',
      ],
    );
    const before = reads;
    const { ownerReferences: _, ...orphaned } = metadata;
    handler.onUpdate?.({ ...pod, metadata: orphaned }, changed({ ...pod, metadata: orphaned }));
    assert.equal(reads, before, 'not for an object without keys');
  });

  it('reports each change of a key before the key is enqueued, and no resync', () => {
    const { added, sink } = recording();
    const reported: unknown[] = [];
    const handler = enqueue(PODS, sink, mapToOwner(COUNTS), {
      onChange: (key, before, after) =>
        reported.push([
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
    assert.deepEqual(reported, [
      ['default/test-count', undefined, '1', 0],
      ['default/test-count', '1', '2', 2],
      ['default/test-count', '1', undefined, 3],
      ['default/other', '1', '2', 4],
      ['default/test-count', '1', undefined, 5],
    ]);
  });

  it('maps no object to an owner of another kind or group', () => {
    const toCount = mapToOwner(COUNTS);
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

  it('enqueues and reports nothing for events that a predicate rejects', () => {
    const { added, sink } = recording();
    const reported: string[] = [];
    const handler = enqueue(PODS, sink, mapToOwner(COUNTS), {
      predicates: [predicates.resourceVersionChanged, { delete: () => false }],
      onChange: (key) => reported.push(key),
    });
    handler.onUpdate?.(pod, pod);
    handler.onDelete?.(pod, true);
    assert.deepEqual([added, reported], [[], []]);
    handler.onAdd?.(pod, true);
    handler.onUpdate?.(pod, changed(pod));
    assert.deepEqual([added.length, reported.length], [2, 2]);
  });

  it('treats an update with another uid as a deletion and a creation', () => {
    const { added, sink } = recording();
    const handler = enqueue(COUNTS, sink, keyOf, { predicates: [predicates.generationChanged] });
    const successor = { ...count, metadata: { ...count.metadata, uid: 'x', resourceVersion: '2' } };
    handler.onUpdate?.(count, successor);
    assert.equal(added.length, 1);
    const rejecting = enqueue(COUNTS, sink, keyOf, {
      predicates: [{ create: () => false, delete: () => false }],
    });
    rejecting.onUpdate?.(count, successor);
    assert.equal(added.length, 1);
  });

  it('treats another state with the same resourceVersion as a deletion and a creation', () => {
    const { added, sink } = recording();
    const handler = enqueue(PODS, sink, mapToOwner(COUNTS), {
      predicates: [predicates.resourceVersionChanged],
    });
    const restored = aPodOf(aCount({ name: 'other' }), 0);
    const { uid, resourceVersion } = pod.metadata;
    handler.onUpdate?.(pod, {
      ...restored,
      metadata: { ...restored.metadata, uid, resourceVersion },
    });
    assert.deepEqual(
      added.map(([key, priority]) => [key, priority]),
      [
        ['default/test-count', undefined],
        ['default/other', undefined],
      ],
    );
  });

  it('indexes owned objects by the uid of their controller owner', () => {
    const indexOf = ownerIndexers[OWNER_INDEX]!;
    assert.deepEqual(indexOf(pod), [count.metadata.uid]);
    assert.deepEqual(indexOf(count), []);
  });
});
