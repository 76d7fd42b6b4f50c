import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isApiError } from 'crd-controller';
import { DEPLOYMENTS, EVENTS, PODS } from 'crd-controller/kinds';
import { explore } from 'crd-controller/testing';
import { STATIC_SITES } from '../src/generated/static-site.ts';
import { controllerOf, load, roleOf, startCluster } from './cluster.ts';

const AT = { namespace: 'default', name: 'static-site-sample' };

async function start(context: TestContext) {
  const cluster = await startCluster(context, 'static-site');
  return { ...cluster, sample: cluster.sampleOf(STATIC_SITES) };
}

test('is ready when its Pods are ready', async (context) => {
  const { client, sample } = await start(context);
  await sample.create({ replicas: 2 });
  assert.equal(await sample.ready(10_000), 'ReplicasAvailable');
  const { items } = await client.list(PODS, { namespace: 'default' });
  assert.deepEqual(
    items.map(({ spec }) => spec?.containers[0]?.image),
    ['nginx:1.29', 'nginx:1.29'],
  );
});

test('updates its Deployment after changes and creates it again after a deletion', async (context) => {
  const { client, clock, sample } = await start(context);
  await sample.create({ replicas: 2 });
  await clock.advance(10_000);
  await sample.change({ replicas: 3, image: 'nginx:1.30' });
  assert.equal(await sample.ready(60_000), 'ReplicasAvailable');
  assert.equal((await sample.get()).status?.availableReplicas, 3);
  await client.delete(DEPLOYMENTS, AT);
  assert.equal(await sample.ready(60_000), 'ReplicasAvailable');
  const { spec } = await client.get(DEPLOYMENTS, AT);
  assert.equal(spec?.template.spec?.containers[0]?.image, 'nginx:1.30');
});

test('does not change an existing Deployment of another owner', async (context) => {
  const { client, sample } = await start(context);
  const labels = { app: 'other' };
  const existing = await client.create(DEPLOYMENTS, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: AT,
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'other' }] } },
    },
  });
  await sample.create();
  assert.equal(await sample.ready(10_000), 'ErrResourceExists');
  assert.deepEqual((await client.get(DEPLOYMENTS, AT)).spec, existing.spec);
  const { items } = await client.list(EVENTS);
  assert.ok(items.some(({ reason }) => reason === 'ErrResourceExists'));
  await client.delete(DEPLOYMENTS, AT);
  assert.equal(await sample.ready(30_000), 'ReplicasAvailable');
});

test('deletes its Deployment when it is deleted', async (context) => {
  const { client, clock, sample } = await start(context);
  await sample.create();
  await clock.advance(10_000);
  await sample.delete();
  await clock.advance(60_000);
  assert.deepEqual((await client.list(DEPLOYMENTS)).items, []);
  assert.deepEqual((await client.list(PODS)).items, []);
});

test('is ready after failed requests, lost responses and broken watches', async (context) => {
  const { server, sample } = await start(context);
  const { faults } = server;
  faults.failNext({ verb: 'create', resource: 'deployments' }, 503, { times: 3 });
  faults.failNext({ verb: 'create', resource: 'deployments' }, 'lostResponse');
  faults.failNext({ verb: 'patch', resource: 'staticsites' }, 'reset', { times: 2 });
  await sample.create({ replicas: 2 });
  assert.equal(await sample.ready(60_000), 'ReplicasAvailable');
  await sample.change({ replicas: 3 });
  faults.dropWatches();
  faults.expireHistory();
  assert.equal(await sample.ready(120_000), 'ReplicasAvailable');
});

test('writes nothing while nothing changes, also after a restart', async (context) => {
  const { clock, server, sample, restart } = await start(context);
  await sample.create();
  await clock.advance(60_000);
  // `OwnedObjects` applies each object once after a start, to find fields that it no longer sets.
  await restart();
  const { revision } = server;
  await clock.advance(60_000);
  assert.equal(server.revision, revision);
  await restart();
  assert.equal(server.revision, revision);
});

test('applies a change that was made while it was stopped', async (context) => {
  const { client, sample, stopControllers, startControllers } = await start(context);
  await sample.create({ replicas: 2 });
  assert.equal(await sample.ready(10_000), 'ReplicasAvailable');
  await stopControllers();
  await sample.change({ replicas: 3 });
  assert.equal(await sample.ready(60_000), 'ReplicasAvailable');
  assert.equal((await client.get(DEPLOYMENTS, AT)).spec?.replicas, 2);
  await startControllers();
  assert.equal(await sample.ready(10_000), 'ReplicasAvailable');
  assert.equal((await sample.get()).status?.availableReplicas, 3);
});

// It takes longer than the default timeout of some test runners.
test(
  'keeps the rules of controllers in schedules with crashes, errors and stale caches',
  { timeout: 60_000 },
  async () => {
    const sample = load('samples/static-site.yaml');
    await explore({
      controllers: controllerOf('static-site'),
      objects: [load('deploy/crds/staticsites.example.com.yaml')],
      scenario: {
        'a user creates it': (client) => client.create(STATIC_SITES, sample),
        'the user scales it': (client) =>
          client.patch(STATIC_SITES, sample.metadata, {
            type: 'merge',
            body: { spec: { replicas: 3 } },
          }),
      },
      budget: { schedules: 100, seconds: 5 },
    });
  },
);

test('rejects invalid specs', async (context) => {
  const { sample } = await start(context);
  for (const spec of [{ replicas: -1 }, { replicas: 101 }, { image: '' }, { image: null }]) {
    await assert.rejects(sample.create(spec), (error) => isApiError(error, 'invalid'));
  }
});

// The last test: it compares the role with the requests of all tests above. `npm run rbac` writes the role.
test('has exactly the permissions that it needs', () => roleOf('static-site').verify());
