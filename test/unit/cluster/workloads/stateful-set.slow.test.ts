import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  STATEFUL_SETS,
} from '../../../../src/api/builtin.ts';
import { ClusterBench, NAMESPACE, templateOf } from '../cluster-bench.ts';

const LABELS = { app: 'db' };
const STARTUP_MS = 10_000;

describe('A StatefulSet', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ kubelet: { startupMs: STARTUP_MS } });
  });
  afterEach(() => bench.end());

  const image = (name: string) =>
    templateOf(LABELS, { containers: [{ name: 'app', image: name }] });
  const create = (replicas: number, spec: object = {}) =>
    bench.create(STATEFUL_SETS, 'db', {
      spec: {
        replicas,
        serviceName: 'db',
        selector: { matchLabels: LABELS },
        template: image('a'),
        ...spec,
      },
    });
  const update = (spec: object) => bench.merge(STATEFUL_SETS, 'db', { spec });
  const names = async () => (await bench.list(PODS)).map(({ metadata }) => metadata.name);
  const images = async () =>
    (await bench.list(PODS)).map(({ metadata, spec }) => {
      const isTerminating = metadata.deletionTimestamp !== undefined;
      return isTerminating ? 'terminating' : spec?.containers[0]?.image;
    });
  const status = async () => (await bench.get(STATEFUL_SETS, 'db')).status!;
  const claims = () => bench.list(PERSISTENT_VOLUME_CLAIMS);
  const revisions = async () =>
    (await bench.list(CONTROLLER_REVISIONS))
      .toSorted((a, b) => a.revision - b.revision)
      .map(({ metadata, revision }) => [metadata.name, revision]);

  it('creates no Pod while its claim is being deleted, and copies annotations to its revisions', async () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    const metadata = { finalizers: ['example.com/hold'] };
    const claim = await bench.create(PERSISTENT_VOLUME_CLAIMS, 'data-db-0', { metadata, spec });
    await bench.client.delete(PERSISTENT_VOLUME_CLAIMS, claim.metadata);
    await create(1, { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec }] });
    await bench.merge(STATEFUL_SETS, 'db', { metadata: { annotations: { team: 'a' } } });
    await update({ template: image('b') });
    await bench.pass(5000);
    assert.deepEqual(await names(), []);
    const [, revision] = (await bench.list(CONTROLLER_REVISIONS)).toSorted(
      (a, b) => a.revision - b.revision,
    );
    assert.deepEqual(revision?.metadata.annotations, { team: 'a' });
    await bench.merge(PERSISTENT_VOLUME_CLAIMS, 'data-db-0', { metadata: { finalizers: null } });
    await bench.pass(60_000);
    assert.deepEqual(await names(), ['db-0']);
  });

  it('creates Pods in order, each when the one before is ready', async () => {
    await create(3);
    await bench.pass(1000);
    assert.deepEqual(await names(), ['db-0']);
    await bench.pass(STARTUP_MS);
    assert.deepEqual(await names(), ['db-0', 'db-1']);
    await bench.pass(2 * STARTUP_MS);
    const [, pod] = await bench.list(PODS);
    const { currentRevision, updateRevision, ...counts } = await status();
    assert.deepEqual(pod?.metadata.labels, {
      ...LABELS,
      'statefulset.kubernetes.io/pod-name': 'db-1',
      'apps.kubernetes.io/pod-index': '1',
      'controller-revision-hash': currentRevision,
    });
    assert.deepEqual([pod.spec?.hostname, pod.spec?.subdomain], ['db-1', 'db']);
    assert.equal(updateRevision, currentRevision);
    assert.deepEqual(counts, {
      observedGeneration: 1,
      replicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      currentReplicas: 3,
      updatedReplicas: 3,
      collisionCount: 0,
    });
    const [event] = await bench.events('db');
    assert.equal(event, 'SuccessfulCreate Create Pod db-0 in StatefulSet db successful');
  });

  it('deletes Pods beyond its replicas one by one, the highest ordinal first', async () => {
    await create(3, { podManagementPolicy: 'Parallel', ordinals: { start: 5 } });
    await bench.pass(1000);
    assert.deepEqual(await names(), ['db-5', 'db-6', 'db-7']);
    await bench.pass(STARTUP_MS);
    await update({ replicas: 1 });
    await bench.pass(0);
    assert.deepEqual(await images(), ['a', 'terminating', 'terminating']);
    await bench.pass(5000);
    assert.deepEqual(await names(), ['db-5']);
    await bench.client.delete(STATEFUL_SETS, { namespace: NAMESPACE, name: 'db' });
    await bench.pass(5000);
    await create(2);
    await bench.pass(2 * STARTUP_MS + 2000);
    await update({ replicas: 0 });
    await bench.pass(500);
    assert.deepEqual(await images(), ['a', 'terminating']);
    await bench.pass(1000);
    assert.deepEqual(await images(), ['terminating']);
  });

  it('waits for minReadySeconds before it creates the next Pod', async () => {
    await create(2, { minReadySeconds: 30 });
    await bench.pass(STARTUP_MS + 20_000);
    assert.deepEqual(await names(), ['db-0']);
    assert.equal((await status()).availableReplicas, 0);
    await bench.pass(20_000);
    assert.deepEqual(await names(), ['db-0', 'db-1']);
  });

  it('replaces Pods from the highest ordinal to the partition', async () => {
    await create(3);
    await bench.pass(40_000);
    const before = await status();
    const rollingUpdate = { partition: 1 };
    await update({ template: image('b'), updateStrategy: { rollingUpdate } });
    await bench.pass(5000);
    assert.deepEqual(await images(), ['a', 'a', 'b']);
    await bench.pass(40_000);
    assert.deepEqual(await images(), ['a', 'b', 'b']);
    const { currentRevision, updateRevision, currentReplicas, updatedReplicas } = await status();
    assert.deepEqual([currentRevision, currentReplicas], [before.currentRevision, 1]);
    assert.deepEqual(await revisions(), [
      [before.currentRevision, 1],
      [updateRevision, 2],
    ]);
    assert.equal(updatedReplicas, 2);
    await bench.client.delete(PODS, { namespace: NAMESPACE, name: 'db-0' });
    await bench.pass(40_000);
    assert.deepEqual(await images(), ['a', 'b', 'b']);
    await update({ updateStrategy: { rollingUpdate: { partition: 0 } } });
    await bench.pass(40_000);
    assert.deepEqual(await images(), ['b', 'b', 'b']);
    assert.equal((await status()).currentRevision, updateRevision);
  });

  it('replaces up to maxUnavailable Pods at the same time', async () => {
    await create(4, { podManagementPolicy: 'Parallel' });
    await bench.pass(2 * STARTUP_MS);
    const rollingUpdate = { maxUnavailable: '50%' };
    await update({ template: image('b'), updateStrategy: { rollingUpdate } });
    await bench.pass(500);
    assert.deepEqual(await images(), ['a', 'a', 'terminating', 'terminating']);
  });

  it('replaces deleted Pods only, with the strategy OnDelete', async () => {
    await create(2, { updateStrategy: { type: 'OnDelete' } });
    await bench.pass(3 * STARTUP_MS);
    await update({ template: image('b') });
    await bench.pass(STARTUP_MS);
    assert.deepEqual(await images(), ['a', 'a']);
    await bench.client.delete(PODS, { namespace: NAMESPACE, name: 'db-0' });
    await bench.pass(2 * STARTUP_MS);
    assert.deepEqual(await images(), ['b', 'a']);
  });

  it('reuses the revision of a template, and deletes revisions beyond its limit', async () => {
    await create(1, { revisionHistoryLimit: 1 });
    await bench.pass(STARTUP_MS + 1000);
    const { updateRevision: first } = await status();
    for (const name of ['b', 'a', 'c']) {
      await update({ template: image(name) });
      await bench.pass(2 * STARTUP_MS);
    }
    const { updateRevision: last } = await status();
    assert.deepEqual(await revisions(), [
      [first, 3],
      [last, 4],
    ]);
  });

  it('replaces a Pod that has ended', async () => {
    const containers = [{ name: 'app', image: 'a', command: ['sleep', '20'] }];
    await create(1, { template: templateOf(LABELS, { containers }) });
    await bench.pass(STARTUP_MS);
    const [before] = await bench.list(PODS);
    await bench.merge(PODS, 'db-0', { status: { phase: 'Failed' } }, 'status');
    await bench.pass(5000);
    const [after] = await bench.list(PODS);
    assert.notEqual(after?.metadata.uid, before?.metadata.uid);
  });

  it('adopts a Pod of its name, and sets its labels', async () => {
    await bench.createPod('db-0', {}, { labels: LABELS });
    await bench.createPod('other-0', {}, { labels: LABELS });
    await create(1);
    await bench.pass(2 * STARTUP_MS);
    const pod = await bench.get(PODS, 'db-0');
    assert.equal(pod.metadata.ownerReferences?.[0]?.kind, 'StatefulSet');
    assert.equal(pod.metadata.labels?.['statefulset.kubernetes.io/pod-name'], 'db-0');
    assert.equal((await bench.get(PODS, 'other-0')).metadata.ownerReferences, undefined);
  });

  describe('with volume claim templates', () => {
    const volumeClaimTemplates = [
      {
        metadata: { name: 'data' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
        },
      },
    ];
    const createWith = (policy: object) =>
      create(2, {
        podManagementPolicy: 'Parallel',
        volumeClaimTemplates,
        persistentVolumeClaimRetentionPolicy: policy,
      });

    it('creates claims, and keeps them', async () => {
      await createWith({});
      await bench.pass(STARTUP_MS + 1000);
      const [pod] = await bench.list(PODS);
      const volume = { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } };
      assert.deepEqual(
        pod?.spec?.volumes?.find(({ name }) => name === 'data'),
        volume,
      );
      const [claim] = await claims();
      assert.deepEqual(claim?.metadata.labels, LABELS);
      assert.equal(claim.metadata.ownerReferences, undefined);
      const event = 'SuccessfulCreate Create Claim data-db-0 Pod db-0 in StatefulSet db success';
      assert.ok((await bench.events('db')).includes(event));
      await update({ replicas: 0 });
      await bench.pass(5000);
      assert.equal((await claims()).length, 2);
    });

    it('deletes the claims of Pods beyond the replicas with whenScaled: Delete', async () => {
      await createWith({ whenScaled: 'Delete' });
      await bench.pass(STARTUP_MS + 1000);
      await update({ replicas: 1 });
      await bench.pass(5000);
      assert.deepEqual(
        (await claims()).map(({ metadata }) => metadata.name),
        ['data-db-0'],
      );
      await update({ replicas: 2 });
      await bench.pass(2 * STARTUP_MS);
      assert.equal((await claims()).length, 2);
    });

    it('deletes the claims with itself with whenDeleted: Delete', async () => {
      await createWith({ whenDeleted: 'Delete' });
      await bench.pass(STARTUP_MS + 1000);
      const [claim] = await claims();
      assert.equal(claim?.metadata.ownerReferences?.[0]?.name, 'db');
      await bench.client.delete(STATEFUL_SETS, { namespace: NAMESPACE, name: 'db' });
      await bench.pass(5000);
      assert.deepEqual(await claims(), []);
    });
  });
});
