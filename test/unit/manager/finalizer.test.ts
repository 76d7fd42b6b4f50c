import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { NAMESPACES } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { Client } from '../../../src/client/client.ts';
import { dryRunClient } from '../../../src/client/dry-run.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { Finalizer } from '../../../src/manager/finalizer.ts';
import type { FinalizedSync } from '../../../src/manager/finalizer.ts';
import { predicates } from '../../../src/manager/predicate.ts';
import { runControllers } from '../../../src/manager/run-controllers.ts';
import type { ControllerKit } from '../../../src/manager/run-controllers.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
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
  const { bench, calls, sync, finalizers } = await setUp();
  assert.equal((await sync()).kind, 'requeueAfter');
  assert.deepEqual([calls, await finalizers()], [[], [NAME]]);
  assert.deepEqual(await sync(), requeueAfter(1000));
  assert.deepEqual(calls, ['apply']);
  assert.equal(bench.writes.length, 1);
});

test('does not apply an object if the server does not store the finalizer', async () => {
  const { bench, finalizer } = await setUp();
  const client = new HttpClient({
    handler: (request) => bench.server.handler({ ...request, method: 'GET' }),
    server: 'https://test',
  });
  const object = await bench.get(COUNTS, AT.name);
  const steps = { apply: () => assert.fail(), cleanUp: () => assert.fail() };
  const sync = finalizer.sync(object, { ...bench.context, client }, steps);
  await assert.rejects(sync, /did not store the finalizer "test.example\/cleanup" of Count/);
});

/** Starts a controller that applies Namespaces, and ignores updates that do not change the generation. */
function startController(client: Client, clock: FakeClock, applied: string[]) {
  const finalizer = new Finalizer(NAMESPACES, NAME, 'test');
  const controllers = (kit: ControllerKit) => {
    const namespaces = kit.informers.for(NAMESPACES, { labelSelector: 'team=a' });
    const controller = new Controller(kit, {
      name: 'test',
      kind: 'Namespace',
      sync: async (key, context) => {
        const namespace = namespaces.lister.get(key);
        if (!namespace) return done();
        const apply = async () => {
          applied.push(`${key} ${namespace.metadata.finalizers?.join()}`);
          return done();
        };
        return finalizer.sync(namespace, context, { apply, cleanUp: async () => undefined });
      },
    });
    return [controller.for(namespaces, { predicates: [predicates.generationChanged] })];
  };
  const stop = new AbortController();
  const running = runControllers({ client, clock, controllers }, stop.signal);
  return async () => {
    stop.abort();
    await clock.advance(30_000);
    await running;
  };
}

const NEW_NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shop', labels: { team: 'a' } },
};

function server() {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  return { clock, client: new HttpClient({ handler, server: 'https://test', clock }) };
}

test('applies a new object whose updates a predicate rejects', async () => {
  const { clock, client } = server();
  const applied: string[] = [];
  const stop = startController(client, clock, applied);
  await client.create(NAMESPACES, NEW_NAMESPACE);
  await clock.advance(60_000);
  await stop();
  assert.deepEqual(applied, [`shop ${NAME}`]);
});

test('applies an object after a restart if the program ended after the write of the finalizer', async () => {
  const { clock, client } = server();
  const { metadata } = NEW_NAMESPACE;
  const object = { ...NEW_NAMESPACE, metadata: { ...metadata, finalizers: [NAME] } };
  await client.create(NAMESPACES, object);
  const applied: string[] = [];
  const stop = startController(client, clock, applied);
  await clock.advance(60_000);
  await stop();
  assert.deepEqual(applied, [`shop ${NAME}`]);
});

test('a dry run logs the new finalizer once, and applies the object', async () => {
  const { clock, client } = server();
  const { log, lines } = recordingLogger();
  const applied: string[] = [];
  const stop = startController(dryRunClient(client, log), clock, applied);
  await client.create(NAMESPACES, NEW_NAMESPACE);
  await clock.advance(60_000);
  await stop();
  assert.deepEqual([applied, lines.length], [['shop undefined'], 1]);
  assert.equal((await client.get(NAMESPACES, { name: 'shop' })).metadata.finalizers, undefined);
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

test('waits for the garbage collector when owned objects are orphaned', async () => {
  const { calls, sync, remove, finalizers } = await setUp();
  await sync();
  await remove('Orphan');
  assert.equal((await sync()).kind, 'requeueAfter');
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
