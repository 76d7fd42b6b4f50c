import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Simulation } from '../support/simulation.ts';

const MINUTE_MS = 60_000;

describe('2,000 Counts that are created at once', () => {
  it('all become ready with a Synced event and without an error; then no further requests are sent', async () => {
    const world = new Simulation();
    world.startCluster();
    await world.installCrd();
    world.startDaemon({ concurrentSyncs: new Map([['count', 10]]), resyncPeriodMs: 5 * MINUTE_MS });
    await world.pass(1000);
    const names = Array.from({ length: 2000 }, (_, index) => `count-${index}`);
    await Promise.all(names.map((name) => world.applyCount({ count: 1 }, name)));
    const synced = async () =>
      (await world.events()).filter((event) => event.startsWith('Synced')).length;
    const written = () => world.server.requests.count({ verb: 'create', resource: 'events' });
    // One event for the Pod, one for the Count.
    await world.until('4,000 events', async () => written() >= 4000, {
      withinMs: 10 * MINUTE_MS,
      stepMs: 1000,
    });
    await world.settle();
    assert.equal(await synced(), 2000);
    assert.equal((await world.pods()).length, 2000);
    // One status update after the creation of the Pod, one after it became ready.
    const statuses = world.server.requests.count({ verb: 'patch', resource: 'counts' });
    assert.equal(statuses, 4000, 'two status updates for each Count');
    const state = async () => (await world.pods()).map(({ metadata }) => metadata.resourceVersion);
    const before = await state();
    const requests = world.server.requests.count();
    await world.pass(4 * MINUTE_MS);
    const writes = world.server.requests.count() - requests;
    await world.pass(6 * MINUTE_MS);
    assert.deepEqual(await state(), before);
    assert.ok(writes < 100, `${writes} requests in four minutes without changes`);
    assert.deepEqual(world.errors(), []);
    await world.end();
  });
});
