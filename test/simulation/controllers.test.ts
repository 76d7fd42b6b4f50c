import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Simulation } from '../support/simulation.ts';
import { DEFAULT_CONTROLLERS } from '../support/own-program.ts';

describe('A daemon with several controllers', () => {
  let simulation: Simulation;
  let watches: string[];

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster();
    watches = [];
  });
  afterEach(() => simulation.end());

  /** Starts a daemon, records its watches, and fails the requests for which `fails` returns true. */
  const startDaemon = (fails: (path: string, method: string) => boolean = () => false) =>
    simulation.startDaemon(
      { controllers: [...DEFAULT_CONTROLLERS, 'pod-count'] },
      new HttpClient({
        server: 'https://simulated',
        handler: (request) => {
          if (/[?&]watch=true/.test(request.path)) watches.push(request.path.split('?')[0] ?? '');
          if (fails(request.path, request.method)) throw new Error('connection lost');
          return simulation.server.handler(request);
        },
      }),
    );
  const foo = (name: string, deploymentName: string = name) =>
    simulation.client.create(FOOS, {
      apiVersion: 'samplecontroller.k8s.io/v1alpha1',
      kind: 'Foo',
      metadata: { namespace: 'default', name },
      spec: { deploymentName, replicas: 1 },
    });
  const available = async (name: string) =>
    (await simulation.client.get(FOOS, { namespace: 'default', name })).status?.availableReplicas;

  it('watches each kind once, whatever the number of controllers that read it', async () => {
    for (const resource of [COUNTS, ATS, FOOS, WEB_APPS]) await simulation.installCrd(resource);
    startDaemon();
    await simulation.pass(5000);
    assert.deepEqual(watches.toSorted(), [
      '/api/v1/nodes',
      '/api/v1/pods',
      '/api/v1/services',
      '/apis/apps/v1/deployments',
      '/apis/cnat.programming-kubernetes.info/v1alpha1/ats',
      '/apis/demo.mark8s.io/v1/counts',
      '/apis/jiajunhuang.com/v1/webapps',
      '/apis/samplecontroller.k8s.io/v1alpha1/foos',
    ]);
  });

  it('delays only the controller whose CRD is missing', async () => {
    await simulation.installCrd(FOOS);
    startDaemon();
    await foo('early');
    await simulation.until('available', async () => (await available('early')) === 1);
    await simulation.installCrd(COUNTS);
    await simulation.applyCount();
    await simulation.until(
      'healthy',
      async () => (await simulation.count()).status?.healthy === true,
    );
    assert.deepEqual(simulation.errors(), []);
  });

  it('isolates an invalid object and a failing controller from the others', async () => {
    await simulation.installCrd(FOOS);
    await simulation.installCrd(COUNTS);
    startDaemon((path, method) => method === 'POST' && path.includes('/pods?'));
    await simulation.applyCount();
    await simulation.client.create(DEPLOYMENTS, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'default', name: 'taken' },
      spec: {
        selector: { matchLabels: { app: 'theirs' } },
        template: {
          metadata: { labels: { app: 'theirs' } },
          spec: { containers: [{ name: 'app', image: 'theirs' }] },
        },
      },
    });
    await foo('poison', 'taken');
    for (let at = 0; at < 5; at++) await foo(`foo-${at}`);
    await simulation.until('all others available', async () => {
      const numbers = await Promise.all([0, 1, 2, 3, 4].map((at) => available(`foo-${at}`)));
      return numbers.every((number) => number === 1);
    });
    assert.notEqual(await available('poison'), 1);
    assert.notEqual((await simulation.count()).status?.healthy, true);
  });
});
