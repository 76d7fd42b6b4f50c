import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { NODES, PODS, SERVICES } from '../../../src/api/builtin.ts';
import type { Node } from '../../../src/api/builtin.ts';
import type { KubernetesObject, OwnerReference } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { GarbageCollector } from '../../../src/cluster/garbage-collector.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import { CONFIG_MAPS } from '../../support/config-maps.ts';
import type { ConfigMap } from '../../support/config-maps.ts';
import { NAMESPACE, SyncBench } from '../../support/sync-bench.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Cluster } from '../../../src/cluster/cluster.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { silentLogger } from '../../../src/util/logger.ts';

const KINDS: readonly Resource[] = [CONFIG_MAPS, NODES];

async function setUp() {
  const bench = await SyncBench.with();
  const woken: string[] = [];
  const served = new Set(KINDS);
  const { client, log } = bench.context;
  const collector = new GarbageCollector({
    client,
    log,
    resolve: ({ kind }) => KINDS.find((resource) => resource.kind === kind && served.has(resource)),
    enqueue: (uid) => void woken.push(uid),
  });
  const create = async (
    name: string,
    owners: readonly KubernetesObject[] = [],
    more: { finalizers?: string[]; block?: boolean } = {},
  ): Promise<ConfigMap> => {
    const ownerReferences = owners.map((owner) => referenceTo(owner, more.block));
    const { finalizers = [] } = more;
    const metadata = { name, namespace: NAMESPACE, ownerReferences, finalizers };
    return bench.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  };
  /** Lets the collector see objects as they are now, or as they were. */
  const see = (...objects: KubernetesObject[]) => {
    for (const object of objects) {
      collector.observe(object.kind === 'Node' ? NODES : CONFIG_MAPS, object);
    }
  };
  const live = (name: string) => bench.get(CONFIG_MAPS, name);
  const remove = async (name: string) => {
    const object = await live(name);
    await bench.client.delete(CONFIG_MAPS, object.metadata);
    return object;
  };
  const collect = ({ metadata }: KubernetesObject) =>
    collector.collect(metadata.uid, new AbortController().signal);
  const names = async () => (await bench.list(CONFIG_MAPS)).map(({ metadata }) => metadata.name);
  return { bench, collector, woken, served, create, see, live, remove, collect, names };
}

function referenceTo(
  { apiVersion, kind, metadata }: KubernetesObject,
  block = false,
): OwnerReference {
  const { name, uid } = metadata;
  return { apiVersion, kind, name, uid, ...(block ? { blockOwnerDeletion: true } : {}) };
}

