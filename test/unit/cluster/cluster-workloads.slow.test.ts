import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  EVENTS,
  NAMESPACES,
  PODS,
  REPLICA_SETS,
  SERVICES,
} from '../../../src/api/builtin.ts';
import type { Deployment, Pod, ReplicaSet } from '../../../src/api/builtin.ts';
import type { Draft } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { controllerOf, controllerReference } from '../../../src/api/metadata.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Cluster } from '../../../src/cluster/cluster.ts';
import { REVISION } from '../../../src/cluster/workloads/deployment.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { ClusterBench } from './cluster-bench.ts';

const NAMESPACE = 'shop';
const LABELS = { app: 'web' };

/** Annotations of a ReplicaSet of a Deployment with two replicas. */
const SIZES = {
  'deployment.kubernetes.io/desired-replicas': '2',
  'deployment.kubernetes.io/max-replicas': '3',
};

interface Sent {
  readonly what: string;
  readonly body: {
    readonly preconditions?: unknown;
    readonly metadata?: { readonly uid?: string; readonly annotations?: object };
  };
}

/** Workload controllers without nodes; tests make Pods ready. */
class Bench {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  readonly client = new HttpClient({
    handler: this.server.handler,
    server: 'https://test',
    clock: this.clock,
  });
  /** Writes of the controllers. */
  readonly sent: Sent[] = [];
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  async start(): Promise<void> {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
    await this.client.create(NAMESPACES, namespace);
    const client = new HttpClient({
      handler: (request) => {
        if (request.method !== 'GET') {
          const [path = ''] = request.path.split('?');
          const what = `${request.method} ${path.split('/').slice(-2).join('/')}`;
          this.sent.push({ what, body: JSON.parse(String(request.body ?? '{}')) as Sent['body'] });
        }
        return this.server.handler(request);
      },
      server: 'https://test',
      clock: this.clock,
    });
    const cluster = new Cluster(
      { client, clock: this.clock, log: silentLogger },
      { controllers: ['-kubelet', '-scheduler', '-serviceaccount'] },
    );
    this.#running = cluster.run(this.#stop.signal);
    await this.clock.advance(1000);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.clock.advance(1000);
    await this.#running;
  }

  async pods(): Promise<Pod[]> {
    return (await this.client.list(PODS, { namespace: NAMESPACE })).items;
  }

  async sets(): Promise<ReplicaSet[]> {
    return (await this.client.list(REPLICA_SETS, { namespace: NAMESPACE })).items;
  }

  /** Returns the events about objects of a kind as `Reason message`, sorted. */
  async events(kind: string): Promise<string[]> {
    const { items } = await this.client.list(EVENTS, { namespace: NAMESPACE });
    return items
      .filter(({ involvedObject }) => involvedObject.kind === kind)
      .map(({ reason, message }) => `${reason} ${message}`)
      .toSorted();
  }

  async setStatus(pod: Pod, status: object): Promise<void> {
    const options = { subresource: 'status' };
    await this.client.patch(PODS, pod.metadata, { type: 'merge', body: { status } }, options);
  }

  /** Makes all Pods ready and waits for the controllers. */
  async ready(): Promise<void> {
    const lastTransitionTime = new Date(this.clock.now()).toISOString().replace(/\.\d+/, '');
    for (const pod of await this.pods()) {
      if (pod.status?.conditions?.some(({ type }) => type === 'Ready')) continue;
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime }];
      await this.setStatus(pod, { phase: 'Running', conditions });
    }
    await this.clock.advance(100);
  }
}

function template(image = 'nginx:1') {
  return { metadata: { labels: LABELS }, spec: { containers: [{ name: 'app', image }] } };
}

function setDraft(spec: object = {}): Draft<ReplicaSet> {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: { replicas: 2, selector: { matchLabels: LABELS }, template: template(), ...spec },
  };
}

const AT = { namespace: NAMESPACE, name: 'web' };

