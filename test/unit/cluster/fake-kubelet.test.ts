import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { Simulation } from '../../support/simulation.ts';

describe('the simulated kubelet', () => {
  let world: Simulation;

  beforeEach(async () => {
    world = new Simulation();
    world.startCluster();
    await world.pass(1000);
  });
  afterEach(() => world.end());

  const WEB = { namespace: 'default', name: 'web' };
  const create = () =>
    world.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...WEB },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  const addresses = async () => {
    const { status } = await world.client.get(PODS, WEB);
    return status?.podIPs?.map(({ ip }) => ip) ?? [];
  };

  it('keeps the address of a Pod if the response to the status update is lost', async () => {
    const { faults } = world.server;
    let times = 0;
    faults.beforeRequest(({ info }) => {
      if (info?.resource !== 'pods' || info.subresource !== 'status') return undefined;
      if (times++ > 0) return undefined;
      // The event of the write is delayed too.
      faults.dropWatches();
      faults.failNext({ resource: 'pods', verb: 'watch' }, 503, { times: 6 });
      return 'lostAnswer';
    });
    await create();
    await world.until('the status is sent again', async () => times >= 2);
    await world.pass(60_000);
    assert.equal((await addresses()).length, 1);
  });

  it('assigns another address to a new Pod with the same name', async () => {
    await create();
    await world.until('an address', async () => (await addresses()).length > 0);
    const [first] = await addresses();
    await world.client.delete(PODS, WEB, { gracePeriodSeconds: 0 });
    await create();
    await world.until('an address', async () => (await addresses()).length > 0);
    assert.notDeepEqual(await addresses(), [first]);
  });
});
