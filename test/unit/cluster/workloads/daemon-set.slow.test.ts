import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from '../../../../src/api/builtin.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import { ClusterBench, NAMESPACE, templateOf } from '../cluster-bench.ts';

const LABELS = { app: 'agent' };
const NODE_NAMES = ['node-1', 'node-2', 'node-3'];

describe('A DaemonSet', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ controllers: ['daemonset', 'scheduler', 'node-lifecycle', 'events'] });
    for (const name of NODE_NAMES) await bench.createNode(name, { metadata: { labels: { name } } });
  });
  afterEach(() => bench.end());

  const image = (name: string) =>
    templateOf(LABELS, { containers: [{ name: 'app', image: name }] });
  const create = (spec: object = {}) =>
    bench.create(DAEMON_SETS, 'agent', {
      spec: { selector: { matchLabels: LABELS }, template: image('a'), ...spec },
    });
  const update = (spec: object) => bench.merge(DAEMON_SETS, 'agent', { spec });
  const pods = async () =>
    (await bench.list(PODS)).toSorted((a, b) =>
      `${a.spec?.nodeName}${a.spec?.containers[0]?.image}` <
      `${b.spec?.nodeName}${b.spec?.containers[0]?.image}`
        ? -1
        : 1,
    );
  /** Returns the Pods as `node image`. */
  const placed = async () =>
    (await pods()).map(({ spec }) => `${spec?.nodeName} ${spec?.containers[0]?.image}`);
  const setPhase = async ({ metadata }: Pod, phase: string) => {
    const conditions = [{ type: 'Ready', status: phase === 'Running' ? 'True' : 'False' }];
    await bench.merge(PODS, metadata.name, { status: { phase, conditions } }, 'status');
  };
  /** Does what kubelets do: runs new Pods, and removes deleted ones. */
  const runPods = async () => {
    await bench.pass(1000);
    for (const pod of await bench.list(PODS)) {
      const { name, deletionTimestamp } = pod.metadata;
      const at = { namespace: NAMESPACE, name };
      if (deletionTimestamp) await bench.client.delete(PODS, at, { gracePeriodSeconds: 0 });
      else if (pod.status?.phase === 'Pending') await setPhase(pod, 'Running');
    }
    await bench.pass(1000);
  };
  const status = async () => (await bench.get(DAEMON_SETS, 'agent')).status!;

  it('keeps what its Pods prefer, and a Pod with the number of the template', async () => {
    const preference = { matchExpressions: [{ key: 'disk', operator: 'Exists' }] };
    const preferred = [{ weight: 1, preference }];
    const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: preferred };
    const template = image('a');
    await create({
      template: { ...template, spec: { ...template.spec, affinity: { nodeAffinity } } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 3 } },
    });
    await runPods();
    const [pod] = await pods();
    assert.deepEqual(
      pod?.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution,
      preferred,
    );
    // The server counts the templates in an annotation.
    const labels = { 'pod-template-generation': '2' };
    await bench.merge(PODS, pod.metadata.name, { metadata: { labels } });
    await update({ template: image('b') });
    for (let round = 0; round < 4; round++) await runPods();
    assert.deepEqual(await placed(), ['node-1 a', 'node-2 b', 'node-3 b']);
  });

  it('runs a Pod on each node, also on new and unschedulable ones', async () => {
    await bench.merge(NODES, 'node-2', { spec: { unschedulable: true } });
    await create();
    await bench.pass(1000);
    assert.deepEqual(await placed(), ['node-1 a', 'node-2 a', 'node-3 a']);
    const [pod] = await pods();
    assert.match(pod?.metadata.labels?.['controller-revision-hash'] ?? '', /^\w+$/);
    assert.deepEqual(
      pod?.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
      {
        nodeSelectorTerms: [
          { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] },
        ],
      },
    );
    assert.equal((await status()).numberUnavailable, 3);
    await runPods();
    assert.deepEqual(await status(), {
      observedGeneration: 1,
      desiredNumberScheduled: 3,
      currentNumberScheduled: 3,
      updatedNumberScheduled: 3,
      numberMisscheduled: 0,
      numberReady: 3,
      numberAvailable: 3,
    });
    await bench.createNode('node-4');
    await bench.pass(1000);
    assert.equal((await pods()).length, 4);
  });

  it('runs only on nodes that its Pods select and tolerate', async () => {
    const taints = [{ key: 'gpu', effect: 'NoSchedule' }];
    await bench.merge(NODES, 'node-1', { spec: { taints } });
    const nodeSelector = { name: 'node-2' };
    await create({ template: templateOf(LABELS, { nodeSelector }) });
    await bench.pass(1000);
    assert.deepEqual(await placed(), ['node-2 nginx:1']);
    await update({ template: templateOf(LABELS, { nodeSelector: null }) });
    for (let i = 0; i < 3; i++) await runPods();
    assert.deepEqual(await placed(), ['node-2 nginx:1', 'node-3 nginx:1']);
    await bench.merge(NODES, 'node-3', { spec: { taints } });
    await bench.pass(1000);
    // A Pod that runs stays unless the taint has the effect NoExecute.
    assert.equal((await placed()).length, 2);
    assert.equal((await status()).numberMisscheduled, 1);
  });

  it('replaces at most maxUnavailable Pods at the same time', async () => {
    await create();
    await runPods();
    await update({ template: image('b') });
    const steps: number[] = [];
    for (let i = 0; i < 4; i++) {
      await bench.pass(1000);
      steps.push((await pods()).filter(({ metadata }) => metadata.deletionTimestamp).length);
      await runPods();
      await runPods();
    }
    assert.deepEqual(steps, [1, 1, 1, 0]);
    assert.deepEqual(await placed(), ['node-1 b', 'node-2 b', 'node-3 b']);
    assert.deepEqual(
      new Set((await bench.list(CONTROLLER_REVISIONS)).map(({ revision }) => revision)),
      new Set([1, 2]),
    );
  });

  it('runs the new Pod before it deletes the old one with maxSurge', async () => {
    const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
    await create({ updateStrategy: { rollingUpdate } });
    await runPods();
    await update({ template: image('b') });
    await bench.pass(1000);
    assert.deepEqual(await placed(), ['node-1 a', 'node-1 b', 'node-2 a', 'node-3 a']);
    for (let i = 0; i < 6; i++) await runPods();
    assert.deepEqual(await placed(), ['node-1 b', 'node-2 b', 'node-3 b']);
  });

  it('replaces deleted Pods only, with the strategy OnDelete', async () => {
    await create({ updateStrategy: { type: 'OnDelete' } });
    await runPods();
    await update({ template: image('b') });
    await runPods();
    assert.deepEqual(await placed(), ['node-1 a', 'node-2 a', 'node-3 a']);
    assert.equal((await status()).updatedNumberScheduled, undefined);
    const [pod] = await pods();
    await bench.client.delete(PODS, pod!.metadata);
    await runPods();
    assert.deepEqual(await placed(), ['node-1 b', 'node-2 a', 'node-3 a']);
  });

  it('replaces failed Pods with backoff', async () => {
    await create({ template: templateOf(LABELS, { nodeSelector: { name: 'node-1' } }) });
    await runPods();
    /** Returns whether the Pod is replaced within 100 ms. */
    const fail = async () => {
      const [pod] = await pods();
      await setPhase(pod!, 'Failed');
      await bench.pass(100);
      const [after] = await pods();
      return after?.metadata.uid !== pod?.metadata.uid;
    };
    assert.equal(await fail(), true);
    const event = (await bench.events('agent')).find((text) => text.startsWith('FailedDaemonPod'));
    assert.match(event ?? '', /Found failed daemon pod .* on node node-1, will try to kill it$/);
    assert.equal(await fail(), false);
    await bench.pass(1000);
    const [replaced] = await pods();
    assert.equal(replaced?.status?.phase, 'Pending');
  });
});
