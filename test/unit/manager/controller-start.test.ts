import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Informer } from '../../../src/cache/informer.ts';
import type { Client } from '../../../src/client/client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { runAll } from '../../../src/util/runnable.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import { FakeSource, THINGS } from '../../support/fake-source.ts';

/** A controller of two resources. The server does not serve the second one yet. */
function newController(t: TestContext) {
  const clock = new FakeClock();
  const things = new FakeSource(clock);
  const others = new FakeSource(clock);
  others.missing = true;
  const informers = [things, others].map(
    (source) => new Informer(THINGS, source, { clock, random: () => 0 }),
  );
  const runs: string[] = [];
  const sync = (key: string) => {
    runs.push(key);
    return Promise.resolve(done());
  };
  const unused: Partial<Client> = {};
  const controller = new Controller(
    { client: unused as Client, clock, log: silentLogger },
    { name: 'test', kind: THINGS.kind, sync, concurrency: 1 },
  );
  const [own, other] = informers;
  assert.ok(own && other);
  controller.for(own).watches(other, keyOf);
  const abort = new AbortController();
  let hasEnded = false;
  const start = async () => {
    const running = runAll(
      [...informers, controller].map((part) => (signal: AbortSignal) => part.run(signal)),
      abort.signal,
    ).finally(() => (hasEnded = true));
    t.after(async () => {
      abort.abort();
      await running;
      assert.equal(clock.pending, 0);
    });
    await settle();
  };
  return {
    clock,
    things,
    others,
    controller,
    runs,
    start,
    abort: () => abort.abort(),
    hasEnded: () => hasEnded,
  };
}

// upstream: 92f
test('starts no sync before all caches of the controller have synced', async (t) => {
  const { clock, things, others, controller, runs, start } = newController(t);
  things.put('a');
  await start();
  await clock.advance(20_000);
  things.put('b');
  await clock.advance(20_000);
  assert.equal(controller.queue.length, 2, 'both keys are queued');
  assert.equal(controller.hasSynced, false);
  assert.deepEqual(runs, []);
  others.missing = false;
  await clock.advance(5000);
  assert.equal(controller.hasSynced, true);
  assert.deepEqual(runs, ['default/b', 'default/a'], 'changes come before the initial list');
});

// upstream: 92f
test('ends without a sync if it is stopped before its caches have synced', async (t) => {
  const { clock, things, runs, start, abort, hasEnded } = newController(t);
  things.put('a');
  await start();
  await clock.advance(20_000);
  abort();
  await settle();
  assert.deepEqual(runs, []);
  assert.equal(hasEnded(), true);
});
