import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { HttpClient, isApiError, runControllers, silentLogger } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, EVENTS, PODS } from 'crd-controller/kinds';
import { ApiServer, Cluster, FakeClock } from 'crd-controller/testing';
import { parse } from 'yaml';
import { staticSiteController } from '../src/controller.ts';
import { STATIC_SITES } from '../src/generated/static-site.ts';

const AT = { namespace: 'default', name: 'example' };

/** Starts an API server, cluster controllers and the controller, in virtual time. */
async function startCluster(context: TestContext) {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, load('crds/staticsites.example.com.yaml'));
  const stop = new AbortController();
  const running = [
    new Cluster({ client, clock, log: silentLogger }).run(stop.signal),
    runControllers(
      { client, clock, freeze: true, controllers: (kit) => [staticSiteController(kit)] },
      stop.signal,
    ),
  ];
  context.after(async () => {
    stop.abort();
    await clock.advance(60_000);
    await Promise.all(running);
  });
  const sample = load('samples/static-site.yaml');
  return {
    clock,
    server,
    client,
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

function load(path: string) {
  return parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
}

test('is ready when its Pods are ready', async (context) => {
  const { client, clock, create, ready } = await startCluster(context);
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
  const { client, clock, create, change, ready } = await startCluster(context);
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
  const { client, clock, create, ready } = await startCluster(context);
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
    'False: Deployment "example" already exists and is not managed by StaticSite',
  );
  assert.deepEqual((await client.get(DEPLOYMENTS, AT)).spec, existing.spec);
  const { items } = await client.list(EVENTS);
  assert.ok(items.some(({ reason }) => reason === 'DeploymentExists'));
  await client.delete(DEPLOYMENTS, AT);
  await clock.advance(30_000);
  assert.equal(await ready(), 'True: 2 of 2 replicas are available');
});

test('deletes its Deployment when it is deleted', async (context) => {
  const { client, clock, create } = await startCluster(context);
  await create();
  await clock.advance(10_000);
  await client.delete(STATIC_SITES, AT);
  await clock.advance(60_000);
  assert.deepEqual((await client.list(DEPLOYMENTS)).items, []);
  assert.deepEqual((await client.list(PODS)).items, []);
});

test('writes nothing while nothing changes', async (context) => {
  const { clock, server, create } = await startCluster(context);
  await create();
  await clock.advance(60_000);
  const { revision } = server;
  await clock.advance(60_000);
  assert.equal(server.revision, revision);
});

test('rejects invalid specs', async (context) => {
  const { create } = await startCluster(context);
  for (const spec of [{ replicas: -1 }, { replicas: 101 }, { image: '' }, { image: null }]) {
    await assert.rejects(create(spec), (error) => isApiError(error, 'invalid'));
  }
});
