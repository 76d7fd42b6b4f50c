import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { NODES, PODS } from '../../../../src/api/builtin.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';

const NOT_HELPFUL =
  'preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.';
const NO_VICTIMS =
  'preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.';

describe('The scheduler', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ controllers: ['scheduler', 'node-lifecycle', 'kubelet', 'events'] });
  });
  afterEach(() => bench.end());

  const nodeOf = async (name: string) => (await bench.get(PODS, name)).spec?.nodeName;
  const scheduled = async (name: string) => {
    const { status } = await bench.get(PODS, name);
    return status?.conditions?.find(({ type }) => type === 'PodScheduled');
  };
  const requests = (cpu: string, rest: object = {}) => ({
    containers: [{ name: 'app', image: 'nginx', resources: { requests: { cpu } }, ...rest }],
  });
  const required = (matchExpressions: object[]) => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions }],
        },
      },
    },
  });
  const podTerms = (kind: string, app: string) => ({
    affinity: {
      [kind]: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app } } },
        ],
      },
    },
  });

  for (const { title, spec, reason, preemption } of [
    {
      title: 'its node selector matches no node',
      spec: { nodeSelector: { disk: 'ssd' } },
      reason: "1 node(s) didn't match Pod's node affinity/selector",
      preemption: NOT_HELPFUL,
    },
    {
      title: 'its required node affinity matches no node',
      spec: required([{ key: 'kubernetes.io/os', operator: 'NotIn', values: ['linux'] }]),
      reason: "1 node(s) didn't match Pod's node affinity/selector",
      preemption: NOT_HELPFUL,
    },
    {
      title: 'it requests more than a node has',
      spec: requests('33'),
      reason: '1 Insufficient cpu',
      preemption: NOT_HELPFUL,
    },
    {
      title: 'its required Pod affinity matches no Pod',
      spec: podTerms('podAffinity', 'db'),
      reason: "1 node(s) didn't match pod affinity rules",
      preemption: NOT_HELPFUL,
    },
  ]) {
    it(`leaves a Pod pending if ${title}`, async () => {
      await bench.createPod('web', spec);
      await bench.pass(2000);
      const message = `0/1 nodes are available: ${reason}. ${preemption}`;
      const condition = await scheduled('web');
      assert.equal(condition?.status, 'False');
      assert.equal(condition.reason, 'Unschedulable');
      assert.equal(condition.message, message);
      assert.deepEqual(await bench.events('web'), [`FailedScheduling ${message}`]);
      assert.equal((await bench.get(PODS, 'web')).status?.phase, 'Pending');
    });
  }

  it('binds a Pod to a node that its required affinity, selector and tolerations match', async () => {
    await bench.createNode('node-2', {
      metadata: { labels: { disk: 'ssd', zone: '3' } },
      spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] },
    });
    await bench.createPod('web', {
      nodeSelector: { disk: 'ssd' },
      ...required([{ key: 'zone', operator: 'Gt', values: ['2'] }]),
      tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'db', effect: 'NoSchedule' }],
    });
    await bench.pass(100);
    assert.equal(await nodeOf('web'), 'node-2');
    assert.equal((await scheduled('web'))?.status, 'True');
    assert.deepEqual(await bench.events('web'), [
      'Scheduled Successfully assigned default/web to node-2',
    ]);
  });

  it('binds a Pod whose host ports no other Pod of the node uses', async () => {
    const hostPort = (hostIP: string, protocol: string) => ({
      containers: [
        {
          name: 'a',
          image: 'nginx',
          ports: [{ containerPort: 80, hostPort: 8080, hostIP, protocol }],
        },
      ],
    });
    await bench.createPod('first', hostPort('10.0.0.1', 'TCP'));
    await bench.pass(2000);
    const others = [
      ['udp', hostPort('10.0.0.1', 'UDP')],
      ['other-address', hostPort('10.0.0.2', 'TCP')],
      ['same', hostPort('10.0.0.1', 'TCP')],
      ['all-addresses', hostPort('0.0.0.0', 'TCP')],
      ['all-addresses-udp', hostPort('', 'UDP')],
    ] as const;
    for (const [name, spec] of others) await bench.createPod(name, spec);
    await bench.pass(2000);
    const bound = await Promise.all(others.map(async ([name]) => [name, await nodeOf(name)]));
    assert.deepEqual(Object.fromEntries(bound), {
      udp: 'node-1',
      'other-address': 'node-1',
      same: undefined,
      'all-addresses': undefined,
      'all-addresses-udp': undefined,
    });
    assert.match((await scheduled('same'))?.message ?? '', /didn't have free ports for the/);
  });

  it('compares labels of a node as the operators of its affinity say', async () => {
    await bench.merge(NODES, 'node-1', { metadata: { labels: { zone: '3' } } });
    const expressions = [
      ['zone', 'In', ['3', '4']],
      ['zone', 'NotIn', ['4']],
      ['rack', 'NotIn', ['4']],
      ['zone', 'Exists', undefined],
      ['rack', 'DoesNotExist', undefined],
      ['zone', 'Gt', ['2']],
      ['zone', 'Lt', ['4']],
      ['zone', 'In', ['4']],
      ['rack', 'In', ['4']],
      ['rack', 'Exists', undefined],
      ['zone', 'DoesNotExist', undefined],
      ['zone', 'Gt', ['3']],
      ['zone', 'Lt', ['3']],
      ['rack', 'Lt', ['3']],
    ] as const;
    for (const [index, [key, operator, values]] of expressions.entries()) {
      await bench.createPod(`p-${index}`, required([{ key, operator, values }]));
    }
    await bench.pass(2000);
    const nodes = await Promise.all(expressions.map((_, index) => nodeOf(`p-${index}`)));
    assert.deepEqual(nodes, [
      ...Array.from({ length: 7 }, () => 'node-1'),
      ...Array.from({ length: 7 }, () => undefined),
    ]);
  });

  it('binds a pending Pod when a cordoned node becomes schedulable', async () => {
    await bench.merge(NODES, 'node-1', { spec: { unschedulable: true } });
    await bench.createPod('web');
    await bench.pass(2000);
    assert.match((await scheduled('web'))?.message ?? '', /1 node\(s\) were unschedulable\./);
    await bench.merge(NODES, 'node-1', { spec: { unschedulable: null } });
    await bench.pass(11_000);
    assert.equal(await nodeOf('web'), 'node-1');
  });

  it('keeps Pods off a tainted node', async () => {
    const taints = [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }];
    await bench.merge(NODES, 'node-1', { spec: { taints } });
    await bench.createPod('web');
    await bench.createPod('db', { tolerations: [{ key: 'dedicated', operator: 'Exists' }] });
    await bench.pass(2000);
    assert.match(
      (await scheduled('web'))?.message ?? '',
      /1 node\(s\) had untolerated taint\(s\)\./,
    );
    assert.equal(await nodeOf('db'), 'node-1');
  });

  it('counts no requests of a Pod that it could not bind, and keeps the time at which a Pod became pending', async () => {
    const binding = { verb: 'create', resource: 'pods', subresource: 'binding', name: 'denied' };
    bench.server.faults.failNext(binding, 403, { times: 100 });
    await bench.createPod('denied', requests('30'));
    await bench.createPod('large', requests('33'));
    await bench.pass(2000);
    const since = (await scheduled('large'))?.lastTransitionTime;
    await bench.createPod('web', requests('30'));
    await bench.createNode('node-2');
    await bench.pass(15_000);
    assert.equal(await nodeOf('web'), 'node-1');
    const { message = '', lastTransitionTime } = (await scheduled('large')) ?? {};
    assert.match(message, /^0\/2 nodes/);
    assert.equal(lastTransitionTime, since);
  });

  it('counts the requests of Pods, also of those it binds at the same time', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await bench.createPod(name, requests('10'));
    await bench.pass(2000);
    const nodes = await Promise.all(['a', 'b', 'c', 'd'].map(nodeOf));
    assert.equal(nodes.filter((node) => node === 'node-1').length, 3);
    const pending = ['a', 'b', 'c', 'd'].find((_, index) => nodes[index] === undefined)!;
    const message = `0/1 nodes are available: 1 Insufficient cpu. ${NO_VICTIMS}`;
    assert.equal((await scheduled(pending))?.message, message);
    const other = ['a', 'b', 'c', 'd'].find((name) => name !== pending)!;
    await bench.client.delete(PODS, { namespace: 'default', name: other });
    await bench.pass(15_000);
    assert.equal(await nodeOf(pending), 'node-1');
  });

  it('keeps Pods with anti-affinity on different nodes, and Pods with affinity together', async () => {
    const labels = { app: 'web' };
    await bench.createPod('first', podTerms('podAntiAffinity', 'web'), { labels });
    await bench.pass(1000);
    await bench.createPod('second', {}, { labels });
    await bench.pass(1000);
    assert.match(
      (await scheduled('second'))?.message ?? '',
      /1 node\(s\) didn't satisfy existing pods anti-affinity rules\./,
    );
    await bench.createPod('cache', podTerms('podAffinity', 'web'));
    await bench.createPod('self', podTerms('podAffinity', 'self'), { labels: { app: 'self' } });
    await bench.pass(1000);
    assert.equal(await nodeOf('cache'), 'node-1');
    assert.equal(await nodeOf('self'), 'node-1', 'the first Pod of a group needs no other');
  });

  it('tries a Pod at once that replaces one which had to wait', async () => {
    await bench.createPod('web', { nodeSelector: { disk: 'ssd' } });
    await bench.pass(60_000);
    const [before] = await bench.list(PODS);
    await bench.client.delete(PODS, before!.metadata, { gracePeriodSeconds: 0 });
    await bench.pass(1);
    await bench.createPod('web', { nodeSelector: { disk: 'ssd' } });
    await bench.pass(1);
    await bench.merge(NODES, 'node-1', { metadata: { labels: { disk: 'ssd' } } });
    await bench.pass(1500);
    assert.equal(await nodeOf('web'), 'node-1');
  });

  it('ignores Pods of other schedulers and Pods with scheduling gates', async () => {
    await bench.createPod('other', { schedulerName: 'other' });
    await bench.createPod('gated', { schedulingGates: [{ name: 'example.com/quota' }] });
    await bench.pass(2000);
    for (const name of ['other', 'gated']) {
      assert.equal(await nodeOf(name), undefined);
      assert.deepEqual(await bench.events(name), []);
    }
  });
});