describe('A ReplicaSet', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = new Bench();
    await bench.start();
  });
  afterEach(() => bench.end());

  const scale = async (replicas: number) => {
    await bench.client.patch(REPLICA_SETS, AT, { type: 'merge', body: { spec: { replicas } } });
    await bench.clock.advance(100);
  };

  it('creates as many controlled Pods from its template as replicas', async () => {
    const { metadata, ...rest } = template();
    // As upstream, a name in the template is ignored.
    const named = { metadata: { ...metadata, name: 'web' }, ...rest };
    const set = await bench.client.create(REPLICA_SETS, setDraft({ template: named }));
    await bench.clock.advance(100);
    const pods = await bench.pods();
    assert.equal(pods.length, 2);
    for (const pod of pods) {
      assert.equal(controllerOf(pod)?.uid, set.metadata.uid);
      assert.deepEqual(pod.metadata.labels, LABELS);
      assert.ok(pod.metadata.name.startsWith('web-'));
      assert.equal(pod.spec?.containers[0]?.image, 'nginx:1');
    }
  });

  it('counts all, labelled, ready and available Pods', async () => {
    await bench.client.create(REPLICA_SETS, setDraft({ minReadySeconds: 10 }));
    await bench.clock.advance(100);
    const status = async () => (await bench.client.get(REPLICA_SETS, AT)).status;
    assert.deepEqual(await status(), {
      replicas: 2,
      fullyLabeledReplicas: 2,
      observedGeneration: 1,
      terminatingReplicas: 0,
    });
    await bench.ready();
    assert.equal((await status())?.readyReplicas, 2);
    assert.equal((await status())?.availableReplicas, undefined);
    await bench.clock.advance(11_000);
    assert.equal((await status())?.availableReplicas, 2);
  });

  it('replaces Pods that have finished or are being deleted, and ignores Pods of other owners', async () => {
    const stray: Draft<Pod> = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'stray',
        namespace: NAMESPACE,
        labels: LABELS,
        ownerReferences: [
          { apiVersion: 'example.com/v1', kind: 'Task', name: 'a', uid: 'b', controller: true },
        ],
      },
      spec: { containers: [{ name: 'app', image: 'x' }] },
    };
    await bench.client.create(PODS, stray);
    await bench.client.create(REPLICA_SETS, setDraft({ replicas: 1 }));
    await bench.clock.advance(100);
    const own = async () =>
      (await bench.pods()).filter((pod) => controllerOf(pod)?.kind === 'ReplicaSet');
    const [first] = await own();
    await bench.setStatus(first!, { phase: 'Failed' });
    await bench.clock.advance(100);
    assert.equal((await own()).length, 2);
    await scale(0);
    const left = await bench.pods();
    assert.ok(left.some(({ metadata }) => metadata.name === 'stray'));
    assert.deepEqual(
      left.filter((pod) => pod.metadata.name !== 'stray').map((pod) => pod.status?.phase),
      ['Failed'],
    );
  });

  it('adopts Pods that its selector matches, also those that come later', async () => {
    const orphan = (name: string): Draft<Pod> => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: NAMESPACE, labels: LABELS },
      spec: { containers: [{ name: 'app', image: 'x' }] },
    });
    await bench.client.create(PODS, orphan('first'));
    const { metadata } = await bench.client.create(REPLICA_SETS, setDraft({ replicas: 1 }));
    await bench.clock.advance(1000);
    const [first, ...others] = await bench.pods();
    assert.deepEqual(others, []);
    assert.equal(controllerOf(first!)?.uid, metadata.uid);
    await bench.setStatus(first!, { phase: 'Running' });
    await bench.client.create(PODS, orphan('second'));
    await bench.clock.advance(1000);
    assert.deepEqual(
      (await bench.pods()).map((pod) => pod.metadata.name),
      ['first'],
      'the adopted surplus Pod is deleted',
    );
  });

  it('releases and replaces a Pod that its selector no longer matches', async () => {
    await bench.client.create(REPLICA_SETS, setDraft({ replicas: 1 }));
    await bench.clock.advance(100);
    const [pod] = await bench.pods();
    const body = { metadata: { labels: { app: 'debug' } } };
    await bench.client.patch(PODS, pod!.metadata, { type: 'merge', body });
    await bench.clock.advance(1000);
    const pods = await bench.pods();
    assert.equal(pods.length, 2);
    const released = pods.find(({ metadata }) => metadata.name === pod!.metadata.name);
    assert.equal(released?.metadata.ownerReferences, undefined);
  });

  it('records events, and reports in a condition that Pods cannot be created', async () => {
    bench.server.faults.failNext({ resource: 'pods', verb: 'create' }, 403, { times: 2 });
    await bench.client.create(REPLICA_SETS, setDraft({ replicas: 1 }));
    await bench.clock.advance(1);
    const conditions = async () => (await bench.client.get(REPLICA_SETS, AT)).status?.conditions;
    assert.deepEqual(
      (await conditions())?.map(({ type, status, reason }) => [type, status, reason]),
      [['ReplicaFailure', 'True', 'FailedCreate']],
    );
    const [first] = (await conditions()) ?? [];
    bench.server.faults.failNext({ resource: 'pods', verb: 'create' }, 400);
    await bench.clock.advance(10);
    assert.deepEqual(await conditions(), [first], 'the first failure is kept');
    await bench.clock.advance(10_000);
    assert.equal(await conditions(), undefined);
    await scale(0);
    const events = await bench.events('ReplicaSet');
    assert.match(
      events.find((event) => event.startsWith('FailedCreate')) ?? '',
      /Error creating: /,
    );
    const created = events.find((event) => event.startsWith('SuccessfulCreate'));
    const name = created?.replace('SuccessfulCreate Created pod: ', '');
    assert.ok(events.includes(`SuccessfulDelete Deleted pod: ${name}`));
  });

  it('deletes surplus Pods by priority and uid', async () => {
    await bench.client.create(REPLICA_SETS, setDraft({ replicas: 3 }));
    await bench.clock.advance(100);
    const [unready, ...others] = await bench.pods();
    for (const pod of others) {
      await bench.setStatus(pod, {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True' }],
      });
    }
    await bench.clock.advance(100);
    bench.sent.length = 0;
    await scale(2);
    const deletions = bench.sent.filter(({ what }) => what.startsWith('DELETE'));
    assert.deepEqual(
      deletions.map(({ body }) => body.preconditions),
      [{ uid: unready?.metadata.uid }],
    );
    assert.equal((await bench.client.get(REPLICA_SETS, AT)).status?.replicas, 2);
  });

  it('reports no conflict as a failure, and counts only its own terminating Pods', async () => {
    const names = ['web', 'other'];
    for (const name of names) {
      const draft = setDraft({ replicas: 1 });
      const labels = { app: name };
      const spec = { ...draft.spec, selector: { matchLabels: labels } };
      const metadata = { ...draft.metadata, name };
      const held = { labels, finalizers: ['test/keep'], annotations: { a: 'b' } };
      await bench.client.create(REPLICA_SETS, {
        ...draft,
        metadata,
        spec: { ...spec, template: { ...template(), metadata: held } },
      });
    }
    await bench.clock.advance(100);
    const pods = await bench.pods();
    for (const { metadata } of pods) {
      assert.deepEqual([metadata.finalizers, metadata.annotations], [['test/keep'], { a: 'b' }]);
    }
    bench.server.faults.failNext({ resource: 'pods', verb: 'delete' }, 409, { times: 2 });
    await scale(0);
    const status = async () => (await bench.client.get(REPLICA_SETS, AT)).status;
    await bench.clock.advance(1000);
    assert.ok(!JSON.stringify(bench.sent).includes('ReplicaFailure'));
    const other = pods.find(({ metadata }) => metadata.labels?.['app'] === 'other');
    await bench.client.delete(PODS, other!.metadata);
    await bench.setStatus(other!, { message: 'changed' });
    await scale(0);
    assert.equal((await status())?.terminatingReplicas, 1);
  });

  it('deletes the Pod with the lowest cost, and then one of a node with others of the Deployment', async () => {
    const owner = await bench.client.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: AT,
    });
    const ownerReferences = [controllerReference(owner)];
    const labels = (revision: string) => ({ app: 'web', revision });
    const set = (name: string, replicas: number) => ({
      ...setDraft({
        replicas,
        selector: { matchLabels: labels(name) },
        template: { ...template(), metadata: { labels: labels(name) } },
      }),
      metadata: { ...AT, name, ownerReferences },
    });
    const createPod = (name: string, revision: string, nodeName: string, cost: string) =>
      bench.client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          ...AT,
          name,
          labels: labels(revision),
          annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost },
        },
        spec: { nodeName, containers: [{ name: 'app', image: 'a' }] },
      });
    await createPod('a', 'web', 'node-1', '0');
    await createPod('b', 'web', 'node-2', '0');
    await createPod('c', 'web', 'node-3', '-1');
    await createPod('d', 'old', 'node-1', '0');
    await bench.client.create(REPLICA_SETS, set('old', 1));
    await bench.client.create(REPLICA_SETS, set('web', 3));
    await bench.clock.advance(1000);
    const names = async () =>
      (await bench.pods())
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name);
    await scale(2);
    assert.deepEqual(await names(), ['a', 'b', 'd']);
    await scale(1);
    assert.deepEqual(await names(), ['b', 'd']);
  });

  it('creates no Pods while it is being deleted', async () => {
    const draft = setDraft();
    const metadata = { ...draft.metadata, finalizers: ['test/keep'] };
    await bench.client.create(REPLICA_SETS, { ...draft, metadata });
    await bench.clock.advance(100);
    await bench.client.delete(REPLICA_SETS, AT);
    const [pod] = await bench.pods();
    await bench.client.delete(PODS, pod!.metadata);
    await bench.clock.advance(1000);
    assert.equal((await bench.pods()).length, 1);
  });
});

