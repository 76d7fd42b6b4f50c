import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import {
  CLUSTER_ROLES,
  CONFIG_MAPS,
  PRIORITY_CLASSES,
  SERVICES,
} from '../../../src/api/builtin.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import type { KubernetesObject, NewObject } from '../../../src/api/object.ts';
import { apiVersionOf } from '../../../src/api/resource.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { deleteOwnedObject, ensureOwnedObject } from '../../../src/manager/owned-object.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { mapByName, mapToOwner } from '../../../src/manager/enqueue.ts';
import { Finalizer } from '../../../src/manager/finalizer.ts';
import { OwnedObjects } from '../../../src/manager/owned-objects.ts';
import { objectPage } from '../../../src/serving/object-page.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { runAll } from '../../../src/util/runnable.ts';
import { done, SyncError } from '../../../src/workqueue/outcome.ts';

interface Kind {
  readonly resource: Resource;
  /** Namespace of its objects; undefined for a cluster-scoped kind. */
  readonly namespace: string | undefined;
  readonly fields: object;
}

type Scope = 'in a namespace' | 'cluster-scoped';

const OWNERS: Readonly<Record<Scope, Kind>> = {
  'in a namespace': {
    resource: SERVICES,
    namespace: 'default',
    fields: { spec: { ports: [{ port: 80 }] } },
  },
  'cluster-scoped': {
    resource: PRIORITY_CLASSES,
    namespace: undefined,
    fields: { value: 1 },
  },
};

const OWNED: Readonly<Record<Scope, Kind>> = {
  'in a namespace': { resource: CONFIG_MAPS, namespace: 'default', fields: {} },
  'cluster-scoped': { resource: CLUSTER_ROLES, namespace: undefined, fields: {} },
};

/** A kind whose objects no other refers to. */
const ELSEWHERE: Kind = { ...OWNED['in a namespace'], namespace: 'kube-system' };

function draftOf({ resource, namespace, fields }: Kind, name: string, labels = {}) {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { name, labels, ...(namespace !== undefined && { namespace }) },
    ...fields,
  } satisfies NewObject<KubernetesObject>;
}

/** Starts a controller of the kind `owner` that owns objects of the kind `owned`, with one owner. */
async function start(t: TestContext, owner: Kind, owned: Kind) {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  const informers = new InformerSet(client, { clock });
  const [owners, dependents] = [informers.for(owner.resource), informers.for(owned.resource)];
  const objects = new OwnedObjects(owner.resource, 'test-controller').add(dependents, {
    prune: true,
    adopt: ({ metadata }) => metadata.labels?.['adopt'] === 'yes',
  });
  const keys = new Set<string>();
  const controller = new Controller(
    { client, clock, log: silentLogger },
    {
      name: 'test',
      kind: owner.resource.kind,
      sync: async (key) => {
        keys.add(key);
        return done();
      },
    },
  )
    .for(owners)
    .owns(objects);
  const abort = new AbortController();
  const running = runAll(
    [(signal) => informers.run(signal), (signal) => controller.run(signal)],
    abort.signal,
  );
  t.after(async () => {
    abort.abort();
    await clock.advance(1000);
    await running;
  });
  const created = await client.create(owner.resource, draftOf(owner, 'the-owner'));
  const context = { client, signal: abort.signal };
  /** Returns the keys that were synced since the last call. */
  const synced = async () => {
    await clock.advance(1000);
    const all = [...keys];
    keys.clear();
    return all;
  };
  await synced();
  return { client, clock, objects, owner: created, owners, dependents, context, synced };
}

const COMBINATIONS = [
  ['in a namespace', 'in a namespace'],
  ['cluster-scoped', 'in a namespace'],
  ['cluster-scoped', 'cluster-scoped'],
] as const;

for (const [ownerScope, ownedScope] of COMBINATIONS) {
  const [ownerKind, ownedKind] = [OWNERS[ownerScope], OWNED[ownedScope]];
  const { resource } = ownedKind;
  const named = (name: string, labels?: object) => draftOf(ownedKind, name, labels);

  describe(`an object ${ownedScope} of an owner ${ownerScope}`, () => {
    it('is created once, also if the response was lost, kept and pruned', async (t) => {
      const { client, objects, owner, context, synced } = await start(t, ownerKind, ownedKind);
      const ensure = async (...drafts: ReturnType<typeof named>[]) =>
        (await objects.ensure(context, owner, drafts)).map(({ kind }) => kind);
      assert.deepEqual(await ensure(named('a'), named('b')), ['created', 'created']);
      const { ownerReferences, uid } = (await client.get(resource, named('a').metadata)).metadata;
      assert.deepEqual(ownerReferences, [controllerReference(owner)]);
      // As if the response was lost and the cache did not contain the object yet.
      const desired = { ...named('a'), metadata: { ...named('a').metadata, ownerReferences } };
      const again = { resource, owner, desired, cached: undefined, fieldManager: 'test' };
      assert.equal((await ensureOwnedObject(context, again)).object.metadata.uid, uid);
      assert.deepEqual(await synced(), [keyOf(owner)], 'the owner is synced after the creation');
      const labels = { changed: 'yes' };
      await client.patch(resource, named('a').metadata, {
        type: 'merge',
        body: { metadata: { labels } },
      });
      assert.deepEqual(await synced(), [keyOf(owner)], 'the owner is synced after a change');
      assert.deepEqual(await ensure(named('a', { changed: 'no' })), ['updated']);
      await assert.rejects(client.get(resource, named('b').metadata), { kind: 'notFound' });
      assert.deepEqual(await synced(), [keyOf(owner)], 'the owner is synced after a deletion');
    });

    it('is adopted only by the rule, and its name is waited for', async (t) => {
      const { client, objects, owner, context, synced } = await start(t, ownerKind, ownedKind);
      await client.create(resource, named('a', { adopt: 'yes' }));
      const unowned = await client.create(resource, named('b'));
      const ensured = objects.ensure(context, owner, [named('a'), named('b')]);
      await assert.rejects(ensured, (error) => error instanceof SyncError);
      const { metadata } = await client.get(resource, named('a').metadata);
      assert.deepEqual(metadata.ownerReferences, [controllerReference(owner)]);
      await synced();
      await client.delete(resource, unowned.metadata);
      assert.deepEqual(await synced(), [keyOf(owner)]);
      const outcomes = await objects.ensure(context, owner, [named('a'), named('b')]);
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ['unchanged', 'created'],
      );
    });

    it('is below its owner in the debug pages, and deleted by its uid', async (t) => {
      const { objects, owner, owners, dependents, context, synced } = await start(
        t,
        ownerKind,
        ownedKind,
      );
      const [created] = await objects.ensure(context, owner, [named('a')]);
      await synced();
      assert.ok(created);
      const informers = [owners, dependents];
      const pages = objectPage({ informers: () => informers, events: () => [] });
      const query = new URLSearchParams({ resource: dependents.name, key: keyOf(created.object) });
      const page = pages.get('/debug/object')?.(query);
      const { tree } = JSON.parse(page?.body ?? '') as {
        tree: { key: string; owned: { key: string }[] };
      };
      assert.deepEqual(
        [tree.key, tree.owned.map(({ key }) => key)],
        [keyOf(owner), [keyOf(created.object)]],
      );
      assert.equal(await deleteOwnedObject(context, resource, created.object), true);
    });
  });
}

