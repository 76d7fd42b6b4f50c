import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { NAMESPACES, PODS } from '../../../../src/api/builtin.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import { timestamp } from '../../../../src/api/conditions.ts';
import { controllerOf, controllerReference, hasFinalizer } from '../../../../src/api/metadata.ts';
import { ATS } from '../../../../src/api/generated/at.ts';
import type { At } from '../../../../src/api/generated/at.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import type { DeepReadonly, Draft } from '../../../../src/api/object.ts';
import { buildAtPod, AT_COMPONENT, AT_FINALIZER } from '../../../../src/controllers/at/pod.ts';
import { Punctuality } from '../../../../src/controllers/at/punctuality.ts';
import { atSync } from '../../../../src/controllers/at/controller.ts';
import { done, TerminalError } from '../../../../src/workqueue/outcome.ts';
import { assertEndsAtEachRequest, NAMESPACE, SyncBench } from '../../../support/sync-bench.ts';

const AT = { namespace: NAMESPACE, name: 'task' };
const POD = { namespace: NAMESPACE, name: 'task-pod' };
const KEY = objectKey(NAMESPACE, 'task');

interface Setting {
  /** When the At is due, in milliseconds from now. */
  readonly dueInMs?: number;
  readonly spec?: Partial<At['spec']>;
}

async function setUp({ dueInMs = 0, spec = {} }: Setting = {}) {
  const bench = await SyncBench.with(ATS);
  const ats = bench.cache<At>({});
  const pods = bench.cache<Pod>({
    unrecorded: (pod: DeepReadonly<Pod>) => {
      const owner = controllerOf(pod);
      return owner && hasFinalizer(pod, AT_FINALIZER) ? [objectKey(NAMESPACE, owner.name)] : [];
    },
  });
  const draft: Draft<At> = {
    apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
    kind: 'At',
    metadata: { ...AT },
    spec: { schedule: timestamp(bench.clock.now() + dueInMs), command: 'echo hi', ...spec },
  };
  const at = await bench.create(ATS, draft);
  ats.show(at);
  const counted: string[] = [];
  const punctuality = new Punctuality({
    due: () => counted.push('due'),
    missed: () => counted.push('missed'),
    started: (lateMs) => counted.push(`started ${lateMs}`),
  });
  const sync = atSync({
    ats: ats.lister,
    pods: pods.lister,
    recorder: bench.recorder,
    punctuality,
    clock: bench.clock,
  });
  const run = () => bench.sync(sync, KEY);
  const live = () => bench.get(ATS, 'task');
  const pod = () => bench.get(PODS, 'task-pod');
  /** Updates the caches to the state of the server. */
  const catchUp = async () => {
    const present = await bench.list(ATS);
    if (present.length === 0) ats.hide(at);
    ats.show(...present);
    const alive = await bench.list(PODS);
    const uids = new Set(alive.map(({ metadata }) => metadata.uid));
    pods.hide(...pods.lister.list().filter(({ metadata }) => !uids.has(metadata.uid)));
    pods.show(...alive);
  };
  const end = (phase: 'Failed' | 'Succeeded', exitCode: number) => {
    const terminated = { exitCode };
    const containerStatuses = [{ name: 'busybox', state: { terminated } }];
    const body = { status: { phase, containerStatuses } };
    return bench.client.patch(PODS, POD, { type: 'strategic', body }, { subresource: 'status' });
  };
  const condition = async (type: string) =>
    (await live()).status?.conditions?.find((one) => one.type === type);
  return { bench, at, draft, ats, pods, counted, run, live, pod, catchUp, end, condition };
}

