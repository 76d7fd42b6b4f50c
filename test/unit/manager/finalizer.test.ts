import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { Finalizer } from '../../../src/manager/finalizer.ts';
import type { FinalizedSync } from '../../../src/manager/finalizer.ts';
import { done, requeueAfter } from '../../../src/workqueue/outcome.ts';
import { NAMESPACE, SyncBench } from '../../support/sync-bench.ts';
import { countDraft } from '../../support/test-cluster.ts';

const AT = { namespace: NAMESPACE, name: 'test-count' };
const NAME = 'test.example/cleanup';

async function setUp() {
  const bench = await SyncBench.with(COUNTS);
  await bench.create(COUNTS, countDraft(NAMESPACE));
  const finalizer = new Finalizer(COUNTS, NAME, 'test');
  const calls: string[] = [];
  /** Syncs the live object once. */
  const sync = async (cleanUp: FinalizedSync['cleanUp'] = async () => undefined) => {
    const object = await bench.get(COUNTS, AT.name);
    return finalizer.sync(object, bench.context, {
      apply: async () => {
        calls.push('apply');
        return requeueAfter(1000);
      },
      cleanUp: () => {
        calls.push('cleanUp');
        return cleanUp();
      },
    });
  };
  const remove = (propagationPolicy?: 'Orphan') =>
    bench.client.delete(COUNTS, AT, { ...(propagationPolicy && { propagationPolicy }) });
  const finalizers = async () => (await bench.get(COUNTS, AT.name)).metadata.finalizers;
  const isGone = () =>
    bench.get(COUNTS, AT.name).then(
      () => false,
      (error: unknown) => isApiError(error, 'notFound'),
    );
  return { bench, finalizer, calls, sync, remove, finalizers, isGone };
}

test('writes the finalizer before the first apply', async () => {
  const { calls, sync, finalizers } = await setUp();
  assert.deepEqual(await sync(), done());
  assert.deepEqual([calls, await finalizers()], [[], [NAME]]);
  assert.deepEqual(await sync(), requeueAfter(1000));
  assert.deepEqual(calls, ['apply']);
});

test('keeps the finalizer until nothing is left to clean up', async () => {
  const { calls, sync, remove, finalizers, isGone } = await setUp();
  await sync();
  await remove();
  assert.deepEqual(await sync(async () => requeueAfter(5)), requeueAfter(5));
  await assert.rejects(
    sync(() => Promise.reject(new Error('not reachable'))),
    /not reachable/,
  );
  assert.deepEqual(await finalizers(), [NAME]);
  assert.deepEqual(await sync(), done());
  assert.deepEqual(calls, ['cleanUp', 'cleanUp', 'cleanUp']);
  assert.ok(await isGone());
});

test('does not touch an object that was deleted before its first sync', async () => {
  const { bench, calls, sync, remove } = await setUp();
  const body = { metadata: { finalizers: ['other.example/keep'] } };
  await bench.client.patch(COUNTS, AT, { type: 'merge', body });
  await remove();
  const writes = bench.writes.length;
  assert.deepEqual(await sync(), done());
  assert.deepEqual(calls, []);
  assert.equal(bench.writes.length, writes);
});

test('waits for the garbage collector when dependents are orphaned', async () => {
  const { calls, sync, remove, finalizers } = await setUp();
  await sync();
  await remove('Orphan');
  assert.deepEqual(await sync(), done());
  assert.deepEqual(calls, []);
  assert.deepEqual((await finalizers())?.toSorted(), ['orphan', NAME].toSorted());
});

test('does not remove finalizers that another client has added since', async () => {
  const { bench, finalizer, sync, remove, finalizers } = await setUp();
  await sync();
  const stale = await bench.get(COUNTS, AT.name);
  const body = { metadata: { finalizers: [NAME, 'other.example/keep'] } };
  await bench.client.patch(COUNTS, AT, { type: 'merge', body });
  await remove();
  const deleted = { ...stale, metadata: { ...stale.metadata, deletionTimestamp: 'now' } };
  const steps = { apply: () => assert.fail(), cleanUp: async () => undefined };
  await assert.rejects(finalizer.sync(deleted, bench.context, steps), (error) =>
    isApiError(error, 'conflict'),
  );
  assert.deepEqual(await finalizers(), [NAME, 'other.example/keep']);
  await sync();
  assert.deepEqual(await finalizers(), ['other.example/keep']);
});

test('an object that is gone needs no write', async () => {
  const { bench, finalizer, sync, isGone, remove } = await setUp();
  await sync();
  const stale = await bench.get(COUNTS, AT.name);
  await remove();
  await sync();
  assert.ok(await isGone());
  const deleted = { ...stale, metadata: { ...stale.metadata, deletionTimestamp: 'now' } };
  const steps = { apply: () => assert.fail(), cleanUp: async () => undefined };
  assert.deepEqual(await finalizer.sync(deleted, bench.context, steps), done());
});

test('sends no write after the sync was aborted', async () => {
  const { bench, finalizer, finalizers } = await setUp();
  const object = await bench.get(COUNTS, AT.name);
  const context = { ...bench.context, signal: AbortSignal.abort(new Error('stopped')) };
  const steps = { apply: () => assert.fail(), cleanUp: () => assert.fail() };
  await assert.rejects(finalizer.sync(object, context, steps), /stopped/);
  assert.equal(await finalizers(), undefined);
});
