import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Simulation } from '../support/simulation.ts';

const MINUTE_MS = 60_000;
const COUNTS = 250;

describe(`${COUNTS} Counts that are created at once`, () => {
  it('all become ready with a Synced event and without an error; then no further requests are sent', async () => {
    const simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.startDaemon({
      concurrentSyncs: new Map([['count', 10]]),
      resyncPeriodMs: 5 * MINUTE_MS,
    });
    await simulation.pass(1000);
    const names = Array.from({ length: COUNTS }, (_, index) => `count-${index}`);
    await Promise.all(names.map((name) => simulation.applyCount({ count: 1 }, name)));
    const synced = async () =>
      (await simulation.events()).filter((event) => event.startsWith('Synced')).length;
    const written = () => simulation.server.requests.count({ verb: 'create', resource: 'events' });
    // One event for the Pod, one for the Count.
    await simulation.until('all events', async () => written() >= 2 * COUNTS, {
      withinMs: 10 * MINUTE_MS,
      stepMs: 1000,
    });
    await simulation.settle();
    assert.equal(await synced(), COUNTS);
    assert.equal((await simulation.pods()).length, COUNTS);
    // One status update after the creation of the Pod, one after it became ready.
    const statuses = simulation.server.requests.count({ verb: 'patch', resource: 'counts' });
    assert.equal(statuses, 2 * COUNTS, 'two status updates for each Count');
    const state = async () =>
      (await simulation.pods()).map(({ metadata }) => metadata.resourceVersion);
    const before = await state();
    const requests = simulation.server.requests.count();
    await simulation.pass(4 * MINUTE_MS);
    const writes = simulation.server.requests.count() - requests;
    await simulation.pass(6 * MINUTE_MS);
    assert.deepEqual(await state(), before);
    assert.ok(writes < 100, `${writes} requests in four minutes without changes`);
    assert.deepEqual(simulation.errors(), []);
    await simulation.end();
  });
});