describe('A Deployment', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = new Bench();
    await bench.start();
  });
  afterEach(() => bench.end());

  const draft = (spec: object = {}): Draft<Deployment> => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: NAMESPACE, annotations: { team: 'a' } },
    spec: { replicas: 2, selector: { matchLabels: LABELS }, template: template(), ...spec },
  });
  const create = async (spec: object = {}) => {
    const created = await bench.client.create(DEPLOYMENTS, draft(spec));
    await bench.clock.advance(100);
    return created;
  };
  const change = async (spec: object) => {
    await bench.client.patch(DEPLOYMENTS, AT, { type: 'merge', body: { spec } });
    await bench.clock.advance(100);
  };
  const live = () => bench.client.get(DEPLOYMENTS, AT);
  const condition = async (type: string) =>
    (await live()).status?.conditions?.find((one) => one.type === type);
  /** Makes Pods ready until nothing changes. */
  const settle = async () => {
    for (let round = 0; round < 10; round++) await bench.ready();
  };
  const images = async () =>
    (await bench.pods()).map((pod) => pod.spec?.containers[0]?.image ?? '').toSorted();

  it('creates a controlled ReplicaSet with template hash and revision', async () => {
    const deployment = await create();
    const [set, ...others] = await bench.sets();
    assert.deepEqual(others, []);
    assert.equal(controllerOf(set!)?.uid, deployment.metadata.uid);
    const hash = set?.metadata.labels?.['pod-template-hash'];
    assert.equal(set?.metadata.name, `web-${hash}`);
    assert.deepEqual(set.metadata.annotations, { ...SIZES, team: 'a', [REVISION]: '1' });
    assert.deepEqual(set.spec?.selector.matchLabels, { ...LABELS, 'pod-template-hash': hash });
    assert.equal((await live()).metadata.annotations?.[REVISION], '1');
    assert.equal((await live()).metadata.generation, 1);
  });

  it('reports the rollout: progressing, available, complete', async () => {
    await create();
    assert.equal((await condition('Progressing'))?.reason, 'ReplicaSetUpdated');
    assert.equal((await condition('Available'))?.status, 'False');
    assert.equal((await live()).status?.unavailableReplicas, 2);
    await settle();
    const { status } = await live();
    assert.equal(status?.observedGeneration, 1);
    assert.equal(status.replicas, 2);
    assert.equal(status.updatedReplicas, 2);
    assert.equal(status.readyReplicas, 2);
    assert.equal(status.availableReplicas, 2);
    assert.equal(status.unavailableReplicas, undefined);
    assert.equal((await condition('Progressing'))?.reason, 'NewReplicaSetAvailable');
    assert.equal((await condition('Available'))?.status, 'True');
  });

  it('replaces its Pods step by step after a template change, and keeps the old ReplicaSet', async () => {
    await create({ replicas: 4, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } });
    await settle();
    await change({ template: template('nginx:2') });
    assert.deepEqual(await images(), ['nginx:1', 'nginx:1', 'nginx:1', 'nginx:1', 'nginx:2']);
    await settle();
    assert.deepEqual(await images(), ['nginx:2', 'nginx:2', 'nginx:2', 'nginx:2']);
    const sets = await bench.sets();
    assert.deepEqual(
      sets
        .map(({ spec, metadata }) => `${metadata.annotations?.[REVISION]}: ${spec?.replicas}`)
        .toSorted(),
      ['1: 0', '2: 4'],
    );
    assert.equal((await live()).metadata.annotations?.[REVISION], '2');
  });

  it('reuses the old ReplicaSet with a new revision after a rollback', async () => {
    await create();
    await settle();
    for (const image of ['nginx:2', 'nginx:1', 'nginx:2', 'nginx:1']) {
      await change({ template: template(image) });
      await settle();
    }
    assert.deepEqual(await images(), ['nginx:1', 'nginx:1']);
    const sets = await bench.sets();
    const revisions = sets.map(({ metadata: { annotations = {} } }) => {
      const history = annotations['deployment.kubernetes.io/revision-history'];
      return `${annotations[REVISION]} after ${history}`;
    });
    assert.deepEqual(revisions.toSorted(), ['4 after 2', '5 after 1,3']);
    assert.equal((await live()).metadata.annotations?.[REVISION], '5');
    const written = bench.sent.flatMap(
      ({ what, body }) => (what === 'PATCH web/status' && body.metadata?.annotations) || [],
    );
    const numbers = ['1', '2', '3', '4', '5'];
    assert.deepEqual(
      written,
      numbers.map((number) => ({ [REVISION]: number })),
    );
  });

  it('keeps the last revisions of a ReplicaSet, at most 2000 characters', async () => {
    await create();
    await settle();
    await change({ template: template('nginx:2') });
    await settle();
    const old = (await bench.sets()).find(({ spec }) => spec?.replicas === 0);
    const name = 'deployment.kubernetes.io/revision-history';
    const annotations = { [name]: `77,${'8,'.repeat(998)}9` };
    const body = { metadata: { annotations } };
    await bench.client.patch(REPLICA_SETS, old!.metadata, { type: 'merge', body });
    await change({ template: template('nginx:1') });
    await settle();
    const { metadata } = await bench.client.get(REPLICA_SETS, old!.metadata);
    assert.equal(metadata.annotations?.[name], `${'8,'.repeat(998)}9,1`);
  });

  it('copies changes of its annotations to the current ReplicaSet', async () => {
    await create();
    const annotations = { 'kubernetes.io/change-cause': 'update' };
    await bench.client.patch(DEPLOYMENTS, AT, {
      type: 'merge',
      body: { metadata: { annotations } },
    });
    await bench.clock.advance(100);
    const [set] = await bench.sets();
    assert.deepEqual(set?.metadata.annotations, {
      ...SIZES,
      team: 'a',
      ...annotations,
      [REVISION]: '1',
    });
  });

  it('counts revisions as 64-bit integers', async () => {
    await create();
    const [set] = await bench.sets();
    const body = { metadata: { annotations: { [REVISION]: '3546343826724305832' } } };
    await bench.client.patch(REPLICA_SETS, set!.metadata, { type: 'merge', body });
    await change({ template: template('nginx:2') });
    assert.equal((await live()).metadata.annotations?.[REVISION], '3546343826724305833');
  });

  it('creates no new Pod before the last old Pod is removed with the Recreate strategy', async () => {
    await create({ strategy: { type: 'Recreate' } });
    await settle();
    for (const { metadata } of await bench.pods()) {
      const body = { metadata: { finalizers: ['test/keep'] } };
      await bench.client.patch(PODS, metadata, { type: 'merge', body });
    }
    await change({ template: template('nginx:2') });
    await bench.clock.advance(5000);
    assert.deepEqual(await images(), ['nginx:1', 'nginx:1']);
    for (const { metadata } of await bench.pods()) {
      await bench.client.patch(PODS, metadata, {
        type: 'merge',
        body: { metadata: { finalizers: null } },
      });
    }
    await bench.clock.advance(1000);
    assert.deepEqual(await images(), ['nginx:2', 'nginx:2']);
  });

  it('keeps the conditions of other controllers', async () => {
    await create();
    const body = { status: { conditions: [{ type: 'Synced', status: 'True' }] } };
    await bench.client.patch(
      DEPLOYMENTS,
      AT,
      { type: 'strategic', body },
      { subresource: 'status' },
    );
    await settle();
    assert.equal((await condition('Available'))?.status, 'True');
    assert.equal((await condition('Synced'))?.status, 'True');
  });

  it('scales but does not roll out while it is paused, and reports it', async () => {
    await create();
    await settle();
    await change({ paused: true, replicas: 3, template: template('nginx:2') });
    await settle();
    assert.deepEqual(await images(), ['nginx:1', 'nginx:1', 'nginx:1']);
    assert.equal((await condition('Progressing'))?.reason, 'DeploymentPaused');
    await change({ paused: false });
    await settle();
    assert.deepEqual(await images(), ['nginx:2', 'nginx:2', 'nginx:2']);
  });

  it('is available while at most maxUnavailable Pods are not', async () => {
    await create({ replicas: 4, strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } });
    await settle();
    const [first, second] = await bench.pods();
    for (const [pod, expected] of [
      [first, 'True'],
      [second, 'False'],
    ] as const) {
      await bench.setStatus(pod!, { conditions: [{ type: 'Ready', status: 'False' }] });
      await bench.clock.advance(100);
      assert.equal((await condition('Available'))?.status, expected);
    }
  });

  it('reports an exceeded progress deadline until there is progress', async () => {
    await create({ progressDeadlineSeconds: 30 });
    await bench.clock.advance(29_000);
    assert.equal((await condition('Progressing'))?.status, 'True');
    await bench.clock.advance(5000);
    assert.equal((await condition('Progressing'))?.reason, 'ProgressDeadlineExceeded');
    assert.equal((await condition('Progressing'))?.status, 'False');
    await settle();
    assert.equal((await condition('Progressing'))?.reason, 'NewReplicaSetAvailable');
  });

  it('keeps revisionHistoryLimit old ReplicaSets, and deletes the oldest by uid', async () => {
    await create({ revisionHistoryLimit: 1 });
    await settle();
    const [first] = await bench.sets();
    const body = { metadata: { finalizers: ['test/keep'] } };
    await bench.client.patch(REPLICA_SETS, first!.metadata, { type: 'merge', body });
    for (const image of ['nginx:2', 'nginx:3']) {
      await change({ template: template(image) });
      await settle();
    }
    const present = (await bench.sets()).filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    );
    assert.deepEqual(
      present.map(({ metadata }) => metadata.annotations?.[REVISION] ?? '').toSorted(),
      ['2', '3'],
    );
    const [deletion, ...others] = bench.sent.filter(
      ({ what }) => what === `DELETE replicasets/${first?.metadata.name}`,
    );
    const { uid } = (deletion?.body.preconditions ?? {}) as { uid?: string };
    assert.deepEqual([uid, others], [first?.metadata.uid, []]);
  });

  it('deletes old ReplicaSets only after a rollout, and none for one that is being deleted', async () => {
    const revisions = async () =>
      (await bench.sets()).map(({ metadata }) => metadata.annotations?.[REVISION] ?? '').toSorted();
    await create({ revisionHistoryLimit: 1 });
    await settle();
    const [first] = await bench.sets();
    await change({ template: template('nginx:2') });
    await settle();
    await change({ template: template('nginx:3') });
    assert.deepEqual(await revisions(), ['1', '2', '3'], 'can be undone to each');
    const at = first?.metadata ?? AT;
    const held = { metadata: { finalizers: ['example.com/hold'] } };
    await bench.client.patch(REPLICA_SETS, at, { type: 'merge', body: held });
    await bench.client.delete(REPLICA_SETS, at);
    await settle();
    assert.deepEqual(await revisions(), ['1', '2', '3'], 'the first one does not count');
  });

  it('adopts the ReplicaSet of a previous Deployment, and records how it scales', async () => {
    const deployment = await create();
    const [set] = await bench.sets();
    await bench.client.delete(DEPLOYMENTS, deployment.metadata, { propagationPolicy: 'Orphan' });
    await bench.clock.advance(5000);
    const { metadata } = await create({ replicas: 0 });
    await bench.clock.advance(5000);
    const [adopted, ...others] = await bench.sets();
    assert.deepEqual(others, []);
    assert.equal(adopted?.metadata.uid, set?.metadata.uid);
    assert.equal(controllerOf(adopted!)?.uid, metadata.uid);
    const { name } = set!.metadata;
    const { replicas } = set!.spec;
    assert.deepEqual(await bench.events('Deployment'), [
      `ScalingReplicaSet Scaled down replica set ${name} from ${replicas} to 0`,
      `ScalingReplicaSet Scaled up replica set ${name} from 0 to ${replicas}`,
    ]);
  });

  it('creates a ReplicaSet with another hash after a name collision', async () => {
    const deployment = await create();
    const [set] = await bench.sets();
    await bench.client.delete(DEPLOYMENTS, deployment.metadata, { propagationPolicy: 'Orphan' });
    await bench.clock.advance(5000);
    assert.equal(controllerOf(await bench.client.get(REPLICA_SETS, set!.metadata))?.uid, undefined);
    // Otherwise the Deployment would adopt it.
    const body = { metadata: { labels: { app: 'other' } } };
    await bench.client.patch(REPLICA_SETS, set!.metadata, { type: 'merge', body });
    const next = await create();
    await bench.clock.advance(5000);
    const owned = (await bench.sets()).filter(
      (one) => controllerOf(one)?.uid === next.metadata.uid,
    );
    assert.equal(owned.length, 1);
    assert.notEqual(owned[0]?.metadata.name, set?.metadata.name);
    assert.equal((await live()).status?.collisionCount, 1);
  });
});