describe('A sync of an At', () => {
  it('that is not due creates nothing, and is requeued for its schedule', async () => {
    const { bench, run, live, condition } = await setUp({ dueInMs: 60_000 });
    const outcome = await run();
    assert.equal(outcome.kind === 'requeueAt' && outcome.atMs, bench.clock.now() + 60_000);
    assert.deepEqual(bench.taken(), ['patch ats/status task']);
    assert.equal((await live()).status?.phase, 'PENDING');
    assert.equal((await condition('Succeeded'))?.status, 'Unknown');
    assert.equal((await condition('Succeeded'))?.reason, 'Scheduled');
    assert.deepEqual(bench.events, []);
  });

  it('that is due reads the Pod and the At from the server, then creates the Pod', async () => {
    const { bench, at, run, live, pod, condition } = await setUp();
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.reads, ['pods task-pod', 'ats task']);
    assert.deepEqual(bench.steps, [
      'create pods',
      'event Started',
      'sent Started',
      'patch ats/status',
    ]);
    const [creation] = bench.writes;
    assert.equal(creation?.fieldManager, AT_COMPONENT);
    assert.deepEqual(creation?.body.metadata?.['finalizers'], [AT_FINALIZER]);
    assert.deepEqual(creation?.body.metadata?.['ownerReferences'], [controllerReference(at)]);
    const { status } = await live();
    assert.equal(status?.phase, 'RUNNING');
    assert.equal(status?.podUID, (await pod()).metadata.uid);
    assert.equal(status?.observedGeneration, 1);
    assert.equal((await condition('Succeeded'))?.reason, 'Running');
  });

  it('starts the command when it is due, and not a millisecond before', async () => {
    const { bench, run } = await setUp({ dueInMs: 1000 });
    await bench.clock.advance(999);
    const outcome = await run();
    assert.equal(outcome.kind === 'requeueAt' && outcome.atMs, bench.clock.now() + 1);
    await bench.clock.advance(1);
    bench.writes.length = 0;
    // The cache still contains the At without its status.
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    assert.deepEqual(bench.taken(), []);
  });

  it('creates no Pod if the status has a uid, also with a stale cache', async () => {
    const { bench, run, catchUp, pods, pod } = await setUp();
    await run();
    await catchUp();
    pods.hide(await pod());
    bench.writes.length = 0;
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.taken(), []);
    const body = { metadata: { finalizers: null } };
    await bench.client.patch(PODS, POD, { type: 'merge', body });
    await bench.client.delete(PODS, POD);
    await run();
    assert.deepEqual(bench.taken(), ['patch ats/status task']);
    assert.deepEqual(await bench.list(PODS), []);
  });

  it('creates nothing and is retried if the At has changed since the cache saw it', async () => {
    const { bench, run } = await setUp();
    const body = { status: { phase: 'RUNNING', podUID: 'another' } } as const;
    await bench.client.patch(ATS, AT, { type: 'merge', body }, { subresource: 'status' });
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    assert.deepEqual(bench.steps, []);
  });

  it('creates nothing if the At was replaced since the cache saw it', async () => {
    const { bench, draft, run } = await setUp();
    await bench.client.delete(ATS, AT);
    await bench.create(ATS, draft);
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    await bench.client.delete(ATS, AT);
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    assert.deepEqual(bench.steps, []);
  });

  it('records the uid of its Pod if the response to the creation was lost', async () => {
    const { bench, ats, run, live, pod } = await setUp();
    bench.server.faults.failNext({ method: 'POST', resource: 'pods' }, 'lostResponse');
    await assert.rejects(run());
    // The cache contains the status with the failure, but not the Pod.
    ats.show(await live());
    assert.deepEqual(await run(), done());
    assert.equal(bench.writes.filter(({ what }) => what === 'create pods').length, 1);
    assert.equal((await live()).status?.podUID, (await pod()).metadata.uid);
  });

  it('reports the delay of the Pod if it is a second or more', async () => {
    const late = await setUp();
    await late.bench.clock.advance(90_000);
    await late.run();
    assert.deepEqual(late.bench.events, ['Normal Started: Started in Pod task-pod, 1m30s late']);
    assert.deepEqual(late.counted, ['due', 'missed', 'started 90000']);
    const bySecond = await setUp();
    await bySecond.bench.clock.advance(1000);
    await bySecond.run();
    assert.deepEqual(bySecond.bench.events, ['Normal Started: Started in Pod task-pod, 1s late']);
    const inTime = await setUp();
    await inTime.run();
    assert.deepEqual(inTime.bench.events, ['Normal Started: Started in Pod task-pod']);
    assert.deepEqual(inTime.counted, ['due', 'started 0']);
  });

  it('removes the finalizer of the Pod with its uid once the status has the uid', async () => {
    const { bench, run, catchUp, pod } = await setUp();
    await run();
    await catchUp();
    const { uid, resourceVersion } = (await pod()).metadata;
    bench.writes.length = 0;
    await run();
    const [write, ...others] = bench.writes;
    assert.deepEqual(others, []);
    assert.equal(write?.what, 'patch pods');
    assert.equal(write?.fieldManager, AT_COMPONENT);
    assert.equal(write?.body.metadata?.['uid'], uid);
    assert.equal(write?.body.metadata?.['resourceVersion'], resourceVersion);
    assert.equal(hasFinalizer(await pod(), AT_FINALIZER), false);
  });

  it('keeps the finalizer while the status does not have the uid, and reads the At if the cache is stale', async () => {
    const { bench, at, pods, ats, run, pod } = await setUp({ dueInMs: 60_000 });
    pods.show(await bench.create(PODS, buildAtPod(at, ['true'])));
    await run();
    assert.ok(hasFinalizer(await pod(), AT_FINALIZER));
    ats.hide(at);
    await run();
    assert.ok(hasFinalizer(await pod(), AT_FINALIZER));
    assert.ok(bench.reads.includes('ats task'));
  });

  it('does not write to the Pod of an At that its label selector does not match', async () => {
    const { bench, at, ats, run, catchUp, pod } = await setUp();
    await run();
    await catchUp();
    ats.hide(at);
    bench.writes.length = 0;
    await run();
    assert.deepEqual(bench.writes, []);
    assert.ok(hasFinalizer(await pod(), AT_FINALIZER));
  });

  it('does not block the deletion of an At or Pod that its label selector no longer matches', async () => {
    const foreground = await setUp({ dueInMs: 60_000 });
    const { bench, at } = foreground;
    foreground.pods.show(await bench.create(PODS, buildAtPod(at, ['true'])));
    const body = { metadata: { finalizers: ['foregroundDeletion'] } };
    await bench.client.patch(ATS, AT, { type: 'merge', body });
    await bench.client.delete(ATS, AT);
    foreground.ats.hide(at);
    await foreground.run();
    assert.equal(hasFinalizer(await foreground.pod(), AT_FINALIZER), false);

    const recorded = await setUp();
    await recorded.run();
    await recorded.bench.client.delete(PODS, POD);
    await recorded.catchUp();
    recorded.ats.hide(recorded.at);
    await recorded.run();
    await assert.rejects(recorded.pod(), /not found/);
  });

  it('removes the finalizer of a Pod whose At is gone, being deleted or replaced', async () => {
    const gone = await setUp({ dueInMs: 60_000 });
    gone.pods.show(await gone.bench.create(PODS, buildAtPod(gone.at, ['true'])));
    await gone.bench.client.delete(ATS, AT);
    gone.ats.hide(gone.at);
    await gone.run();
    assert.equal(hasFinalizer(await gone.pod(), AT_FINALIZER), false);

    const leaving = await setUp({ dueInMs: 60_000 });
    leaving.pods.show(await leaving.bench.create(PODS, buildAtPod(leaving.at, ['true'])));
    const deletionTimestamp = timestamp(0);
    leaving.ats.show({ ...leaving.at, metadata: { ...leaving.at.metadata, deletionTimestamp } });
    await leaving.run();
    assert.equal(hasFinalizer(await leaving.pod(), AT_FINALIZER), false);

    const replaced = await setUp({ dueInMs: 60_000 });
    replaced.pods.show(await replaced.bench.create(PODS, buildAtPod(replaced.at, ['true'])));
    await replaced.bench.client.delete(ATS, AT);
    replaced.ats.show(await replaced.bench.create(ATS, replaced.draft));
    await replaced.run();
    assert.equal(hasFinalizer(await replaced.pod(), AT_FINALIZER), false);
  });

  it('ignores a Pod that is gone and retries a changed one when it removes the finalizer', async () => {
    const { bench, run, catchUp } = await setUp();
    await run();
    await catchUp();
    await bench.client.patch(PODS, POD, {
      type: 'merge',
      body: { metadata: { labels: { a: 'b' } } },
    });
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    await bench.client.patch(PODS, POD, {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    });
    await bench.client.delete(PODS, POD);
    await run();
    const failing = await setUp();
    await failing.run();
    await failing.catchUp();
    failing.bench.server.faults.failNext({ method: 'PATCH', resource: 'pods' }, 403);
    await assert.rejects(failing.run(), (error) => isApiError(error, 'forbidden'));
  });

  for (const [phase, exitCode, expected] of [
    ['Succeeded', 0, { status: 'True', reason: 'Completed', event: 'Normal Completed: ' }],
    ['Failed', 3, { status: 'False', reason: 'CommandFailed', event: 'Warning Failed: ' }],
  ] as const) {
    it(`is done when its Pod has ${phase.toLowerCase()}, and records one event`, async () => {
      const { bench, run, catchUp, end, live, condition } = await setUp();
      await run();
      await end(phase, exitCode);
      await catchUp();
      bench.events.length = 0;
      await run();
      const { status } = await live();
      assert.equal(status?.phase, 'DONE');
      assert.ok(status?.podUID);
      assert.equal((await condition('Succeeded'))?.status, expected.status);
      assert.equal((await condition('Succeeded'))?.reason, expected.reason);
      assert.equal(bench.events.length, 1);
      assert.ok(bench.events[0]?.startsWith(expected.event), bench.events[0]);
      if (exitCode > 0) assert.match(bench.events[0] ?? '', /exit code 3/);
      await catchUp();
      bench.steps.length = 0;
      await run();
      assert.deepEqual(bench.steps, []);
    });
  }

  it('reads the Pod from the cache without a request', async () => {
    const { bench, run, catchUp, pod } = await setUp();
    await run();
    await bench.client.patch(PODS, POD, {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    });
    await catchUp();
    assert.ok(await pod());
    bench.reads.length = 0;
    bench.writes.length = 0;
    await run();
    assert.deepEqual([...bench.reads, ...bench.writes], []);
  });

  it('fails if its Pod is gone or replaced before the command ended', async () => {
    const { bench, run, catchUp, condition, live } = await setUp();
    await run();
    await bench.client.patch(PODS, POD, {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    });
    await bench.client.delete(PODS, POD);
    await bench.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...POD },
      spec: { containers: [{ name: 'x', image: 'x' }] },
    });
    await catchUp();
    await run();
    assert.equal((await live()).status?.phase, 'DONE');
    assert.equal((await condition('Succeeded'))?.reason, 'PodLost');
    assert.match(bench.events.at(-1) ?? '', /^Warning Failed: Pod "task-pod" was deleted/);
  });

  it('waits for the Pod of a previous At of the same name, and reports a name collision with any other Pod', async () => {
    const former = await setUp();
    const metadata = { ...former.at.metadata, uid: 'uid-of-the-former' };
    await former.bench.create(PODS, buildAtPod({ ...former.at, metadata }, ['true']));
    assert.deepEqual(await former.run(), done());
    assert.equal((await former.condition('Succeeded'))?.reason, 'PodTerminating');
    assert.deepEqual(former.bench.events, []);

    const other = await setUp();
    const pod = buildAtPod(other.at, ['true']);
    const { ownerReferences: _, ...others } = pod.metadata;
    await other.bench.create(PODS, { ...pod, metadata: others });
    await assert.rejects(other.run(), /already exists and is not managed by At/);
    assert.equal((await other.condition('Stalled'))?.reason, 'ErrResourceExists');
    assert.match(other.bench.events[0] ?? '', /^Warning ErrResourceExists/);
    assert.equal((await other.live()).status?.podUID, undefined);
  });

  for (const [what, spec] of [
    ['a schedule that is not a time', { schedule: 'tomorrow' }],
    ['a command that is not finished', { command: 'echo "hi' }],
    ['no command', { command: '' }],
  ] as const) {
    it(`stalls on ${what}, and records one event`, async () => {
      const { bench, ats, at, run, live, condition } = await setUp();
      ats.show({ ...at, spec: { ...at.spec, ...spec } });
      await assert.rejects(run(), TerminalError);
      assert.deepEqual(bench.steps, ['event InvalidSpec', 'sent InvalidSpec', 'patch ats/status']);
      assert.equal((await condition('Stalled'))?.reason, 'InvalidSpec');
      assert.equal((await live()).status?.phase, 'PENDING');
      ats.show({ ...(await live()), spec: { ...at.spec, ...spec } });
      assert.deepEqual(await run(), done());
      assert.equal(bench.events.length, 1);
    });
  }

  it('reports a failed creation in an event, in the status, and to the queue', async () => {
    const { bench, run, condition } = await setUp();
    bench.server.faults.failNext({ method: 'POST', resource: 'pods' }, 403);
    await assert.rejects(run(), (error) => isApiError(error, 'forbidden'));
    assert.equal(bench.events.length, 1);
    assert.match(bench.events[0] ?? '', /^Warning FailedCreate: Error creating: /);
    assert.equal((await condition('Succeeded'))?.reason, 'FailedCreate');
    assert.equal((await condition('Succeeded'))?.status, 'Unknown');
  });

  it('stalls on a Pod that the server rejects as invalid, and is retried', async () => {
    const { bench, run, condition } = await setUp();
    bench.server.faults.failNext({ method: 'POST', resource: 'pods' }, 422);
    await assert.rejects(run(), (error) => !(error instanceof TerminalError));
    assert.equal((await condition('Stalled'))?.reason, 'FailedCreate');
  });

  it('reports no failure if the daemon stops or the namespace is being deleted', async () => {
    const stopping = await setUp();
    stopping.bench.server.faults.beforeRequest(({ method }) => {
      if (method !== 'POST') return undefined;
      stopping.bench.stop.abort(new Error('stopping'));
      return 'reset';
    });
    await assert.rejects(stopping.run());
    assert.deepEqual(stopping.bench.steps, ['create pods']);

    const terminating = await setUp();
    await terminating.bench.client.delete(NAMESPACES, { name: NAMESPACE });
    await terminating.run();
    assert.deepEqual(terminating.bench.steps, ['create pods']);
  });

  it('does nothing for an At that is being deleted, done, or not in the cache', async () => {
    const { bench, at, ats, run } = await setUp();
    const deletionTimestamp = timestamp(0);
    ats.show({ ...at, metadata: { ...at.metadata, deletionTimestamp } });
    assert.deepEqual(await run(), done());
    ats.show({ ...at, status: { phase: 'DONE' } });
    assert.deepEqual(await run(), done());
    ats.hide(at);
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.steps, []);
  });

  it('ends when the daemon stops during any request, and reports no failure', () =>
    assertEndsAtEachRequest(setUp));
});
