import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, test } from 'node:test';
import { JOBS, PERSISTENT_VOLUME_CLAIMS, PODS } from '../../../../src/api/builtin.ts';
import { controllerReference } from '../../../../src/api/metadata.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';

const TRACKING = 'batch.kubernetes.io/job-tracking';

describe('A Job', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({
      controllers: [
        'job',
        'ttl-after-finished',
        'garbage-collector',
        'scheduler',
        'kubelet',
        'events',
      ],
    });
  });
  afterEach(() => bench.end());

  const create = (command: string[], spec: object = {}, pod: object = {}) =>
    bench.create(JOBS, 'job', {
      spec: {
        template: {
          spec: {
            restartPolicy: 'Never',
            containers: [{ name: 'app', image: 'busybox', command }],
            ...pod,
          },
        },
        ...spec,
      },
    });
  const status = async () => (await bench.get(JOBS, 'job')).status!;
  const conditions = async () =>
    ((await status()).conditions ?? []).map(({ type, status, reason }) => [type, status, reason]);
  const pods = () => bench.list(PODS);

  it('runs Pods until its completions have succeeded', async () => {
    await create(['sleep', '10'], { completions: 3, parallelism: 2 });
    await bench.pass(1000);
    assert.equal((await status()).active, 2);
    assert.equal((await status()).ready, 2);
    await bench.pass(30_000);
    const { succeeded, active, completionTime, uncountedTerminatedPods } = await status();
    assert.deepEqual([succeeded, active, uncountedTerminatedPods], [3, undefined, {}]);
    assert.ok(completionTime);
    assert.deepEqual(await conditions(), [
      ['SuccessCriteriaMet', 'True', 'CompletionsReached'],
      ['Complete', 'True', 'CompletionsReached'],
    ]);
    for (const { metadata } of await pods()) assert.equal(metadata.finalizers, undefined);
    const events = await bench.events('job');
    assert.ok(events.includes('Completed Job completed'));
    assert.equal(events.filter((event) => event.startsWith('SuccessfulCreate')).length, 3);
  });

  it('fails when more Pods than the backoff limit have failed, with growing delays', async () => {
    await create(['false'], { backoffLimit: 2 });
    await bench.pass(5000);
    assert.equal((await pods()).length, 1);
    await bench.pass(10_000);
    assert.equal((await pods()).length, 2);
    await bench.pass(10_000);
    assert.equal((await pods()).length, 2);
    await bench.pass(15_000);
    assert.equal((await status()).failed, 3);
    assert.deepEqual(await conditions(), [
      ['FailureTarget', 'True', 'BackoffLimitExceeded'],
      ['Failed', 'True', 'BackoffLimitExceeded'],
    ]);
    const events = await bench.events('job');
    assert.ok(events.includes('BackoffLimitExceeded Job has reached the specified backoff limit'));
    await bench.pass(3_600_000);
    assert.equal((await pods()).length, 3);
  });

  it('counts the restarts of containers', async () => {
    await create(['false'], { backoffLimit: 2 }, { restartPolicy: 'OnFailure' });
    await bench.pass(60_000);
    assert.deepEqual((await conditions()).at(-1), ['Failed', 'True', 'BackoffLimitExceeded']);
    assert.deepEqual(await pods(), []);
  });

  it('is stopped at its deadline', async () => {
    await create(['nginx'], { activeDeadlineSeconds: 30 });
    await bench.pass(29_000);
    assert.equal((await status()).active, 1);
    await bench.pass(10_000);
    assert.deepEqual((await conditions()).at(-1), ['Failed', 'True', 'DeadlineExceeded']);
    assert.equal((await status()).failed, 1);
    assert.deepEqual(await pods(), []);
  });

  it('replaces a Pod 10 s after it was deleted, and counts it as failed', async () => {
    await create(['sleep', '60']);
    await bench.pass(1000);
    const [pod] = await pods();
    await bench.client.delete(PODS, { namespace: NAMESPACE, name: pod!.metadata.name });
    await bench.pass(8000);
    assert.deepEqual([(await status()).failed, await pods()], [1, []]);
    await bench.pass(5000);
    const [next, ...others] = await pods();
    assert.deepEqual(others, []);
    assert.notEqual(next?.metadata.uid, pod?.metadata.uid);
  });

  it('keeps its counts when ended Pods are deleted', async () => {
    await create(['true'], { completions: 2, parallelism: 1 });
    await bench.pass(1);
    for (const { metadata } of await pods()) await bench.client.delete(PODS, metadata);
    await bench.pass(10_000);
    assert.equal((await status()).succeeded, 2);
    assert.deepEqual((await conditions()).at(-1), ['Complete', 'True', 'CompletionsReached']);
  });

  it('gives each Pod of an indexed Job its index', async () => {
    const command = ['sh', '-c', 'echo "part $JOB_COMPLETION_INDEX"'];
    await create(command, { completions: 3, parallelism: 3, completionMode: 'Indexed' });
    await bench.pass(5000);
    assert.equal((await status()).completedIndexes, '0-2');
    assert.equal((await status()).succeeded, 3);
    const logs = await Promise.all((await pods()).map(({ metadata }) => bench.log(metadata.name)));
    assert.deepEqual(logs.toSorted(), ['part 0\n', 'part 1\n', 'part 2\n']);
  });

  it('has no Pods of this controller if another one manages it', async () => {
    await create(['true'], { managedBy: 'example.com/controller' });
    await bench.pass(2000);
    assert.deepEqual([await pods(), await status()], [[], {}]);
  });

  it('keeps Pods that are ready if it needs fewer', async () => {
    await create(['nginx'], { parallelism: 3 });
    await bench.pass(1000);
    const [first, second, third] = (await pods()).map(({ metadata }) => metadata.name);
    const unready = { metadata: { annotations: { 'kubelet.crd-controller/ready': 'false' } } };
    for (const name of [first!, third!]) await bench.merge(PODS, name, unready);
    await bench.pass(1000);
    await bench.merge(JOBS, 'job', { spec: { parallelism: 1 } });
    await bench.pass(40_000);
    assert.deepEqual(
      (await pods()).map(({ metadata }) => metadata.name),
      [second],
    );
  });

  it('has no Pods while it is suspended', async () => {
    await create(['sleep', '60'], { suspend: true });
    await bench.pass(1000);
    assert.deepEqual(await pods(), []);
    assert.deepEqual(await conditions(), [['Suspended', 'True', 'JobSuspended']]);
    await bench.merge(JOBS, 'job', { spec: { suspend: false } });
    await bench.pass(1000);
    assert.equal((await pods()).length, 1);
    assert.deepEqual(await conditions(), [['Suspended', 'False', 'JobResumed']]);
    const events = await bench.events('job');
    assert.ok(events.includes('Suspended Job suspended'));
    assert.ok(events.includes('Resumed Job resumed'));
  });

  it('is deleted with its Pods some time after it has finished', async () => {
    await create(['true'], { ttlSecondsAfterFinished: 60 });
    await bench.pass(50_000);
    assert.equal((await bench.list(JOBS)).length, 1);
    await bench.pass(20_000);
    assert.deepEqual(await bench.list(JOBS), []);
    assert.deepEqual(await pods(), []);
  });

  it('is kept if its time to live is extended while it is deleted', async () => {
    await create(['true'], { ttlSecondsAfterFinished: 60 });
    bench.server.faults.beforeRequest(async ({ method, info }) => {
      if (method !== 'DELETE' || info?.resource !== 'jobs') return;
      await bench.merge(JOBS, 'job', { spec: { ttlSecondsAfterFinished: 3600 } });
    });
    await bench.pass(120_000);
    assert.equal((await bench.list(JOBS)).length, 1);
  });

  it('releases a Pod that its selector no longer matches, with its finalizer', async () => {
    await create(['nginx']);
    await bench.pass(1000);
    const [pod] = await pods();
    const body = { metadata: { labels: null } };
    await bench.client.patch(PODS, pod!.metadata, { type: 'merge', body });
    await bench.pass(1000);
    const { ownerReferences, finalizers } = (await bench.client.get(PODS, pod!.metadata)).metadata;
    assert.deepEqual([ownerReferences, finalizers], [undefined, undefined]);
    assert.equal((await pods()).length, 2);
  });

  it('leaves no Pods when it is deleted', async () => {
    await create(['sleep', '60'], { parallelism: 2 });
    await bench.pass(1000);
    const at = { namespace: NAMESPACE, name: 'job' };
    await bench.client.delete(JOBS, at, { propagationPolicy: 'Background' });
    await bench.pass(10_000);
    assert.deepEqual(await pods(), []);
  });
});

