import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PODS } from '../../src/api/builtin.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { ATS } from '../../src/api/generated/at.ts';
import type { At } from '../../src/api/generated/at.ts';
import { Simulation } from '../support/simulation.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

const POD = 'example-at-pod';

/** Returns the phase and the Ready condition of an At: `DONE True Completed`. */
function stateOf({ status }: At): string {
  const succeeded = status?.conditions?.find(({ type }) => type === 'Succeeded');
  return [status?.phase, succeeded?.status, succeeded?.reason].join(' ');
}

function testIn(where: string, create: () => Promise<TestCluster>): void {
  describe(`An At and the daemon, ${where}`, () => {
    let cluster: TestCluster;
    let stopDaemon: () => Promise<void>;

    beforeEach(async () => {
      cluster = await create();
      await cluster.installCrd(ATS);
      stopDaemon = startDaemon();
    });
    afterEach(() => cluster.end());

    const startDaemon = () => cluster.startDaemon({ controllers: ['at'] });
    const at = (name: string = 'example-at') => ({ namespace: cluster.namespace, name });
    const live = () => cluster.client.get(ATS, at());
    const pod = () => cluster.client.get(PODS, at(POD));
    const isGone = async (what: Promise<unknown>) => {
      try {
        await what;
        return false;
      } catch (error) {
        if (isApiError(error, 'notFound')) return true;
        throw error;
      }
    };
    const inSeconds = (seconds: number) =>
      new Date(Math.ceil(cluster.now() / 1000 + seconds) * 1000).toISOString();
    const apply = (spec: Partial<At['spec']> = {}) =>
      cluster.client.create(ATS, {
        apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
        kind: 'At',
        metadata: at(),
        spec: { schedule: inSeconds(-60), command: 'echo YAY', ...spec },
      });
    const untilState = (...states: readonly string[]) =>
      cluster.until(states.join(' or '), async () => states.includes(stateOf(await live())));

    it('runs its command once, at its time and not before', async () => {
      // The daemon, which starts meanwhile, can see it later than its time.
      await apply({ schedule: inSeconds(3600), command: `echo "YAY  now" it\\'s` });
      await untilState('PENDING Unknown Scheduled');
      assert.ok(await isGone(pod()));
      const schedule = inSeconds(2);
      await cluster.client.patch(ATS, at(), { type: 'merge', body: { spec: { schedule } } });
      await untilState('DONE True Completed');
      const { metadata, spec } = await pod();
      assert.ok(Date.parse(metadata.creationTimestamp) >= Date.parse(schedule));
      assert.deepEqual(spec?.containers[0]?.command, ['echo', 'YAY  now', "it's"]);
      assert.equal((await live()).status?.podUID, metadata.uid);
      await cluster.settle();
      // The sync that follows the recorded status removes it.
      assert.equal((await pod()).metadata.finalizers, undefined);
      assert.deepEqual(await cluster.events('at-controller'), [
        'Completed The command succeeded',
        `Started Started in Pod ${POD}`,
      ]);
      assert.deepEqual(cluster.errors(), []);
    });

    it('runs late and reports it, if its time passed while no daemon ran', async () => {
      await stopDaemon();
      await apply({ schedule: inSeconds(-3661) });
      startDaemon();
      await untilState('DONE True Completed');
      const events = await cluster.events('at-controller');
      assert.match(events.join('\n'), /Started in Pod example-at-pod, 1h\d+m(?:\d+s)? late/);
    });

    it('is done when its command failed, with the exit code, and does not run it again', async () => {
      await apply({ command: 'sh -c "exit 3"' });
      await untilState('DONE False CommandFailed');
      const { uid } = (await pod()).metadata;
      await cluster.settle();
      const succeeded = (await live()).status?.conditions?.[0];
      assert.equal(succeeded?.message, 'The command failed: exit code 3');
      assert.equal((await pod()).metadata.uid, uid);
    });

    it('does not create its Pod again if it is deleted while the command runs', async () => {
      await apply({ command: 'sleep 3600' });
      await untilState('RUNNING Unknown Running');
      await cluster.client.delete(PODS, at(POD));
      // Not each kubelet reports the end of the command before it removes the Pod.
      await untilState('DONE False CommandFailed', 'DONE False PodLost');
      await cluster.settle();
      assert.ok(await isGone(pod()));
    });

    it('keeps an unowned Pod with its name unchanged, and runs the command when that Pod is gone', async () => {
      const unowned = await cluster.client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: at(POD),
        spec: { containers: [{ name: 'app', image: 'theirs' }] },
      });
      await apply();
      await untilState('PENDING False ErrResourceExists');
      assert.equal((await pod()).metadata.uid, unowned.metadata.uid);
      await cluster.client.delete(PODS, at(POD));
      await untilState('DONE True Completed');
    });

    it('reports an invalid command, and runs it after it was corrected', async () => {
      await apply({ command: 'echo "never closed' });
      await untilState('PENDING False InvalidSpec');
      const body = { spec: { command: 'echo "closed"' } };
      await cluster.client.patch(ATS, at(), { type: 'merge', body });
      await untilState('DONE True Completed');
    });

    it('deletes its Pod with the At, also if the status does not name the Pod', async () => {
      await apply({ command: 'sleep 3600' });
      await untilState('RUNNING Unknown Running');
      await cluster.client.delete(ATS, at(), { propagationPolicy: 'Foreground' });
      await cluster.until('gone', async () => (await isGone(live())) && isGone(pod()));
    });
  });
}

inTestClusters(testIn);

describe(
  'An At that waits while the clock jumps',
  { skip: process.env['CONTROL_PLANE'] !== undefined },
  () => {
    let cluster: Simulation;

    beforeEach(async () => {
      cluster = new Simulation();
      cluster.startCluster();
      await cluster.installCrd(ATS);
      cluster.startDaemon({ controllers: ['at'] });
    });
    afterEach(() => cluster.end());

    const phase = async () =>
      (await cluster.client.get(ATS, { namespace: 'default', name: 'example-at' })).status?.phase;
    const applyFor = (ms: number) =>
      cluster.client.create(ATS, {
        apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
        kind: 'At',
        metadata: { namespace: 'default', name: 'example-at' },
        spec: { schedule: new Date(ms).toISOString(), command: 'echo YAY' },
      });

    it('runs within two seconds after a jump forward past its time', async () => {
      await applyFor(cluster.now() + 3_600_000);
      await cluster.pass(5000);
      assert.equal(await phase(), 'PENDING');
      cluster.jump(3_600_000);
      await cluster.pass(2000);
      assert.notEqual(await phase(), 'PENDING');
    });

    it('waits again after a jump backward', async () => {
      const dueMs = cluster.now() + 60_000;
      await applyFor(dueMs);
      await cluster.pass(5000);
      cluster.jump(-3_600_000);
      await cluster.pass(3_600_000);
      assert.equal(await phase(), 'PENDING');
      await cluster.pass(60_000);
      assert.equal(await phase(), 'DONE');
      const { metadata } = await cluster.client.get(PODS, { namespace: 'default', name: POD });
      assert.ok(Date.parse(metadata.creationTimestamp) >= Math.floor(dueMs / 1000) * 1000);
    });
  },
);
