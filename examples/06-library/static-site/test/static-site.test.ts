import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isApiError } from 'crd-controller';
import { DEPLOYMENTS, EVENTS, PODS } from 'crd-controller/kinds';
import { staticSiteController } from '../src/controllers/static-site.ts';
import { STATIC_SITES } from '../src/generated/static-site.ts';
import { load, roleOf, startCluster } from './cluster.ts';

const AT = { namespace: 'default', name: 'static-site-sample' };
const ROLE = roleOf('static-site');

async function start(context: TestContext) {
  const cluster = await startCluster(context, ROLE, (kit) => [staticSiteController(kit)]);
  const { client } = cluster;
  const sample = load('samples/static-site.yaml');
  return {
    ...cluster,
    create: (spec: object = {}) =>
      client.create(STATIC_SITES, { ...sample, spec: { ...sample.spec, ...spec } }),
    change: (spec: object) => client.patch(STATIC_SITES, AT, { type: 'merge', body: { spec } }),
    ready: async () => {
      const { status } = await client.get(STATIC_SITES, AT);
      const { status: ready, message } =
        status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
      return `${ready}: ${message}`;
    },
  };
}

test('is ready when its Pods are ready', async (context) => {
  const { client, clock, create, ready } = await start(context);
  await create({ replicas: 2 });
  await clock.advance(10_000);
  assert.equal(await ready(), 'True: 2 of 2 replicas are available');
  const { items } = await client.list(PODS, { namespace: 'default' });
  assert.deepEqual(
    items.map(({ spec }) => spec?.containers[0]?.image),
    ['nginx:1.29', 'nginx:1.29'],
  );
});

test('updates its Deployment after changes and creates it again after a deletion', async (context) => {
  const { client, clock, create, change, ready } = await start(context);
  await create({ replicas: 2 });
  await clock.advance(10_000);
  await change({ replicas: 3, image: 'nginx:1.30' });
  await clock.advance(60_000);
  assert.equal(await ready(), 'True: 3 of 3 replicas are available');
  await client.delete(DEPLOYMENTS, AT);
  await clock.advance(60_000);
  assert.equal(await ready(), 'True: 3 of 3 replicas are available');
  const { spec } = await client.get(DEPLOYMENTS, AT);
  assert.equal(spec?.template.spec?.containers[0]?.image, 'nginx:1.30');
});

test('does not change an existing Deployment of another owner', async (context) => {
  const { client, clock, create, ready } = await start(context);
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
  await create();
  await clock.advance(10_000);
  assert.equal(
    await ready(),
    'False: Deployment "static-site-sample" already exists and is not managed by StaticSite',
  );
  assert.deepEqual((await client.get(DEPLOYMENTS, AT)).spec, existing.spec);
  const { items } = await client.list(EVENTS);
  assert.ok(items.some(({ reason }) => reason === 'DeploymentExists'));
  await client.delete(DEPLOYMENTS, AT);
  await clock.advance(30_000);
  assert.equal(await ready(), 'True: 2 of 2 replicas are available');
});

test('deletes its Deployment when it is deleted', async (context) => {
  const { client, clock, create } = await start(context);
  await create();
  await clock.advance(10_000);
  await client.delete(STATIC_SITES, AT);
  await clock.advance(60_000);
  assert.deepEqual((await client.list(DEPLOYMENTS)).items, []);
  assert.deepEqual((await client.list(PODS)).items, []);
});

test('is ready after failed requests, lost responses and broken watches', async (context) => {
  const { clock, server, create, change, ready } = await start(context);
  const { faults } = server;
  faults.failNext({ verb: 'create', resource: 'deployments' }, 503, { times: 3 });
  faults.failNext({ verb: 'create', resource: 'deployments' }, 'lostResponse');
  faults.failNext({ verb: 'patch', resource: 'staticsites' }, 'reset', { times: 2 });
  await create({ replicas: 2 });
  await clock.advance(60_000);
  assert.equal(await ready(), 'True: 2 of 2 replicas are available');
  await change({ replicas: 3 });
  faults.dropWatches();
  faults.expireHistory();
  await clock.advance(120_000);
  assert.equal(await ready(), 'True: 3 of 3 replicas are available');
});

test('writes nothing while nothing changes, also after a restart', async (context) => {
  const { clock, server, create, restart } = await start(context);
  await create();
  await clock.advance(60_000);
  const { revision } = server;
  await clock.advance(60_000);
  assert.equal(server.revision, revision);
  await restart();
  assert.equal(server.revision, revision);
});

test('rejects invalid specs', async (context) => {
  const { create } = await start(context);
  for (const spec of [{ replicas: -1 }, { replicas: 101 }, { image: '' }, { image: null }]) {
    await assert.rejects(create(spec), (error) => isApiError(error, 'invalid'));
  }
});

// The last test: it compares the role with the requests of all tests above. `npm run rbac` writes the role.
test('has a role with exactly the permissions that it needs', () => ROLE.verify());
