import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { CONFIG_MAPS, NODES, PODS, SERVICES } from '../../../../src/api/builtin.ts';
import type { ConfigMap, Node } from '../../../../src/api/builtin.ts';
import type { KubernetesObject, OwnerReference } from '../../../../src/api/object.ts';
import type { Resource } from '../../../../src/api/resource.ts';
import { GarbageCollector } from '../../../../src/cluster/lifecycle/garbage-collector.ts';
import { done } from '../../../../src/workqueue/outcome.ts';
import { NAMESPACE, SyncBench } from '../../../support/sync-bench.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Cluster } from '../../../../src/cluster/cluster.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../../src/util/http.ts';
import { NOT_SENT } from '../../../../src/record/event-recorder.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

const KINDS: readonly Resource[] = [CONFIG_MAPS, NODES];

async function setUp() {
  const bench = await SyncBench.with();
  const enqueued: string[] = [];
  const served = new Set(KINDS);
  const { client, log } = bench.context;
  const collector = new GarbageCollector({
    client,
    log,
    resolve: ({ kind }) => KINDS.find((resource) => resource.kind === kind && served.has(resource)),
    recorder: { warning: () => NOT_SENT },
    enqueue: (uid) => void enqueued.push(uid),
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
  /** Passes current or older states of objects to the collector. */
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
  return { bench, collector, enqueued, served, create, see, live, remove, collect, names };
}

function referenceTo(
  { apiVersion, kind, metadata }: KubernetesObject,
  block = false,
): OwnerReference {
  const { name, uid } = metadata;
  return { apiVersion, kind, name, uid, ...(block ? { blockOwnerDeletion: true } : {}) };
}

describe('The garbage collector', () => {
  it('deletes an object by uid and without a read after the deletion event of its owner', async () => {
    const { bench, collector, enqueued, create, see, remove, collect, names } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(owner, dependent);
    enqueued.length = 0;
    await remove('owner');
    collector.forget(owner);
    assert.deepEqual(enqueued, [dependent.metadata.uid]);
    assert.deepEqual(await collect(dependent), done());
    assert.deepEqual(bench.reads, []);
    const [write, ...others] = bench.writes;
    assert.deepEqual(others, []);
    assert.equal(write?.what, 'delete configmaps');
    assert.deepEqual(write?.body.preconditions, { uid: dependent.metadata.uid });
    assert.equal(write?.body['propagationPolicy'], 'Background');
    assert.deepEqual(await names(), []);
  });

  it('keeps an object while its owner exists, in a cache or not', async () => {
    const { bench, collector, create, see, collect, names } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(dependent);
    const outcome = await collect(dependent);
    assert.equal(outcome.kind, 'requeueAfter');
    assert.deepEqual(bench.reads, ['configmaps owner']);
    see(owner);
    assert.deepEqual(await collect(dependent), done());
    // Its cache lost it, for example because its kind is not served for a while.
    collector.forget(owner, false);
    assert.deepEqual(await collect(dependent), outcome);
    assert.deepEqual(bench.writes, []);
    assert.equal((await names()).length, 2);
  });

  it('deletes an object whose owner is absent or has another uid', async () => {
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

  it('reads a cluster-scoped owner without a namespace', async () => {
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

  it('keeps an object with a remaining owner, and removes the references to absent owners', async () => {
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

  it('does not change an object that replaced the cached object of the same name', async () => {
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
    await assert.rejects(collect(dependent), { kind: 'conflict' });
    assert.deepEqual(await collect(shared), done());
    assert.deepEqual(await live('dependent'), next);
    assert.deepEqual(await live('shared'), nextShared);
  });

  it('ignores an object that no longer exists', async () => {
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
    const { bench, collector, enqueued, create, see, collect, live, names } = await setUp();
    const owner = await create('owner', [], { finalizers: ['test/keep'] });
    const blocking = await create('blocking', [owner], { block: true });
    const free = await create('free', [owner]);
    see(owner, blocking, free);
    await bench.client.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Foreground' });
    const terminating = await live('owner');
    enqueued.length = 0;
    see(terminating);
    assert.deepEqual(
      new Set(enqueued),
      new Set([owner, blocking, free].map(({ metadata }) => metadata.uid)),
    );
    await collect(terminating);
    assert.deepEqual((await live('owner')).metadata.finalizers, [
      'test/keep',
      'foregroundDeletion',
    ]);
    await collect(blocking);
    await collect(free);
    assert.deepEqual(await names(), ['owner']);
    enqueued.length = 0;
    collector.forget(blocking);
    assert.deepEqual(enqueued, [owner.metadata.uid]);
    await collect(terminating);
    assert.deepEqual((await live('owner')).metadata.finalizers, ['test/keep']);
    const body = bench.writes.at(-1)?.body.metadata;
    assert.equal(body?.['uid'], owner.metadata.uid);
    assert.equal(body?.['resourceVersion'], terminating.metadata.resourceVersion);
  });

  it('deletes a blocking dependent that has blocking dependents in the foreground', async () => {
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

  it('deletes a circle of owners in the foreground', async () => {
    const { bench, collector, enqueued, create, see, collect, live, names } = await setUp();
    const first = await create('first');
    const second = await create('second', [first], { block: true });
    const body = { metadata: { ownerReferences: [referenceTo(second, true)] } };
    await bench.client.patch(CONFIG_MAPS, first.metadata, { type: 'merge', body });
    see(await live('first'), second);
    await bench.client.delete(CONFIG_MAPS, first.metadata, { propagationPolicy: 'Foreground' });
    see(await live('first'));
    await collect(second);
    enqueued.length = 0;
    see(await live('second'));
    assert.ok(enqueued.includes(first.metadata.uid));
    await collect(first);
    assert.deepEqual(await names(), ['second']);
    collector.forget(first);
    await collect(second);
    assert.deepEqual(await names(), []);
  });

  it('completes a foreground deletion if another owner keeps the blocking dependent', async () => {
    const { bench, enqueued, create, see, collect, live, names } = await setUp();
    const [owner, other] = [await create('owner'), await create('other')];
    const dependent = await create('dependent', [owner, other], { block: true });
    see(owner, other, dependent);
    await bench.client.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Foreground' });
    see(await live('owner'));
    await collect(dependent);
    assert.deepEqual((await live('dependent')).metadata.ownerReferences, [
      referenceTo(other, true),
    ]);
    enqueued.length = 0;
    see(await live('dependent'));
    assert.ok(enqueued.includes(owner.metadata.uid));
    await collect(owner);
    assert.deepEqual(await names(), ['dependent', 'other']);
  });

  it('removes the owner references of orphans before the finalizer of the owner', async () => {
    const { bench, create, see, collect, live } = await setUp();
    const owner = await create('owner', [], { finalizers: ['test/keep'] });
    const other = await create('other');
    const dependent = await create('dependent', [owner, other]);
    see(owner, other, dependent);
    await bench.client.delete(CONFIG_MAPS, owner.metadata, { propagationPolicy: 'Orphan' });
    const terminating = await live('owner');
    see(terminating);
    await collect(terminating);
    assert.deepEqual((await live('dependent')).metadata.ownerReferences, [referenceTo(other)]);
    assert.deepEqual((await live('owner')).metadata.finalizers, ['test/keep']);
    assert.deepEqual(
      bench.writes.map(({ name }) => name),
      ['dependent', 'owner'],
    );
  });

  it('fails if the server rejects a write, because no event may follow', async () => {
    const { bench, collector, create, see, remove, collect } = await setUp();
    const [first, second] = [await create('first'), await create('second')];
    const dependent = await create('dependent', [first, second]);
    see(first, second, dependent);
    await remove('first');
    collector.forget(first);
    for (const [status, kind] of [
      [409, 'conflict'],
      [403, 'forbidden'],
    ] as const) {
      bench.server.faults.failNext('PATCH', status);
      await assert.rejects(collect(dependent), { kind });
    }
  });

  it('releases the other orphans if one is gone and one is denied, and keeps the finalizer', async () => {
    const { bench, create, see, live, remove, collect } = await setUp();
    const owner = await create('owner', [], { finalizers: ['orphan'] });
    const orphans = await Promise.all(['a', 'b', 'c'].map((name) => create(name, [owner])));
    await remove('owner');
    see(await live('owner'), ...orphans);
    await remove('a');
    bench.server.faults.failNext('PATCH', 403);
    await assert.rejects(collect(owner), { kind: 'forbidden' });
    assert.deepEqual((await live('c')).metadata.ownerReferences ?? [], []);
    assert.deepEqual((await live('owner')).metadata.finalizers, ['orphan']);
  });

  it('updates the owner graph when owner references change', async () => {
    const { collector, enqueued, create, see } = await setUp();
    const owner = await create('owner');
    const dependent = await create('dependent', [owner]);
    see(owner, dependent);
    const { ownerReferences: _, ...metadata } = dependent.metadata;
    see({ ...dependent, metadata });
    enqueued.length = 0;
    collector.forget(owner);
    assert.deepEqual(enqueued, []);
    assert.deepEqual(collector.graph.dependentsOf(owner.metadata.uid), []);
  });
});

const DEFAULT_NAMESPACE = 'default';

/** A Service with a Pod, in a cluster whose watch of Services can be interrupted. */
async function clusterWithOutage() {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const clientOver = (handler: HttpHandler) =>
    new HttpClient({ handler, server: 'https://test', clock });
  const client = clientOver(server.handler);
  let isDown = false;
  const unreliable = clientOver((request) =>
    isDown && /\/services\?/.test(request.path)
      ? Promise.reject(new Error('connection refused'))
      : server.handler(request),
  );
  const stopping = new AbortController();
  const running = new Cluster(
    { client: unreliable, clock, log: silentLogger },
    { controllers: ['garbage-collector'] },
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
    startOutage() {
      isDown = true;
      server.faults.dropWatches();
    },
    /** Ends the outage like a restart of the server: the history of events is lost. */
    endOutage() {
      server.faults.expireHistory();
      isDown = false;
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

it('deletes the dependents of an owner that was created and deleted during an outage of its watch', async () => {
  const cluster = await clusterWithOutage();
  cluster.startOutage();
  // The caches of other kinds recover soon.
  await cluster.clock.advance(10_000);
  await cluster.createBoth();
  await cluster.clock.advance(10_000);
  assert.deepEqual(await cluster.pods(), ['owned']);
  await cluster.deleteOwner();
  cluster.endOutage();
  await cluster.clock.advance(120_000);
  assert.deepEqual(await cluster.pods(), []);
  await cluster.end();
});

it('keeps the dependents of an existing owner that no cache contains', async () => {
  const cluster = await clusterWithOutage();
  cluster.startOutage();
  await cluster.clock.advance(10_000);
  await cluster.createBoth();
  await cluster.clock.advance(600_000);
  assert.deepEqual(await cluster.pods(), ['owned']);
  cluster.endOutage();
  await cluster.clock.advance(600_000);
  assert.deepEqual(await cluster.pods(), ['owned']);
  await cluster.end();
});

it('deletes the dependents of an owner that was replaced by an object with the same name', async () => {
  const cluster = await clusterWithOutage();
  await cluster.createBoth();
  await cluster.clock.advance(10_000);
  cluster.startOutage();
  await cluster.clock.advance(10_000);
  await cluster.deleteOwner();
  await cluster.createOwner();
  cluster.endOutage();
  await cluster.clock.advance(120_000);
  assert.deepEqual(await cluster.pods(), []);
  await cluster.end();
});