describe('a cluster-scoped object', () => {
  it('cannot have an owner in a namespace', async (t) => {
    const [ownerKind, ownedKind] = [OWNERS['in a namespace'], OWNED['cluster-scoped']];
    const { client, objects, owner, context } = await start(t, ownerKind, ownedKind);
    const draft = draftOf(ownedKind, 'a');
    await assert.rejects(objects.ensure(context, owner, [draft]), /"the-owner" cannot own/);
    const { resource } = ownedKind;
    const metadata = { ...draft.metadata, ownerReferences: [controllerReference(owner)] };
    const desired = { ...draft, metadata };
    const options = { resource, owner, desired, cached: undefined, fieldManager: 'test' };
    await assert.rejects(ensureOwnedObject(context, options), TypeError);
    assert.equal(mapToOwner(ownerKind.resource)(await client.create(resource, desired)), undefined);
  });
});

describe('a cluster-scoped owner', () => {
  it('needs the namespace of its objects, and rejects one of a cluster-scoped object', async (t) => {
    const ownerKind = OWNERS['cluster-scoped'];
    const namespaced = await start(t, ownerKind, OWNED['in a namespace']);
    const nowhere = draftOf({ ...OWNED['in a namespace'], namespace: undefined }, 'a');
    await assert.rejects(
      namespaced.objects.ensure(namespaced.context, namespaced.owner, [nowhere]),
      /set metadata\.namespace/,
    );
    const cluster = await start(t, ownerKind, OWNED['cluster-scoped']);
    const somewhere = draftOf({ ...OWNED['cluster-scoped'], namespace: 'default' }, 'a');
    await assert.rejects(
      cluster.objects.ensure(cluster.context, cluster.owner, [somewhere]),
      /remove metadata\.namespace/,
    );
  });
});

for (const [scope, kind] of Object.entries(OWNERS)) {
  it(`an object ${scope} keeps its finalizer until it is cleaned up`, async (t) => {
    const { client, clock, owner, context } = await start(t, kind, OWNED['in a namespace']);
    const finalizer = new Finalizer(kind.resource, 'example.com/test', 'test');
    const half = { apply: async () => done(), cleanUp: async () => undefined };
    const sync = async () => {
      const object = await client.get(kind.resource, owner.metadata);
      await finalizer.sync(object, { ...context, log: silentLogger, causes: [], clock }, half);
    };
    await sync();
    await client.delete(kind.resource, owner.metadata);
    const { metadata } = await client.get(kind.resource, owner.metadata);
    assert.deepEqual(metadata.finalizers, ['example.com/test']);
    await sync();
    await assert.rejects(client.get(kind.resource, owner.metadata), { kind: 'notFound' });
  });
}

it('mapByName finds the objects that name one of any scope and namespace', async (t) => {
  const [cluster, namespaced] = [OWNERS['cluster-scoped'], OWNED['in a namespace']];
  for (const [kind, nameIn, expected] of [
    [OWNERS['in a namespace'], () => 'a', ['PriorityClass a', 'ConfigMap default/a']],
    [cluster, () => 'a', ['PriorityClass a']],
    [cluster, () => ({ namespace: 'default', name: 'a' }), ['ConfigMap default/a']],
  ] as const) {
    const { client, owners, owner } = await start(t, kind, namespaced);
    const map = mapByName(owners, 'named', nameIn);
    const targets = [
      await client.create(cluster.resource, draftOf(cluster, 'a')),
      await client.create(namespaced.resource, draftOf(namespaced, 'a')),
      await client.create(ELSEWHERE.resource, draftOf(ELSEWHERE, 'a')),
    ];
    const found = targets.filter((target) => [map(target) ?? []].flat().includes(keyOf(owner)));
    assert.deepEqual(
      found.map((target) => `${target.kind} ${keyOf(target)}`),
      expected,
    );
  }
});
