import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { PODS, SERVICES } from '../../../src/api/builtin.ts';
import type { Pod } from '../../../src/api/builtin.ts';
import type { Draft } from '../../../src/api/object.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { toItself } from '../../../src/manager/enqueue.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { runAll } from '../../../src/util/run-all.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const pod = (name: string): Draft<Pod> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'default', name },
  spec: { containers: [{ name: 'app', image: 'nginx' }] },
});

/** A controller of Pods that also watches Services; their list is held back until `open`. */
async function newWorld(t: TestContext, concurrency: number) {
  const clock = new FakeClock();
  const { log } = recordingLogger();
  const server = new ApiServer({ clock });
  const services = new Deferred();
  const client = new HttpClient({
    clock,
    server: 'https://simulated',
    handler: async (request) => {
      if (request.path.startsWith('/api/v1/services')) await opened(request.signal);
      return server.handler(request);
    },
  });
  const opened = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      void services.promise.then(resolve);
    });
  const runs: string[] = [];
  const informers = new InformerSet(client, { clock });
  const sync = (key: string) => {
    runs.push(key);
    return Promise.resolve(done());
  };
  const controller = new Controller(
    { client, clock, log },
    { name: 'test', kind: PODS.kind, sync, concurrency },
  )
    .for(informers.for(PODS))
    .watches(informers.for(SERVICES), toItself);
  const abort = new AbortController();
  let hasEnded = false;
  const start = () => {
    const running = runAll(
      [(signal) => informers.run(signal), (signal) => controller.run(signal)],
      abort.signal,
    ).finally(() => (hasEnded = true));
    t.after(async () => {
      abort.abort();
      await clock.advance(1000);
      await running;
    });
  };
  return {
    clock,
    client,
    controller,
    runs,
    start,
    open: () => services.resolve(),
    abort: () => abort.abort(),
    hasEnded: () => hasEnded,
  };
}

test('no key runs before every cache that its sync may read is there', async (t) => {
  const { clock, client, controller, runs, start, open } = await newWorld(t, 1);
  await client.create(PODS, pod('a'));
  start();
  await clock.advance(5000);
  await client.create(PODS, pod('b'));
  await clock.advance(5000);
  assert.equal(controller.queue.length, 2, 'both wait');
  assert.equal(controller.hasSynced, false);
  assert.deepEqual(runs, []);
  open();
  await clock.advance(100);
  assert.equal(controller.hasSynced, true);
  assert.deepEqual(runs, ['default/b', 'default/a'], 'what has changed goes first');
});

test('a controller that is stopped before its caches are there has run nothing, and ends', async (t) => {
  const { clock, client, runs, start, abort, hasEnded } = await newWorld(t, 1);
  await client.create(PODS, pod('a'));
  start();
  await clock.advance(5000);
  abort();
  await clock.advance(1000);
  assert.deepEqual(runs, []);
  assert.equal(hasEnded(), true);
});
