import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CONFIG_MAPS, EVENTS, NODES, PODS } from '../../../../src/api/builtin.ts';
import type { KubernetesObject } from '../../../../src/api/object.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';
import { Simulation } from '../../../support/simulation.ts';

const READY = 'kubelet.crd-controller/ready';
const SECRETS = { ...CONFIG_MAPS, plural: 'secrets', kind: 'Secret' };

describe('the simulated kubelet', () => {
  let world: Simulation;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    world = new Simulation();
    stop = world.startCluster();
    await world.pass(1000);
  });
  afterEach(() => world.end());

  const WEB = { namespace: 'default', name: 'web' };
  const create = (name = 'web') =>
    world.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...WEB, name },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  const addresses = async (name = 'web') => {
    const { status } = await world.client.get(PODS, { ...WEB, name });
    return status?.podIPs?.map(({ ip }) => ip) ?? [];
  };

  it('keeps the address of a Pod if the response to the status update is lost', async () => {
    const { faults } = world.server;
    let times = 0;
    faults.beforeRequest(({ info }) => {
      if (info?.resource !== 'pods' || info.subresource !== 'status') return undefined;
      if (times++ > 0) return undefined;
      // The event of the write is delayed too.
      faults.dropWatches();
      faults.failNext({ resource: 'pods', verb: 'watch' }, 503, { times: 6 });
      return 'lostResponse';
    });
    await create();
    await world.until('the status is sent again', async () => times >= 2);
    await world.pass(60_000);
    assert.equal((await addresses()).length, 1);
  });

  it('has its Pods at the address of its node', async () => {
    await create();
    await world.until('an address', async () => (await addresses()).length > 0);
    const { status } = await world.client.get(PODS, WEB);
    const node = await world.client.get(NODES, { name: 'node-1' });
    assert.deepEqual(node.status?.addresses, [
      { type: 'InternalIP', address: status?.hostIP },
      { type: 'Hostname', address: 'node-1' },
    ]);
  });

  it('assigns another address to a new Pod with the same name', async () => {
    await create();
    await world.until('an address', async () => (await addresses()).length > 0);
    const [first] = await addresses();
    await world.client.delete(PODS, WEB, { gracePeriodSeconds: 0 });
    await create();
    await world.until('an address', async () => (await addresses()).length > 0);
    assert.notDeepEqual(await addresses(), [first]);
  });

  it('assigns no address that a Pod has from an earlier run of the kubelet', async () => {
    await create();
    await world.until('an address', async () => (await addresses()).length > 0);
    await stop();
    world.startCluster();
    await create('other');
    await world.until('another address', async () => (await addresses('other')).length > 0);
    assert.notDeepEqual(await addresses('other'), await addresses());
  });
});