describe('A ReplicationController', () => {
  it('maintains its Pods as a ReplicaSet does', async () => {
    const bench = new ClusterBench();
    await bench.start();
    const controllers = {
      group: '',
      version: 'v1',
      plural: 'replicationcontrollers',
      kind: 'ReplicationController',
      namespaced: true,
    };
    await bench.createPod('orphan', {}, { labels: LABELS });
    await bench.create(controllers, 'web', {
      spec: { replicas: 2, selector: LABELS, template: template() },
    });
    await bench.pass(2000);
    const owners = (await bench.list(PODS)).map((pod) => controllerOf(pod)?.kind);
    assert.deepEqual(owners, ['ReplicationController', 'ReplicationController']);
    assert.deepEqual(Object.entries(await bench.get(controllers, 'web')).at(-1), [
      'status',
      {
        replicas: 2,
        fullyLabeledReplicas: 2,
        observedGeneration: 1,
        readyReplicas: 2,
        availableReplicas: 2,
      },
    ]);
    assert.match((await bench.events('web')).join(), /^SuccessfulCreate Created pod: web-\w+$/);
    await bench.end();
  });
});

describe('The controllers of a cluster', () => {
  it('are disabled by their name', async () => {
    const bench = new ClusterBench();
    await bench.start({ controllers: ['*', '-replicaset'] });
    await bench.createDeployment('web', 1);
    await bench.pass(1000);
    assert.equal((await bench.list(REPLICA_SETS)).length, 1);
    assert.equal((await bench.list(PODS)).length, 0);
    await bench.end();
  });

  it('publish the certificate of the server again after it was changed, with other metadata kept', async () => {
    const bench = new ClusterBench();
    await bench.start({ controllers: ['root-ca-certificate-publisher'], rootCaPem: 'pem' });
    const name = 'kube-root-ca.crt';
    const description = 'kubernetes.io/description';
    const { metadata } = await bench.get(CONFIG_MAPS, name);
    for (const change of [
      { data: { 'ca.crt': 'other' } },
      { metadata: { annotations: { [description]: null, own: 'kept' } } },
      { metadata: { annotations: { [description]: '' } } },
    ]) {
      await bench.merge(CONFIG_MAPS, name, change);
      await bench.pass(1000);
      const { data, ...restored } = await bench.get(CONFIG_MAPS, name);
      assert.deepEqual(data, { 'ca.crt': 'pem' });
      const { annotations } = restored.metadata;
      assert.equal(annotations?.[description], metadata.annotations?.[description]);
    }
    assert.equal((await bench.get(CONFIG_MAPS, name)).metadata.annotations?.['own'], 'kept');
    await bench.end();
  });

  it('discover the resources again if the server could not answer', async () => {
    const bench = new ClusterBench();
    let isDown = true;
    const client = new HttpClient({
      server: 'https://test',
      clock: bench.clock,
      handler: (request) => {
        const isDiscovery = /^\/apis?(?:\?|$)/.test(request.path);
        if (isDown && isDiscovery) return Promise.reject(new Error('down'));
        return bench.server.handler(request);
      },
    });
    await bench.start({ controllers: ['garbage-collector'] }, client);
    const owner = await bench.create(CONFIG_MAPS, 'owner');
    const ownerReferences = [controllerReference(owner)];
    await bench.create(CONFIG_MAPS, 'owned', { metadata: { ownerReferences } });
    await bench.client.delete(CONFIG_MAPS, owner.metadata);
    await bench.pass(10_000);
    assert.equal((await bench.list(CONFIG_MAPS)).length, 1);
    isDown = false;
    await bench.pass(10_000);
    assert.deepEqual(await bench.list(CONFIG_MAPS), []);
    await bench.end();
  });

  it('must have a known name', () => {
    const create = () => new ClusterBench().start({ controllers: ['-replicasets'] });
    return assert.rejects(create, { name: 'TypeError', message: /replicasets.*replicaset/ });
  });

  it('take an object that is gone or replaced for done, and log nothing but other failures', async () => {
    for (const status of [404, 409, 403]) {
      const { log, lines } = recordingLogger();
      const clock = new FakeClock();
      const server = new ApiServer({ clock });
      const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
      const cluster = new Cluster(
        { client, clock, log },
        { controllers: ['-deployment', '-replicaset'] },
      );
      const stop = new AbortController();
      const running = cluster.run(stop.signal);
      await clock.advance(1000);
      const failed = new Set<string>();
      let isArmed = true;
      server.faults.beforeRequest(({ method, info }) => {
        if (!isArmed || info?.resource !== 'pods' || method === 'GET') return undefined;
        const what = `${method} ${info.subresource ?? ''}`;
        if (['POST ', 'PATCH '].includes(what) || failed.has(what)) return undefined;
        failed.add(what);
        return status;
      });
      const at = { namespace: 'default', name: 'web' };
      /** Causes an event of the Pod. */
      const touch = async (label: string) => {
        const body = { metadata: { labels: { label } } };
        await client.patch(PODS, at, { type: 'merge', body });
        await clock.advance(10_000);
      };
      await client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: at,
        spec: { containers: [{ name: 'app', image: 'nginx' }] },
      });
      await clock.advance(10_000);
      await touch('a');
      await touch('b');
      assert.equal((await client.get(PODS, at)).status?.phase, 'Running');
      isArmed = false;
      await client.delete(PODS, at);
      isArmed = true;
      await clock.advance(60_000);
      assert.deepEqual((await client.list(PODS)).items, []);
      const errors = lines.filter(({ level }) => level === 'error');
      assert.deepEqual([...failed].toSorted(), ['DELETE ', 'PATCH status', 'POST binding']);
      if (status === 403) assert.equal(errors.length, 3, 'each is logged and retried');
      else assert.deepEqual(errors, []);
      stop.abort();
      await clock.advance(1000);
      await running;
    }
  });
});

