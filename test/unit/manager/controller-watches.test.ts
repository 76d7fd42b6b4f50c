import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { DEPLOYMENTS, PODS, REPLICA_SETS } from '../../../src/api/builtin.ts';
import type { Pod } from '../../../src/api/builtin.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import { keyOf, splitKey } from '../../../src/api/object-key.ts';
import type { Draft, KubernetesObject } from '../../../src/api/object.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { ControllerOptions } from '../../../src/manager/controller-options.ts';
import { mapByName } from '../../../src/manager/enqueue.ts';
import { OwnedObjects } from '../../../src/manager/owned-objects.ts';
import { predicates } from '../../../src/manager/predicate.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { runAll } from '../../../src/util/runnable.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import { exponentialLimiter } from '../../../src/workqueue/rate-limiter.ts';

const TEMPLATE = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'app', image: 'nginx' }] },
};

/** Starts a controller against an embedded API server, and records the keys that it syncs. */
function startController(
  t: TestContext,
  build: (controller: Controller, informers: InformerSet) => Controller,
  options: Partial<ControllerOptions> = {},
) {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  const informers = new InformerSet(client, { clock });
  const keys: string[] = [];
  const sync = async (key: string) => {
    keys.push(key);
    return done();
  };
  const deps = { client, clock, log: silentLogger, resyncPeriodMs: 60_000 };
  const controller = build(
    new Controller(deps, { name: 'test', kind: 'Test', sync, ...options }),
    informers,
  );
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
  /** Returns the keys that were synced since the last call, each once, after a second. */
  const synced = async () => {
    await clock.advance(1000);
    return [...new Set(keys.splice(0))];
  };
  return { clock, client, synced };
}

const metadata = (name: string) => ({ name, namespace: 'default' });

function replicaSet(name: string) {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: metadata(name),
    spec: { selector: { matchLabels: { app: 'web' } }, template: TEMPLATE },
  };
}

function pod(name: string, owner?: KubernetesObject): Draft<Pod> {
  const ownerReferences = owner ? [controllerReference(owner)] : [];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata(name), ownerReferences },
    spec: TEMPLATE.spec,
  };
}

test('owns enqueues the owner of a changed object, and no owner for unowned objects', async (t) => {
  const { client, synced } = startController(t, (controller, informers) =>
    controller.for(informers.for(REPLICA_SETS)).owns(informers.for(PODS), REPLICA_SETS),
  );
  const owner = await client.create(REPLICA_SETS, replicaSet('web'));
  assert.deepEqual(await synced(), ['default/web']);
  await client.create(PODS, pod('web-0', owner));
  assert.deepEqual(await synced(), ['default/web']);
  await client.create(PODS, pod('web'));
  assert.deepEqual(await synced(), []);
});

test('owns with orNamed enqueues the owner that waits for the name of an unowned object', async (t) => {
  const { client, synced } = startController(t, (controller, informers) =>
    controller
      .for(informers.for(REPLICA_SETS))
      .owns(informers.for(PODS), REPLICA_SETS, { orNamed: keyOf }),
  );
  await client.create(PODS, pod('web'));
  await client.create(PODS, pod('api'));
  assert.deepEqual(await synced(), [], 'no ReplicaSet has these names');
  await client.create(REPLICA_SETS, replicaSet('web'));
  await synced();
  await client.delete(PODS, metadata('web'));
  assert.deepEqual(await synced(), ['default/web'], 'the name is free');
  await client.delete(PODS, metadata('api'));
  assert.deepEqual(await synced(), []);
  const other = await client.create(REPLICA_SETS, replicaSet('other'));
  await synced();
  await client.create(PODS, pod('web', other));
  assert.deepEqual(await synced(), ['default/other'], 'an owned object enqueues only its owner');
});

