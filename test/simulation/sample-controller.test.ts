import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS } from '../../src/api/builtin.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import type { Foo } from '../../src/api/generated/foo.ts';
import { controllerReference } from '../../src/api/metadata.ts';
import { Simulation } from '../support/simulation.ts';

const FOO = { namespace: 'default', name: 'example-foo' };

/** The CRD of sample-controller's users: without defaults, conditions and observedGeneration. */
function sampleControllerCrd({ withStatus }: { withStatus: boolean }) {
  const schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          deploymentName: { type: 'string' },
          replicas: { type: 'integer', minimum: 1, maximum: 10 },
        },
      },
      status: { type: 'object', properties: { availableReplicas: { type: 'integer' } } },
    },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'foos.samplecontroller.k8s.io',
      annotations: { 'api-approved.kubernetes.io': 'unapproved, experimental-only' },
    },
    spec: {
      group: 'samplecontroller.k8s.io',
      scope: 'Namespaced',
      names: { kind: 'Foo', plural: 'foos', singular: 'foo', listKind: 'FooList' },
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          ...(withStatus ? { subresources: { status: {} } } : {}),
        },
      ],
    },
  };
}

describe('A migration from sample-controller', () => {
  let simulation: Simulation;
  let requests: string[];

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster();
    requests = [];
  });
  afterEach(() => simulation.end());

  const startDaemon = () =>
    simulation.startDaemonBehind(
      (handler) => (request) => {
        if (request.method !== 'GET' && !request.path.includes('/events')) {
          requests.push(`${request.method} ${request.path.split('?')[0]}`);
        }
        return handler(request);
      },
      { controllers: ['foo'] },
    );
  const foo = () => simulation.client.get(FOOS, FOO);
  const deployment = () => simulation.client.get(DEPLOYMENTS, FOO);

  /** Creates what sample-controller has left: a Foo that is rolled out. */
  async function inherit(options: { withStatus: boolean; replicas?: number }): Promise<Foo> {
    await simulation.client.create(CUSTOM_RESOURCE_DEFINITIONS, sampleControllerCrd(options));
    const { replicas = 1 } = options;
    const existing = await simulation.client.create(FOOS, {
      apiVersion: 'samplecontroller.k8s.io/v1alpha1',
      kind: 'Foo',
      metadata: FOO,
      spec: { deploymentName: 'example-foo', replicas },
    });
    const labels = { app: 'nginx', controller: 'example-foo' };
    await simulation.client.create(
      DEPLOYMENTS,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { ...FOO, ownerReferences: [controllerReference(existing)] },
        spec: {
          replicas,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
          },
        },
      },
      { fieldManager: 'sample-controller' },
    );
    await simulation.until(
      'available',
      async () => (await deployment()).status?.availableReplicas === replicas,
    );
    if (options.withStatus) {
      const body = { status: { availableReplicas: replicas } };
      await simulation.client.patch(FOOS, FOO, { type: 'merge', body }, { subresource: 'status' });
    }
    return existing;
  }

  it('creates, writes and reports nothing for existing objects', async () => {
    await inherit({ withStatus: true });
    const before = [await foo(), await deployment()];
    startDaemon();
    await simulation.pass(60_000);
    assert.deepEqual([await foo(), await deployment()], before);
    assert.deepEqual(requests, [
      'PATCH /apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos/example-foo/status',
    ]);
    assert.deepEqual(await simulation.events('sample-controller'), []);
    assert.deepEqual(simulation.errors(), []);
  });

  it('writes status fields that the CRD prunes once, not at every resync', async () => {
    await inherit({ withStatus: true });
    simulation.startDaemonBehind(
      (handler) => (request) => {
        if (request.path.includes('/status')) requests.push(request.method);
        return handler(request);
      },
      { controllers: ['foo'], resyncPeriodMs: 30_000 },
    );
    await simulation.pass(10 * 60_000);
    assert.deepEqual(requests, ['PATCH']);
  });

  it('updates the existing Deployment, also fields of its previous field manager', async () => {
    await inherit({ withStatus: true });
    startDaemon();
    await simulation.pass(5000);
    const body = { spec: { replicas: 3 } };
    await simulation.client.patch(FOOS, FOO, { type: 'merge', body });
    await simulation.until(
      'three available',
      async () => ((await foo()).status as { availableReplicas?: number }).availableReplicas === 3,
    );
    assert.equal((await deployment()).spec?.replicas, 3);
    assert.deepEqual(simulation.errors(), []);
  });

  it('does not change the replicas of a Deployment if the Foo sets none', async () => {
    await inherit({ withStatus: true });
    await simulation.client.patch(FOOS, FOO, {
      type: 'json',
      body: [{ op: 'remove', path: '/spec/replicas' }],
    });
    startDaemon();
    await simulation.client.patch(DEPLOYMENTS, FOO, {
      type: 'merge',
      body: { spec: { replicas: 2 } },
    });
    await simulation.pass(60_000);
    assert.equal((await deployment()).spec?.replicas, 2);
  });

  it('reports a CRD without a status subresource once, and reconciles without it', async () => {
    await inherit({ withStatus: false });
    startDaemon();
    await simulation.pass(60_000);
    await simulation.client.patch(FOOS, FOO, { type: 'merge', body: { spec: { replicas: 2 } } });
    await simulation.until('scaled', async () => (await deployment()).spec?.replicas === 2);
    await simulation.pass(60_000);
    const [line, ...more] = simulation.errors();
    assert.match(
      line ?? '',
      /^The status cannot be written: its resource has no status subresource/,
    );
    assert.deepEqual(more, []);
    const { generation } = (await foo()).metadata;
    assert.equal(generation, 2, 'only the user changed the Foo');
  });

  it('reports a Foo with an empty deploymentName, and does not retry it', async () => {
    await simulation.client.create(
      CUSTOM_RESOURCE_DEFINITIONS,
      sampleControllerCrd({ withStatus: true }),
    );
    startDaemon();
    await simulation.client.create(FOOS, {
      apiVersion: 'samplecontroller.k8s.io/v1alpha1',
      kind: 'Foo',
      metadata: FOO,
      spec: { deploymentName: '', replicas: 1 },
    });
    await simulation.pass(60 * 60_000);
    assert.equal(simulation.errors().length, 1, simulation.errors().join('\n'));
    assert.match(simulation.errors().join(), /spec\.deploymentName is empty: set it/);
  });
});