describe('Taint eviction', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({
      controllers: ['scheduler', 'kubelet', 'events', 'taint-eviction', 'node-lifecycle'],
    });
  });
  afterEach(() => bench.end());

  const names = async () => (await bench.list(PODS)).map(({ metadata }) => metadata.name);
  const taint = (taints: object[] | null) => bench.merge(NODES, 'node-1', { spec: { taints } });
  const NO_EXECUTE = { key: 'maintenance', effect: 'NoExecute' };
  const tolerating = (tolerationSeconds?: number) => ({
    tolerations: [
      { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds },
    ],
  });

  it('deletes Pods that do not tolerate a NoExecute taint, after their toleration', async () => {
    await bench.createPod('none');
    await bench.createPod('minute', tolerating(60));
    await bench.createPod('always', tolerating());
    const containers = [{ name: 'app', image: 'app', command: ['true'] }];
    await bench.createPod('ended', { restartPolicy: 'Never', containers });
    await bench.pass(1000);
    assert.equal((await bench.get(PODS, 'ended')).status?.phase, 'Succeeded');
    await taint([NO_EXECUTE]);
    await bench.pass(1);
    const { status } = await bench.get(PODS, 'none');
    const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
    assert.equal(condition?.reason, 'DeletionByTaintManager');
    await bench.pass(5000);
    assert.deepEqual(await names(), ['always', 'minute']);
    assert.ok(
      (await bench.events('none')).includes(
        'TaintManagerEviction Marking for deletion Pod default/none',
      ),
    );
    await bench.pass(60_000);
    assert.deepEqual(await names(), ['always']);
  });

  it('taints nodes by their conditions, and records their registration', async () => {
    const taints = async (name: string) =>
      (await bench.get(NODES, name)).spec?.taints?.map(({ key, effect }) => `${key} ${effect}`);
    const report = (status: string, name = 'node-2') =>
      bench.merge(NODES, name, { status: { conditions: [{ type: 'Ready', status }] } }, 'status');
    await bench.createNode('node-2');
    await bench.create(NODES, 'silent');
    await bench.pass(1000);
    assert.equal(await taints('node-2'), undefined);
    assert.deepEqual(await bench.events('node-2'), [
      'RegisteredNode Node node-2 event: Registered Node node-2 in Controller',
    ]);
    await bench.merge(NODES, 'node-2', { spec: { unschedulable: true } });
    await report('False');
    await bench.pass(1000);
    const unschedulable = 'node.kubernetes.io/unschedulable NoSchedule';
    assert.deepEqual((await taints('node-2'))?.toSorted(), [
      'node.kubernetes.io/not-ready NoExecute',
      'node.kubernetes.io/not-ready NoSchedule',
      unschedulable,
    ]);
    await report('False', 'node-1');
    await report('True');
    await bench.pass(60_000);
    assert.equal((await taints('node-1'))?.length, 2, 'the simulated kubelet keeps them');
    assert.deepEqual(await taints('node-2'), [unschedulable]);
    assert.deepEqual(await taints('silent'), [
      'node.kubernetes.io/unreachable NoSchedule',
      'node.kubernetes.io/unreachable NoExecute',
    ]);
    const { conditions = [] } = (await bench.get(NODES, 'silent')).status ?? {};
    assert.deepEqual(conditions.map(({ type, status }) => `${type} ${status}`).toSorted(), [
      'DiskPressure Unknown',
      'MemoryPressure Unknown',
      'PIDPressure Unknown',
      'Ready Unknown',
    ]);
  });

  for (const [condition, name] of [
    ['MemoryPressure True', 'memory-pressure'],
    ['DiskPressure True', 'disk-pressure'],
    ['PIDPressure True', 'pid-pressure'],
    ['NetworkUnavailable True', 'network-unavailable'],
    ['PIDPressure False', undefined],
    ['Ready True', undefined],
  ] as const) {
    it(`gives a node with ${condition} ${name ? `the taint ${name}` : 'no taint'}`, async () => {
      const [type, status] = condition.split(' ');
      await bench.createNode('node-2', {
        status: {
          conditions: [
            { type: 'Ready', status: 'True' },
            { type, status },
          ],
        },
      });
      await bench.pass(1000);
      const key = `node.kubernetes.io/${name}`;
      assert.deepEqual(
        (await bench.get(NODES, 'node-2')).spec?.taints?.map((each) => [each.key, each.effect]),
        name && [[key, 'NoSchedule']],
      );
    });
  }

  it('tolerates a taint as long for a Pod that replaces another, and cancels nothing for it', async () => {
    await bench.createPod('minute', { ...tolerating(60), nodeName: 'node-1' });
    await taint([NO_EXECUTE]);
    const replace = async (seconds?: number) => {
      await bench.pass(40_000);
      // The relist then shows another Pod of this name, and no deletion.
      bench.server.faults.failNext({ resource: 'pods', verb: 'watch' }, 503);
      bench.server.faults.dropWatches();
      await bench.client.delete(
        PODS,
        { name: 'minute', namespace: NAMESPACE },
        { gracePeriodSeconds: 0 },
      );
      await bench.createPod('minute', { ...tolerating(seconds), nodeName: 'node-1' });
      bench.server.faults.expireHistory();
    };
    await replace(60);
    await bench.pass(50_000);
    assert.deepEqual(await names(), ['minute']);
    await bench.pass(20_000);
    assert.deepEqual(await names(), []);
    await bench.createPod('minute', { ...tolerating(60), nodeName: 'node-1' });
    await replace();
    await bench.pass(10_000);
    assert.ok(!(await bench.events('minute')).some((event) => event.includes('Cancelling')));
  });

  it('keeps a Pod if the taint is removed while it is tolerated', async () => {
    await bench.createPod('minute', tolerating(60));
    await bench.pass(1000);
    await taint([NO_EXECUTE]);
    await bench.pass(30_000);
    await taint(null);
    await bench.pass(120_000);
    assert.deepEqual(await names(), ['minute']);
    assert.ok(
      (await bench.events('minute')).includes(
        'TaintManagerEviction Cancelling deletion of Pod default/minute',
      ),
    );
  });
});
