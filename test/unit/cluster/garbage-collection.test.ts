import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PODS, SERVICES } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Cluster } from '../../../src/cluster/cluster.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { silentLogger } from '../../../src/util/logger.ts';

const NAMESPACE = 'default';

/** A Service and its Pod, in a cluster that may be deaf to Services, and collects garbage. */
async function shop() {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const clientOver = (handler: HttpHandler) =>
    new HttpClient({ handler, server: 'https://test', clock });
  const client = clientOver(server.handler);
  let isDeaf = false;
  const deaf = clientOver((request) =>
    isDeaf && /\/services\?/.test(request.path)
      ? Promise.reject(new Error('connection refused'))
      : server.handler(request),
  );
  const stopping = new AbortController();
  const running = new Cluster(
    { client: deaf, clock, log: silentLogger },
    { kubelet: false, workloads: false },
  ).run(stopping.signal);
  await clock.advance(1000);
  const createOwner = () =>
    client.create(SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: NAMESPACE, name: 'owner' },
      spec: { ports: [{ port: 80 }] },
    });
  return {
    client,
    clock,
    deafen() {
      isDeaf = true;
      server.faults.dropWatches();
    },
    /** As after a new process of the server: what was before is not told any more. */
    undeafen() {
      server.faults.expireHistory();
      isDeaf = false;
    },
    async createBoth() {
      const { metadata } = await createOwner();
      const owner = { apiVersion: 'v1', kind: 'Service', name: 'owner', uid: metadata.uid };
      await client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { namespace: NAMESPACE, name: 'owned', ownerReferences: [owner] },
        spec: { containers: [{ name: 'app', image: 'nginx' }] },
      });
    },
    createOwner,
    deleteOwner: () => client.delete(SERVICES, { namespace: NAMESPACE, name: 'owner' }),
    pods: async () =>
      (await client.list(PODS, { namespace: NAMESPACE })).items.map(
        ({ metadata }) => metadata.name,
      ),
    async end() {
      stopping.abort();
      await clock.advance(1000);
      await running;
    },
  };
}

it('an owner that came and went unheard takes what it owns with it', async () => {
  const world = await shop();
  world.deafen();
  // Its caches of other kinds are soon there again.
  await world.clock.advance(10_000);
  await world.createBoth();
  await world.clock.advance(10_000);
  assert.deepEqual(await world.pods(), ['owned']);
  await world.deleteOwner();
  world.undeafen();
  await world.clock.advance(120_000);
  assert.deepEqual(await world.pods(), []);
  await world.end();
});

it('an owner that is there and was not heard of keeps what it owns', async () => {
  const world = await shop();
  world.deafen();
  await world.clock.advance(10_000);
  await world.createBoth();
  await world.clock.advance(600_000);
  assert.deepEqual(await world.pods(), ['owned']);
  world.undeafen();
  await world.clock.advance(600_000);
  assert.deepEqual(await world.pods(), ['owned']);
  await world.end();
});

it('an owner that was replaced by another of its name, while no watch reported it, takes what it owns with it', async () => {
  const world = await shop();
  await world.createBoth();
  await world.clock.advance(10_000);
  world.deafen();
  await world.clock.advance(10_000);
  await world.deleteOwner();
  await world.createOwner();
  world.undeafen();
  await world.clock.advance(120_000);
  assert.deepEqual(await world.pods(), []);
  await world.end();
});