describe('Namespace deletion', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = new Bench();
    await bench.start();
  });
  afterEach(() => bench.end());

  const at = { name: NAMESPACE };
  const draft = (name: string, finalizers: string[] = []) => ({
    apiVersion: 'v1',
    metadata: { namespace: NAMESPACE, name, finalizers },
  });
  const createPod = (namespace: string, finalizers: string[] = []) =>
    bench.client.create(PODS, {
      ...draft('web', finalizers),
      metadata: { namespace, name: 'web', finalizers },
      kind: 'Pod',
      spec: { containers: [{ name: 'a', image: 'a' }] },
    });
  const createService = (finalizers: string[] = []) =>
    bench.client.create(SERVICES, {
      ...draft('web', finalizers),
      kind: 'Service',
      spec: { ports: [{ port: 80 }] },
    });
  const release = (resource: Resource, name: string) => {
    const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    return bench.client.patch(resource, { namespace: NAMESPACE, name }, patch);
  };
  const problems = async () => {
    const { status } = await bench.client.get(NAMESPACES, at);
    const conditions = status?.conditions ?? [];
    assert.equal(conditions.length, 5);
    return conditions
      .filter((condition) => condition.status === 'True')
      .map(({ type, reason, message }) => [type, reason, message]);
  };
  const deleteNamespace = async () => {
    await bench.client.delete(NAMESPACES, at);
    await bench.clock.advance(2000);
  };

  it('deletes Pods first and then other content by uid, and then the namespace', async () => {
    const held = await createPod(NAMESPACE, ['test/keep']);
    const service = await createService();
    await createPod('default');
    await deleteNamespace();
    const deleted = () =>
      bench.sent
        .filter(({ what }) => what.startsWith('DELETE'))
        .map(({ body }) => (body.preconditions as { uid: string }).uid);
    assert.deepEqual(deleted(), [held.metadata.uid]);
    const left = await bench.client.get(NAMESPACES, at);
    assert.deepEqual(left.spec?.finalizers, ['kubernetes']);
    await release(PODS, 'web');
    await bench.clock.advance(2000);
    assert.deepEqual(deleted(), [held.metadata.uid, service.metadata.uid]);
    const all = await bench.client.list(NAMESPACES);
    assert.ok(!all.items.some(({ metadata }) => metadata.name === NAMESPACE));
    assert.equal((await bench.client.list(PODS)).items.length, 1);
  });

  it('reports in conditions what remains', async () => {
    await createService(['test/keep']);
    await deleteNamespace();
    assert.deepEqual(await problems(), [
      [
        'NamespaceContentRemaining',
        'SomeResourcesRemain',
        'Some resources are remaining: services. has 1 resource instances',
      ],
      [
        'NamespaceFinalizersRemaining',
        'SomeFinalizersRemain',
        'Some content in the namespace has finalizers remaining: test/keep in 1 resource instances',
      ],
    ]);
    await release(SERVICES, 'web');
    await bench.clock.advance(2000);
    await assert.rejects(bench.client.get(NAMESPACES, at), { kind: 'notFound' });
  });

  it('reports no failure if an object has changed, also not for a ReplicaSet of the namespace', async () => {
    const set = setDraft({ replicas: 1 });
    const metadata = { ...set.metadata, finalizers: ['test/keep'] };
    await bench.client.create(REPLICA_SETS, { ...set, metadata });
    const service = await createService();
    await bench.clock.advance(1000);
    bench.server.faults.failNext({ resource: 'services', verb: 'delete' }, 409);
    await deleteNamespace();
    await assert.rejects(bench.client.get(SERVICES, service.metadata), { kind: 'notFound' });
    await bench.clock.advance(10_000);
    const statuses = JSON.stringify(bench.sent);
    assert.ok(!statuses.includes('ContentDeletionFailed') && !statuses.includes('ReplicaFailure'));
    await release(REPLICA_SETS, 'web');
  });

  it('reports in conditions what it could not delete, and retries', async () => {
    await createService();
    bench.server.faults.failNext({ resource: 'services', verb: 'delete' }, 500, { times: 12 });
    await deleteNamespace();
    const [[type, reason, message] = [], ...others] = await problems();
    assert.deepEqual(others, []);
    assert.deepEqual([type, reason], ['NamespaceDeletionContentFailure', 'ContentDeletionFailed']);
    assert.match(message ?? '', /^Failed to delete all resource types, 1 remaining: /);
    await bench.clock.advance(300_000);
    await assert.rejects(bench.client.get(NAMESPACES, at), { kind: 'notFound' });
  });
});