test('owns of OwnedObjects enqueues the owner of a changed object, and the owner that waits for a name', async (t) => {
  const owned = new OwnedObjects(REPLICA_SETS, 'test');
  const keys: string[] = [];
  const { client, clock } = startController(
    t,
    (controller, informers) => {
      owned.add(informers.for(PODS));
      return controller.for(informers.for(REPLICA_SETS)).owns(owned);
    },
    {
      rateLimiter: exponentialLimiter({ initialMs: 3_600_000, maxMs: 3_600_000 }),
      sync: async (key, context) => {
        keys.push(key);
        const { name, namespace } = splitKey(key);
        const owner = await context.client.get(REPLICA_SETS, { name, namespace });
        await owned.ensure(context, owner, [{ ...pod('wanted'), metadata: { name: 'wanted' } }]);
        return done();
      },
    },
  );
  const synced = async () => {
    await clock.advance(1000);
    return new Set(keys.splice(0));
  };
  await client.create(PODS, pod('wanted'));
  await client.create(PODS, pod('other'));
  for (const name of ['a', 'b']) {
    await client.create(REPLICA_SETS, replicaSet(name));
    await synced();
  }
  const { metadata: unowned } = await client.get(PODS, metadata('wanted'));
  assert.equal(unowned.ownerReferences, undefined);
  await client.delete(PODS, metadata('other'));
  assert.deepEqual(await synced(), new Set(), 'no owner waits for the name');
  await client.delete(PODS, metadata('wanted'));
  assert.deepEqual(await synced(), new Set(['default/a', 'default/b']));
  const [owner] = (await client.get(PODS, metadata('wanted'))).metadata.ownerReferences ?? [];
  const label = { type: 'merge', body: { metadata: { labels: { changed: 'yes' } } } } as const;
  await client.patch(PODS, metadata('wanted'), label);
  assert.deepEqual(await synced(), new Set([`default/${owner?.name}`]));
  assert.throws(() => owned.add(new InformerSet(client, { clock }).for(PODS)), /before/);
});

test('mapByName finds the owners whose desired object has the name', async (t) => {
  const { client, synced } = startController(t, (controller, informers) => {
    const sets = informers.for(REPLICA_SETS);
    const objectName = ({ metadata }: { metadata: { name: string } }) =>
      metadata.name === 'none' ? undefined : `${metadata.name}-pod`;
    const orNamed = mapByName(sets, 'pod', objectName);
    return controller.for(sets).owns(informers.for(PODS), REPLICA_SETS, { orNamed });
  });
  for (const name of ['web', 'none']) await client.create(REPLICA_SETS, replicaSet(name));
  await synced();
  for (const name of ['web-pod', 'none-pod', 'web']) await client.create(PODS, pod(name));
  assert.deepEqual(await synced(), ['default/web']);
});

test('owns with orNamed throws before for', (t) => {
  startController(t, (controller, informers) => {
    const pods = informers.for(PODS);
    assert.throws(
      () => controller.owns(pods, DEPLOYMENTS, { orNamed: keyOf }),
      /call for\(\) first/,
    );
    return controller;
  });
});

test('for with generationChanged syncs after changes of the spec, not of labels or at resyncs', async (t) => {
  const { client, clock, synced } = startController(t, (controller, informers) =>
    controller.for(informers.for(REPLICA_SETS), { predicates: [predicates.generationChanged] }),
  );
  await client.create(REPLICA_SETS, replicaSet('web'));
  assert.deepEqual(await synced(), ['default/web']);
  const labels = { metadata: { labels: { a: 'b' } } };
  await client.patch(REPLICA_SETS, metadata('web'), { type: 'merge', body: labels });
  assert.deepEqual(await synced(), []);
  await clock.advance(120_000);
  assert.deepEqual(await synced(), [], 'no resync');
  const spec = { spec: { replicas: 2 } };
  await client.patch(REPLICA_SETS, metadata('web'), { type: 'merge', body: spec });
  assert.deepEqual(await synced(), ['default/web']);
  await client.delete(REPLICA_SETS, metadata('web'));
  assert.deepEqual(await synced(), ['default/web']);
});

test('watches with labelsChanged accepts the first list', async (t) => {
  const { client, synced } = startController(t, (controller, informers) =>
    controller.watches(informers.for(PODS), keyOf, { predicates: [predicates.labelsChanged] }),
  );
  await client.create(PODS, pod('web'));
  assert.deepEqual(await synced(), ['default/web']);
  await client.patch(
    PODS,
    metadata('web'),
    { type: 'merge', body: { status: { phase: 'Running' } } },
    { subresource: 'status' },
  );
  assert.deepEqual(await synced(), []);
});

test('rejects unknown options', (t) => {
  startController(t, (controller, informers) => {
    const pods = informers.for(PODS);
    const misspelt = { predicate: [predicates.labelsChanged] } as object;
    assert.throws(() => controller.for(pods, misspelt), /unknown option predicate.*predicates/);
    assert.throws(() => controller.owns(pods, PODS, misspelt), /unknown option predicate/);
    return controller;
  });
});

test('retries failed keys after the delays of its rate limiter', async (t) => {
  const starts: number[] = [];
  const { client, clock } = startController(
    t,
    (controller, informers) => controller.for(informers.for(PODS)),
    {
      rateLimiter: exponentialLimiter({ initialMs: 1000, maxMs: 2000 }),
      sync: async () => {
        starts.push(clock.monotonic());
        throw new Error('no quota');
      },
    },
  );
  await client.create(PODS, pod('web'));
  await clock.advance(10_000);
  const delays = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  assert.deepEqual(delays.slice(0, 3), [1000, 2000, 2000]);
});