describe('The garbage collector', () => {
  it('deletes an object whose owner was seen to go, by uid and without a read', async () => {
    const { bench, collector, woken, create, see, remove, collect, names } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(owner, dependent);
    woken.length = 0;
    await remove('owner');
    collector.forget(owner);
    assert.deepEqual(woken, [dependent.metadata.uid]);
    assert.deepEqual(await collect(dependent), done());
    assert.deepEqual(bench.reads, []);
    const [write, ...others] = bench.writes;
    assert.deepEqual(others, []);
    assert.equal(write?.what, 'delete configmaps');
    assert.deepEqual(write?.body.preconditions, { uid: dependent.metadata.uid });
    assert.equal(write?.body['propagationPolicy'], 'Background');
    assert.deepEqual(await names(), []);
  });

  it('keeps an object while its owner is there, whether a cache has it or not', async () => {
    const { bench, create, see, collect, names } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(dependent);
    const outcome = await collect(dependent);
    assert.equal(outcome.kind, 'requeueAfter');
    assert.deepEqual(bench.reads, ['configmaps owner']);
    see(owner);
    assert.deepEqual(await collect(dependent), done());
    assert.deepEqual(bench.writes, []);
    assert.equal((await names()).length, 2);
  });

  it('deletes an object of an owner that is not there, or is another of its name', async () => {
    for (const isReplaced of [false, true]) {
      const { create, see, remove, collect, names } = await setUp();
      const owner = await create('owner');
      const dependent = await create('dependent', [owner]);
      await remove('owner');
      if (isReplaced) await create('owner');
      see(dependent);
      await collect(dependent);
      assert.deepEqual(await names(), isReplaced ? ['owner'] : []);
    }
  });

  it('keeps an object of a kind that is not served, and one whose owner cannot be read', async () => {
    const { bench, served, create, see, remove, collect, names } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    await remove('owner');
    see(dependent);
    served.delete(CONFIG_MAPS);
    const outcome = await collect(dependent);
    assert.equal(outcome.kind, 'requeueAfter');
    served.add(CONFIG_MAPS);
    bench.server.faults.failNext('GET', 403);
    await assert.rejects(collect(dependent), (error) => isApiError(error, 'forbidden'));
    assert.deepEqual(await names(), ['dependent']);
  });

  it('looks for a cluster-scoped owner without the namespace of the object', async () => {
    const { bench, create, see, collect, names } = await setUp();
    const node = await bench.create<Node>(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node' },
    });
    const dependent = await create('dependent', [node]);
    see(dependent);
    await collect(dependent);
    assert.deepEqual(await names(), ['dependent']);
    await bench.client.delete(NODES, { name: 'node' });
    await collect(dependent);
    assert.deepEqual(await names(), []);
  });

  it('keeps an object with an owner left, and removes the references to those that are gone', async () => {
    const { bench, collector, create, see, remove, live, collect } = await setUp();
    const [first, second] = [await create('first'), await create('second')];
    const dependent = await create('dependent', [first, second]);
    see(first, second, dependent);
    await remove('first');
    collector.forget(first);
    await collect(dependent);
    const { metadata } = await live('dependent');
    assert.deepEqual(metadata.ownerReferences, [referenceTo(second)]);
    const body = bench.writes[0]?.body.metadata;
    assert.equal(body?.['uid'], dependent.metadata.uid);
    assert.equal(body?.['resourceVersion'], dependent.metadata.resourceVersion);
    assert.equal(bench.writes.length, 1);
  });

  it('leaves an object alone that has taken the name of the one in its cache', async () => {
    const { collector, create, see, remove, collect, live } = await setUp();
    const [owner, second] = [await create('owner'), await create('second')];
    const dependent = await create('dependent', [owner]);
    const shared = await create('shared', [owner, second]);
    see(owner, second, dependent, shared);
    await remove('owner');
    collector.forget(owner);
    await remove('dependent');
    await remove('shared');
    const next = await create('dependent');
    const nextShared = await create('shared');
    assert.deepEqual(await collect(dependent), done());
    assert.deepEqual(await collect(shared), done());
    assert.deepEqual(await live('dependent'), next);
    assert.deepEqual(await live('shared'), nextShared);
  });

  it('takes an object that is gone for done', async () => {
    const { collector, create, see, remove, collect } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(owner, dependent);
    await remove('dependent');
    await remove('owner');
    collector.forget(owner);
    assert.deepEqual(await collect(dependent), done());
    collector.forget(dependent);
    assert.deepEqual(await collect(dependent), done());
  });

  it('completes a foreground deletion once no dependent blocks it', async () => {
    const { bench, collector, woken, create, see, collect, live, names } = await setUp();
    const owner = await create('owner', [], { finalizers: ['test/keep'] });
    const blocking = await create('blocking', [owner], { block: true });
    const free = await create('free', [owner]);
    see(owner, blocking, free);
    await bench.client.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Foreground' });
    const leaving = await live('owner');
    woken.length = 0;
    see(leaving);
    assert.deepEqual(
      new Set(woken),
      new Set([owner, blocking, free].map(({ metadata }) => metadata.uid)),
    );
    await collect(leaving);
    assert.deepEqual((await live('owner')).metadata.finalizers, [
      'test/keep',
      'foregroundDeletion',
    ]);
    await collect(blocking);
    await collect(free);
    assert.deepEqual(await names(), ['owner']);
    woken.length = 0;
    collector.forget(blocking);
    assert.deepEqual(woken, [owner.metadata.uid]);
    await collect(leaving);
    assert.deepEqual((await live('owner')).metadata.finalizers, ['test/keep']);
    const body = bench.writes.at(-1)?.body.metadata;
    assert.equal(body?.['uid'], owner.metadata.uid);
    assert.equal(body?.['resourceVersion'], leaving.metadata.resourceVersion);
  });

  it('deletes in the foreground what blocks an owner and is blocked itself', async () => {
    const { bench, create, see, collect, live } = await setUp();
    const owner = await create('owner', [], { finalizers: ['test/keep'] });
    const middle = await create('middle', [owner], { block: true });
    const leaf = await create('leaf', [middle], { block: true });
    see(owner, middle, leaf);
    await bench.client.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Foreground' });
    see(await live('owner'));
    await collect(middle);
    assert.equal(bench.writes.at(-1)?.body['propagationPolicy'], 'Foreground');
    const { metadata } = await live('middle');
    assert.deepEqual(metadata.finalizers, ['foregroundDeletion']);
    assert.ok(metadata.deletionTimestamp);
  });

  it('orphans: lets go of the dependents first, then of the owner', async () => {
    const { bench, create, see, collect, live } = await setUp();
    const owner = await create('owner', [], { finalizers: ['test/keep'] });
    const other = await create('other');
    const dependent = await create('dependent', [owner, other]);
    see(owner, other, dependent);
    await bench.client.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Orphan' });
    const leaving = await live('owner');
    see(leaving);
    await collect(leaving);
    assert.deepEqual((await live('dependent')).metadata.ownerReferences, [referenceTo(other)]);
    assert.deepEqual((await live('owner')).metadata.finalizers, ['test/keep']);
    assert.deepEqual(
      bench.writes.map(({ name }) => name),
      ['dependent', 'owner'],
    );
  });

  it('takes an object that changed since the cache saw it for not done yet, without a failure', async () => {
    const { bench, collector, create, see, remove, collect } = await setUp();
    const [first, second] = [await create('first'), await create('second')];
    const dependent = await create('dependent', [first, second]);
    see(first, second, dependent);
    await remove('first');
    collector.forget(first);
    bench.server.faults.failNext('PATCH', 409);
    assert.deepEqual(await collect(dependent), done());
    bench.server.faults.failNext('PATCH', 403);
    await assert.rejects(collect(dependent), (error) => isApiError(error, 'forbidden'));
  });

  it('forgets whom an object belonged to when its references change', async () => {
    const { collector, woken, create, see } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(owner, dependent);
    const { ownerReferences: _, ...metadata } = dependent.metadata;
    see({ ...dependent, metadata });
    woken.length = 0;
    collector.forget(owner);
    assert.deepEqual(woken, []);
    assert.deepEqual(collector.graph.dependentsOf(owner.metadata.uid), []);
  });
});

const DEFAULT_NAMESPACE = 'default';

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
      metadata: { namespace: DEFAULT_NAMESPACE, name: 'owner' },
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
        metadata: { namespace: DEFAULT_NAMESPACE, name: 'owned', ownerReferences: [owner] },
        spec: { containers: [{ name: 'app', image: 'nginx' }] },
      });
    },
    createOwner,
    deleteOwner: () => client.delete(SERVICES, { namespace: DEFAULT_NAMESPACE, name: 'owner' }),
    pods: async () =>
      (await client.list(PODS, { namespace: DEFAULT_NAMESPACE })).items.map(
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