test('finalizers stay while only the cache does not show what they wait for', async () => {
  for (const hidden of [JOBS, PODS]) {
    const bench = new ClusterBench();
    const controllers = [hidden === JOBS ? 'job' : 'persistentvolumeclaim-protection'];
    await bench.start({ controllers }, bench.blindTo(hidden));
    const job = await bench.create(JOBS, 'job', {
      spec: {
        suspend: true,
        template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a' }] } },
      },
    });
    const owned = { finalizers: [TRACKING], ownerReferences: [controllerReference(job)] };
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    await bench.createPod('pod', { nodeName: 'node-1', volumes }, owned);
    await bench.create(PERSISTENT_VOLUME_CLAIMS, 'data', {
      metadata: { finalizers: ['kubernetes.io/pvc-protection'] },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    await bench.client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE, name: 'data' });
    await bench.pass(5000);
    assert.deepEqual((await bench.get(PODS, 'pod')).metadata.finalizers, [TRACKING]);
    assert.ok(await bench.get(PERSISTENT_VOLUME_CLAIMS, 'data'));
    if (hidden === PODS) {
      const at = { namespace: NAMESPACE, name: 'pod' };
      await bench.merge(PODS, 'pod', { metadata: { finalizers: null } });
      await bench.client.delete(PODS, at, { gracePeriodSeconds: 0 });
      await bench.pass(60_000);
      assert.deepEqual(await bench.list(PERSISTENT_VOLUME_CLAIMS), []);
    }
    await bench.end();
  }
});
