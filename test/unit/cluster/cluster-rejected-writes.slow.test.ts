import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  CRON_JOBS,
  DAEMON_SETS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  JOBS,
  NAMESPACES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  SERVICE_ACCOUNTS,
  SERVICES,
  STATEFUL_SETS,
} from '../../../src/api/builtin.ts';
import { controllerOf, controllerReference } from '../../../src/api/metadata.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { discover } from '../../../src/client/discovery.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { emptyBody } from '../../../src/util/http.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { ClusterBench, NAMESPACE, templateOf } from './cluster-bench.ts';

/** Resources that cluster controllers write. */
const WRITTEN: readonly Resource[] = [
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  JOBS,
  NAMESPACES,
  PODS,
  REPLICA_SETS,
  SERVICE_ACCOUNTS,
];

const MINUTE_MS = 60_000;

/** Answers the first write of each kind to each path with 409, without doing it. */
function rejectingFirst(handler: HttpHandler): HttpHandler {
  const seen = new Set<string>();
  return async (request) => {
    const { method, path } = request;
    const write = `${method} ${path.replace(/\?.*/, '')}`;
    const isRejected = method !== 'GET' && !path.includes('/events') && !seen.has(write);
    seen.add(write);
    return isRejected ? { status: 409, headers: {}, body: emptyBody() } : handler(request);
  };
}

/** Changes objects so that each cluster controller creates, changes and deletes some. Returns what remains. */
async function lifeOfCluster(
  wrap: (handler: HttpHandler) => HttpHandler,
  observe: (bench: ClusterBench) => Promise<void> = () => Promise.resolve(),
) {
  const bench = new ClusterBench();
  const { client } = bench;
  const handler = wrap(bench.server.handler);
  const options = { events: { ttlMs: 10 * MINUTE_MS } };
  await bench.start(
    options,
    new HttpClient({ handler, server: 'https://test', clock: bench.clock }),
  );
  const selector = (app: string) => ({ matchLabels: { app } });
  const template = (app: string, spec: object = {}) => templateOf({ app }, spec);
  const labels = { app: 'orphan' };
  await bench.create(NAMESPACES, 'gone');
  for (const name of ['tainted', 'second']) {
    await bench.createNode(name, { spec: { unschedulable: true } });
  }
  const owner = await bench.create(CONFIG_MAPS, 'owner', { metadata: { finalizers: ['orphan'] } });
  const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid };
  for (const name of ['kept-1', 'kept-2']) {
    await bench.create(CONFIG_MAPS, name, { metadata: { ownerReferences: [reference] } });
  }
  const parent = await bench.create(CONFIG_MAPS, 'parent');
  const child = { ...reference, name: 'parent', uid: parent.metadata.uid };
  await bench.create(CONFIG_MAPS, 'child', { metadata: { ownerReferences: [child] } });
  await bench.createPod('orphan', {}, { labels });
  await bench.createPod('evicted', { nodeName: 'tainted' });
  await bench.createPod('unschedulable', { nodeSelector: { disk: 'none' } });
  await bench.createPod('deleted', { nodeName: 'node-1' });
  const inNamespace = { metadata: { namespace: 'gone' } };
  await bench.create(CONFIG_MAPS, 'content', inNamespace);
  const set = (app: string) => ({ replicas: 3, selector: selector(app), template: template(app) });
  await bench.create(REPLICA_SETS, 'orphan', { spec: set('orphan') });
  await bench.create(STATEFUL_SETS, 'stateful', { spec: { ...set('stateful'), serviceName: '' } });
  await bench.createDeployment('deployment', 2);
  await bench.create(DAEMON_SETS, 'daemon', {
    spec: { selector: selector('daemon'), template: template('daemon') },
  });
  await bench.create(JOBS, 'job', {
    spec: {
      completions: 2,
      template: template('job', {
        containers: [{ name: 'app', image: 'busybox', command: ['true'] }],
        restartPolicy: 'Never',
      }),
      ttlSecondsAfterFinished: 60,
    },
  });
  await bench.create(SERVICES, 'service', {
    spec: { selector: { app: 'deployment' }, ports: [{ port: 80 }] },
  });
  await bench.pass(2 * MINUTE_MS);
  const taints = [{ key: 'bad', effect: 'NoExecute' }];
  await bench.merge(NODES, 'tainted', { spec: { taints } });
  for (const name of ['owner', 'parent']) {
    await client.delete(CONFIG_MAPS, { name, namespace: NAMESPACE });
  }
  await client.delete(PODS, { name: 'deleted', namespace: NAMESPACE });
  await client.delete(NAMESPACES, { name: 'gone' });
  await bench.merge(REPLICA_SETS, 'orphan', { spec: { replicas: 1 } });
  await bench.merge(STATEFUL_SETS, 'stateful', { spec: { replicas: 1 } });
  const image = { containers: [{ name: 'app', image: 'nginx:2' }] };
  await bench.merge(DAEMON_SETS, 'daemon', { spec: { template: { spec: image } } });
  await bench.pass(3 * MINUTE_MS);
  const events = await bench.events('stateful');
  const remaining: string[] = [];
  for (const resource of WRITTEN) {
    const { items } = await client.list<KubernetesObject>(resource);
    for (const item of items) remaining.push(`${resource.plural} ${describeObject(item)}`);
  }
  await observe(bench);
  await bench.end();
  return { remaining: remaining.toSorted(), events };
}

