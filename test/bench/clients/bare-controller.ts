/**
 * Baseline of the main job: lists the Foos, then watches them, and sends the three requests for each Foo. No
 * cache, no retry, no deduplication: the sync that its own status write would cause is skipped.
 */
import { parseArgs } from 'node:util';
import { readKubeconfig, ServerApi } from '../support/server-api.ts';

interface Foo {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
  };
  readonly spec: { readonly deploymentName: string; readonly replicas: number };
  readonly status?: object;
}

const { values } = parseArgs({ options: { workers: { type: 'string', default: '10' } } });
const workers = Number(values.workers);
const FOOS = '/apis/samplecontroller.k8s.io/v1alpha1';
const address = readKubeconfig(process.env['KUBECONFIG']!);
const api = new ServerApi(address, workers);

const waiting: Foo[] = [];
let running = 0;

const { items, metadata } = await api.request<{
  items: Foo[];
  metadata: { resourceVersion: string };
}>('GET', `${FOOS}/foos`);
for (const foo of items) add(foo);

const query = `watch=true&resourceVersion=${metadata.resourceVersion}`;
const watch = new ServerApi(address, 1);
const decoder = new TextDecoder();
let rest = '';
for await (const chunk of await watch.open('GET', `${FOOS}/foos?${query}`)) {
  const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split('\n');
  rest = lines.pop()!;
  for (const line of lines) {
    const event = JSON.parse(line) as { type: string; object: Foo };
    if (event.type === 'ADDED') add(event.object);
  }
}

function add(foo: Foo): void {
  if (foo.status) return;
  waiting.push(foo);
  if (running === workers) return;
  running++;
  void work();
}

async function work(): Promise<void> {
  for (let foo = waiting.shift(); foo; foo = waiting.shift()) await sync(foo);
  running--;
}

async function sync(foo: Foo): Promise<void> {
  const { name, namespace, uid, generation } = foo.metadata;
  const owner = { apiVersion: 'samplecontroller.k8s.io/v1alpha1', kind: 'Foo', name, uid };
  const labels = { app: 'nginx', controller: name };
  await api.request('POST', `/apis/apps/v1/namespaces/${namespace}/deployments`, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: foo.spec.deploymentName,
      namespace,
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    },
    spec: {
      replicas: foo.spec.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
      },
    },
  });
  const now = new Date().toISOString().replace(/\.\d+/, '');
  await api.request('POST', `/api/v1/namespaces/${namespace}/events`, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${uid}`, namespace },
    involvedObject: { ...owner, namespace, resourceVersion: foo.metadata.resourceVersion },
    type: 'Normal',
    reason: 'Synced',
    message: 'Foo synced successfully',
    source: { component: 'sample-controller' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  });
  const condition = {
    lastTransitionTime: now,
    observedGeneration: generation,
    message: `0 of ${foo.spec.replicas} replicas are available`,
  };
  await api.request('PUT', `${FOOS}/namespaces/${namespace}/foos/${name}/status`, {
    ...foo,
    status: {
      observedGeneration: generation,
      availableReplicas: 0,
      selector: `app=nginx,controller=${name}`,
      conditions: [
        { type: 'Ready', status: 'False', reason: 'DeploymentNotAvailable', ...condition },
        { type: 'Reconciling', status: 'True', reason: 'Progressing', ...condition },
      ],
    },
  });
}