describe('The events and states of a simulated kubelet', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start();
  });
  afterEach(() => bench.end());

  const state = async (name: string) => {
    const { status } = await bench.get(PODS, name);
    return status?.containerStatuses?.[0]?.state;
  };
  const container = (more: object) => ({
    containers: [{ name: 'app', image: 'nginx:1', ...more }],
  });

  it('records how a Pod starts and stops', async () => {
    await bench.createPod('web');
    await bench.pass(1000);
    await bench.client.delete(PODS, { namespace: NAMESPACE, name: 'web' });
    await bench.pass(100);
    assert.deepEqual((await bench.events('web')).toSorted(), [
      'Created Container created',
      'Killing Stopping container app',
      'Pulled Successfully pulled image "nginx:1" in 0s (0s including waiting). Image size: 0 bytes.',
      'Pulling Pulling image "nginx:1"',
      'Scheduled Successfully assigned default/web to node-1',
      'Started Container started',
    ]);
  });

  it('pulls an image that is present only if the policy says so', async () => {
    const policies = ['Always', 'IfNotPresent', 'Always'];
    for (const [index, imagePullPolicy] of policies.entries()) {
      const name = `web-${index}`;
      await bench.createPod(name, container({ imagePullPolicy }));
      await bench.pass(1000);
      const pulls = (await bench.events(name)).some((event) => event.startsWith('Pulling'));
      assert.equal(pulls, imagePullPolicy === 'Always');
    }
  });

  it('reports that the containers of a deleted Pod have stopped', async () => {
    for (const [name, more] of Object.entries({ server: {}, shell: { command: ['sleep', '9'] } })) {
      await bench.createPod(name, container(more), { finalizers: ['example.com/observe'] });
      await bench.pass(1000);
      await bench.client.delete(PODS, { namespace: NAMESPACE, name });
      await bench.pass(1100);
    }
    const { status: server } = await bench.get(PODS, 'server');
    assert.equal(server?.phase, 'Succeeded');
    const ready = server.conditions?.find(({ type }) => type === 'Ready');
    assert.deepEqual([ready?.status, ready?.reason], ['False', 'PodCompleted']);
    const { status: shell } = await bench.get(PODS, 'shell');
    assert.equal(shell?.phase, 'Failed');
    assert.equal(shell.containerStatuses?.[0]?.state?.terminated?.exitCode, 137);
  });

  it('records restarts and backoff', async () => {
    const { metadata } = await bench.createPod('job', container({ command: ['false'] }));
    await bench.pass(31_000);
    const waiting = (await state('job'))?.waiting;
    const pod = `job_default(${metadata.uid})`;
    assert.equal(waiting?.reason, 'CrashLoopBackOff');
    assert.equal(waiting.message, `back-off 40s restarting failed container=app pod=${pod}`);
    const events = await bench.list(EVENTS);
    const counts = new Map(events.map(({ reason, count }) => [reason, count]));
    assert.equal(counts.get('Started'), 3);
    assert.equal(counts.get('BackOff'), 3);
    const backOff = events.find(({ reason }) => reason === 'BackOff');
    assert.equal(backOff?.message, `Back-off restarting failed container app in pod ${pod}`);
    assert.equal(backOff?.involvedObject.fieldPath, 'spec.containers{app}');
  });

  for (const { title, more, message, object } of [
    {
      title: 'a ConfigMap',
      more: { envFrom: [{ configMapRef: { name: 'settings' } }] },
      message: 'configmap "settings" not found',
      object: { resource: CONFIG_MAPS, data: { GREETING: 'hello' } },
    },
    {
      title: 'a key of a Secret',
      more: {
        env: [{ name: 'GREETING', valueFrom: { secretKeyRef: { name: 'settings', key: 'a' } } }],
      },
      message: 'secret "settings" not found',
      object: { resource: SECRETS, data: { a: Buffer.from('hello').toString('base64') } },
    },
  ]) {
    it(`starts a container that needs ${title} when it exists, and not before`, async () => {
      const command = ['sh', '-c', 'echo $GREETING'];
      await bench.createPod('web', { restartPolicy: 'Never', ...container({ command, ...more }) });
      await bench.pass(60_000);
      const waiting = (await state('web'))?.waiting;
      assert.deepEqual(waiting, { reason: 'CreateContainerConfigError', message });
      const { status } = await bench.get(PODS, 'web');
      assert.equal(status?.phase, 'Pending');
      assert.ok((await bench.events('web')).includes(`Failed Error: ${message}`));
      await bench.create(object.resource, 'settings', { data: object.data });
      await bench.pass(10_000);
      const pod = await bench.get(PODS, 'web');
      assert.equal(pod.status?.phase, 'Succeeded');
      assert.equal(await bench.log('web'), 'hello\n');
      const ready = pod.status.conditions?.find(({ type }) => type === 'Ready');
      assert.equal(ready?.message, undefined);
    });
  }

  it('starts a container without the optional data that is missing', async () => {
    await bench.create(CONFIG_MAPS, 'settings', { data: { b: 'B' } });
    const from = (name: string, key: string) => ({
      configMapKeyRef: { name, key, optional: true },
    });
    const env = [
      { name: 'A', valueFrom: from('settings', 'a') },
      { name: 'B', valueFrom: from('settings', 'b') },
      { name: 'C', valueFrom: from('none', 'c') },
    ];
    const envFrom = [{ prefix: 'ALL_', configMapRef: { name: 'settings' } }];
    const command = ['sh', '-c', 'echo "<$A$B$C$b$ALL_b>"'];
    const app = container({ command, env, envFrom });
    await bench.createPod('web', { restartPolicy: 'Never', ...app });
    await bench.pass(1000);
    assert.equal(await bench.log('web'), '<BB>\n');
  });

  it('removes a Pod after its grace period if that is shorter than its own', async () => {
    const own = new ClusterBench();
    await own.start({ kubelet: { terminationMs: 60_000 } });
    await own.createPod('web', { terminationGracePeriodSeconds: 5 });
    await own.pass(1000);
    await own.client.delete(PODS, { namespace: NAMESPACE, name: 'web' });
    await own.pass(4000);
    assert.equal((await own.list(PODS)).length, 1);
    await own.pass(2000);
    assert.equal((await own.list(PODS)).length, 0);
    await own.end();
  });

  it('does not start a Pod whose volume is missing', async () => {
    const volumes = [{ name: 'config', configMap: { name: 'settings' } }];
    await bench.createPod('web', { volumes });
    await bench.createPod('optional', {
      volumes: [{ name: 'config', configMap: { name: 'settings', optional: true } }],
    });
    await bench.pass(2000);
    assert.deepEqual(await state('web'), { waiting: { reason: 'ContainerCreating' } });
    assert.ok(
      (await bench.events('web')).includes(
        'FailedMount MountVolume.SetUp failed for volume "config" : configmap "settings" not found',
      ),
    );
    assert.ok((await state('optional'))?.running);
  });

  it('runs init containers in order, and sidecars beside the others', async () => {
    const initContainers = [
      { name: 'first', image: 'busybox', command: ['sleep', '10'] },
      { name: 'proxy', image: 'proxy', restartPolicy: 'Always' },
      { name: 'setup', image: 'setup' },
      { name: 'last', image: 'busybox', command: ['sh', '-c', 'sleep 10; echo done'] },
    ];
    await bench.createPod('web', { initContainers });
    const status = async () => (await bench.get(PODS, 'web')).status;
    const kinds = async () =>
      (await status())?.initContainerStatuses?.map(({ state = {} }) => Object.keys(state)[0]);
    await bench.pass(5000);
    assert.deepEqual(await kinds(), ['running', 'waiting', 'waiting', 'waiting']);
    assert.equal((await status())?.phase, 'Pending');
    assert.equal((await state('web'))?.waiting?.reason, 'PodInitializing');
    const initialized = (await status())?.conditions?.find(({ type }) => type === 'Initialized');
    assert.equal(initialized?.message, 'containers with incomplete status: [first setup last]');
    await bench.pass(10_000);
    assert.deepEqual(await kinds(), ['terminated', 'running', 'terminated', 'running']);
    await bench.pass(10_000);
    assert.equal((await status())?.phase, 'Running');
    assert.ok((await state('web'))?.running);
    assert.equal(
      (await status())?.conditions?.find(({ type }) => type === 'Ready')?.status,
      'True',
    );
    assert.equal(await bench.log('web', '?container=last'), 'done\n');
  });

  it('fails a Pod whose init container fails, if the Pod does not restart containers', async () => {
    const initContainers = [{ name: 'setup', image: 'busybox', command: ['false'] }];
    await bench.createPod('web', { initContainers, restartPolicy: 'Never' });
    await bench.createPod('retried', { initContainers });
    await bench.pass(15_000);
    assert.equal((await bench.get(PODS, 'web')).status?.phase, 'Failed');
    const { status } = await bench.get(PODS, 'retried');
    assert.equal(status?.phase, 'Pending');
    assert.equal(status.initContainerStatuses?.[0]?.restartCount, 1);
  });

  it('makes containers unready by annotation', async () => {
    const annotate = (value: string | null) =>
      bench.merge(PODS, 'web', { metadata: { annotations: { [READY]: value } } });
    const ready = async () => {
      const { status } = await bench.get(PODS, 'web');
      const condition = status?.conditions?.find(({ type }) => type === 'Ready');
      return [condition?.status, condition?.lastTransitionTime, status?.phase];
    };
    const now = () => new Date(bench.clock.now()).toISOString().replace(/\.\d+/, '');
    await bench.createPod('web', {}, { annotations: { [READY]: 'false' } });
    await bench.pass(5000);
    assert.equal((await ready())[0], 'False');
    await annotate(null);
    const readyAt = now();
    await bench.pass(5000);
    assert.deepEqual(await ready(), ['True', readyAt, 'Running']);
    await annotate('false');
    const unreadyAt = now();
    await bench.pass(5000);
    assert.deepEqual(await ready(), ['False', unreadyAt, 'Running']);
  });

  it('restarts containers that are not live by annotation', async () => {
    const live = 'kubelet.crd-controller/live';
    const livenessProbe = { periodSeconds: 5, failureThreshold: 2, httpGet: { port: 80 } };
    await bench.createPod('web', container({ livenessProbe }));
    await bench.pass(60_000);
    await bench.merge(PODS, 'web', { metadata: { annotations: { [live]: 'false' } } });
    await bench.pass(5000);
    assert.ok((await state('web'))?.running);
    await bench.pass(6000);
    assert.equal((await state('web'))?.waiting?.reason, 'CrashLoopBackOff');
    await bench.merge(PODS, 'web', { metadata: { annotations: { [live]: null } } });
    await bench.pass(3_600_000);
    const [status] = (await bench.get(PODS, 'web')).status?.containerStatuses ?? [];
    assert.deepEqual([status?.restartCount, status?.ready], [1, true]);
    assert.equal(status?.lastState?.terminated?.exitCode, 137);
  });

  it('reports ephemeral containers and a resize in the status', async () => {
    await bench.createPod('web', container({ resources: { requests: { cpu: '1' } } }));
    await bench.pass(1000);
    const at = { namespace: NAMESPACE, name: 'web' };
    const patch = (subresource: string, spec: object) =>
      bench.client.patch<KubernetesObject>(
        PODS,
        at,
        { type: 'strategic', body: { spec } },
        { subresource },
      );
    await patch('ephemeralcontainers', { ephemeralContainers: [{ name: 'debug', image: 'sh' }] });
    const resources = { requests: { cpu: '2' } };
    await patch('resize', { containers: [{ name: 'app', resources }] });
    await bench.pass(1000);
    const { status } = await bench.get(PODS, 'web');
    assert.ok(status?.ephemeralContainerStatuses?.[0]?.state?.running);
    const [app] = status.containerStatuses ?? [];
    assert.deepEqual(app?.resources, resources);
    assert.deepEqual(app?.allocatedResources, resources.requests);
  });

  it('writes no events if they are disabled', async () => {
    await bench.end();
    bench = new ClusterBench();
    await bench.start({ controllers: ['-events'] });
    await bench.createDeployment('web', 1);
    await bench.pass(5000);
    assert.equal((await bench.list(PODS)).length, 1);
    assert.deepEqual(await bench.list(EVENTS), []);
  });
});