/** Returns the name, or the prefix of a generated name, with the state that matters. */
function describeObject(object: KubernetesObject & { status?: { phase?: string } }): string {
  const { name, generateName, namespace, deletionTimestamp, finalizers = [] } = object.metadata;
  const { ownerReferences = [] } = object.metadata;
  return JSON.stringify([
    namespace,
    generateName ?? name.replace(/-[0-9a-f]{8,10}$/, ''),
    object.status?.phase,
    deletionTimestamp === undefined,
    finalizers,
    ownerReferences.map(({ kind }) => kind),
    controllerOf(object)?.name,
  ]);
}

describe('Cluster controllers', () => {
  it('repeat each write that the server rejects with 409', async () => {
    const expected = await lifeOfCluster((handler) => handler);
    const actual = await lifeOfCluster(rejectingFirst);
    assert.deepEqual(actual.remaining, expected.remaining);
    assert.deepEqual(actual.events, expected.events);
  });

  it('write nothing, also no events, when an annotation of each object changes', async () => {
    const writes: string[] = [];
    let isSettled = false;
    const recording =
      (handler: HttpHandler): HttpHandler =>
      (request) => {
        const { method, path } = request;
        // Events expire.
        const isIgnored = method === 'GET' || (method === 'DELETE' && path.includes('/events/'));
        if (isSettled && !isIgnored) writes.push(`${method} ${path.replace(/\?.*/, '')}`);
        return handler(request);
      };
    await lifeOfCluster(recording, async (bench) => {
      const { client } = bench;
      for (const name of ['unschedulable', 'evicted']) {
        await client.delete(PODS, { name, namespace: NAMESPACE }).catch(() => undefined);
      }
      const template = { spec: { ...templateOf({}).spec, restartPolicy: 'Never' } };
      const cron = await bench.create(CRON_JOBS, 'cron', {
        spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template } } },
      });
      const ownerReferences = [controllerReference(cron)];
      const containers = [{ name: 'app', image: 'busybox', command: ['true'] }];
      const ended = { spec: { ...template.spec, containers } };
      await bench.create(JOBS, 'ended', {
        metadata: { ownerReferences },
        spec: { template: ended },
      });
      await bench.create(POD_DISRUPTION_BUDGETS, 'budget', {
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'deployment' } } },
      });
      await bench.pass(5 * MINUTE_MS);
      isSettled = true;
      const { resources } = await discover(client, new AbortController().signal);
      // Controllers copy other annotations.
      const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
      const patch = { type: 'merge', body: { metadata: { annotations } } } as const;
      for (const resource of resources) {
        if (!resource.verbs.includes('patch') || resource.plural === 'events') continue;
        for (const { metadata } of (await client.list(resource)).items) {
          await client.patch(resource, metadata, patch);
        }
      }
      await bench.pass(2 * MINUTE_MS);
    });
    // An annotation changes the generation of a Deployment.
    assert.deepEqual(writes, [
      `PATCH /apis/apps/v1/namespaces/${NAMESPACE}/deployments/deployment/status`,
    ]);
  });
});
