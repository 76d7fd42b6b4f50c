import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { EventBroadcaster } from '../../src/record/event-broadcaster.ts';
import { systemClock } from '../../src/util/clock.ts';
import { Api, assertRejected, namesIn, STRATEGIC } from './api.ts';
import type { Json } from './api.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { skipBefore } from '../support/skip.ts';
import { pod, pods } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
});

after(() => api.close());

let space: string;

const binding = (name: string, node: string) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name },
  target: { kind: 'Node', name: node },
});

test('a binding assigns a pod to a node and sets its condition with a time', async () => {
  const at = `${pods(space)}/bound`;
  await api.made(api.post(pods(space), pod('bound')));
  const reply = await api.post(`${at}/binding`, binding('bound', 'n'));
  assert.deepEqual([reply.status, reply.body.kind, reply.body.status], [201, 'Status', 'Success']);
  const { spec, status } = (await api.get(at)).body;
  assert.equal(spec.nodeName, 'n');
  const { type, status: value } = status.conditions[0];
  assert.deepEqual([type, value], ['PodScheduled', 'True']);
});

test('a pod can be bound once', async () => {
  const at = `${pods(space)}/once`;
  await api.made(api.post(pods(space), pod('once')));
  await api.made(api.post(`${at}/binding`, binding('once', 'n')));
  assertRejected(await api.post(`${at}/binding`, binding('once', 'm')), {
    code: 409,
    reason: 'Conflict',
    message:
      'Operation cannot be fulfilled on pods/binding "once": pod once is already assigned to node "n"',
    details: { name: 'once', kind: 'pods/binding' },
  });
  assert.equal((await api.get(at)).body.spec.nodeName, 'n');
});

test('bindings and evictions are decoded as strictly as other objects', async () => {
  const at = `${pods(space)}/decoded`;
  await api.made(api.post(pods(space), pod('decoded')));
  const eviction = (fields: object, version = 'v1') => ({
    apiVersion: `policy/${version}`,
    kind: 'Eviction',
    metadata: { name: 'decoded' },
    ...fields,
  });
  const strict = '?fieldValidation=Strict&dryRun=All';
  const replies = [
    await api.post(`${at}/binding${strict}`, { ...binding('decoded', 'n'), node: 'n' }),
    await api.post(`${at}/eviction${strict}`, eviction({ force: true })),
    await api.post(`${at}/eviction${strict}`, eviction({ deleteOptions: { dryRun: 'All' } })),
    await api.post(`${at}/eviction${strict}`, eviction({}, 'v2')),
    await api.post(`${at}/eviction${strict}`, eviction({}, 'v1beta1')),
  ];
  assert.deepEqual(
    replies.map(({ status, body }) => [status, body.message]),
    [
      [
        400,
        'Binding in version "v1" cannot be handled as a Binding: strict decoding error: unknown field "node"',
      ],
      [
        400,
        'Eviction in version "v1" cannot be handled as a Eviction: strict decoding error: unknown field "force"',
      ],
      [
        400,
        'Eviction in version "v1" cannot be handled as a Eviction: json: cannot unmarshal string into Go struct field DeleteOptions.deleteOptions.dryRun of type []string',
      ],
      [
        400,
        'Eviction in version "v2" cannot be handled as a Eviction: no kind "Eviction" is registered for version "policy/v2" in scheme "pkg/runtime/scheme.go:111"',
      ],
      [201, undefined],
    ],
  );
});

test('a binding requires a pod and a node', async () => {
  assertRejected(await api.post(`${pods(space)}/nope/binding`, binding('nope', 'n')), {
    code: 404,
    reason: 'NotFound',
    message: 'pods "nope" not found',
  });
  await api.made(api.post(pods(space), pod('unbound')));
  assertRejected(await api.post(`${pods(space)}/unbound/binding`, binding('unbound', '')), {
    code: 500,
    message: 'target.name: Required value',
  });
});

test('a pod gets defaults and the phase Pending', async () => {
  const { spec, status, metadata } = await api.made(api.post(pods(space), pod('defaults')));
  assert.deepEqual(
    [spec.restartPolicy, spec.dnsPolicy, spec.schedulerName, spec.terminationGracePeriodSeconds],
    ['Always', 'ClusterFirst', 'default-scheduler', 30],
  );
  const [{ imagePullPolicy, terminationMessagePath }] = spec.containers;
  assert.deepEqual([imagePullPolicy, terminationMessagePath], ['Always', '/dev/termination-log']);
  assert.deepEqual([status.phase, status.qosClass], ['Pending', 'BestEffort']);
  assert.equal(metadata.generation, 1);
});

test('a pod gets the priority, the overhead and the node labels of its classes', async () => {
  const suffix = space;
  await api.made(
    api.post('/apis/scheduling.k8s.io/v1/priorityclasses', {
      metadata: { name: `high-${suffix}` },
      value: 1000,
      preemptionPolicy: 'Never',
    }),
  );
  await api.made(
    api.post('/apis/node.k8s.io/v1/runtimeclasses', {
      metadata: { name: `boxed-${suffix}` },
      handler: 'boxed',
      overhead: { podFixed: { cpu: '10m' } },
      scheduling: { nodeSelector: { box: 'yes' }, tolerations: [{ key: 'box' }] },
    }),
  );
  const classed = (name: string, own: object): Json => {
    const draft = pod(name);
    return { ...draft, spec: { ...draft.spec, ...own } };
  };
  const classes = { priorityClassName: `high-${suffix}`, runtimeClassName: `boxed-${suffix}` };
  const { spec } = await api.made(api.post(pods(space), classed('classed', classes)));
  assert.deepEqual(
    [spec.priority, spec.preemptionPolicy, spec.overhead, spec.nodeSelector],
    [1000, 'Never', { cpu: '10m' }, { box: 'yes' }],
  );
  assert.ok(spec.tolerations.some(({ key }: Json) => key === 'box'));
  for (const [own, why] of [
    [{ priorityClassName: 'none' }, 'no PriorityClass with name none was found'],
    [{ runtimeClassName: 'none' }, 'pod rejected: RuntimeClass "none" not found'],
    [
      { ...classes, nodeSelector: { box: 'no' } },
      'conflict: runtimeClass.scheduling.nodeSelector[box] = yes; pod.spec.nodeSelector[box] = no',
    ],
    [
      { ...classes, priority: 5 },
      'the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name',
    ],
  ] as const) {
    const { status, body } = await api.post(pods(space), classed('refused', own));
    assert.deepEqual(
      [status, body.message],
      [403, `pods "refused" is forbidden: ${why}`],
      JSON.stringify(own),
    );
  }
});

test('the overhead of a Pod is checked after its other fields', async () => {
  const refused = async (own: object) => {
    const draft = pod('overhead');
    const spec = { ...draft.spec, overhead: { cpu: '1' }, ...own };
    const { status, body } = await api.post(pods(space), { ...draft, spec });
    return `${status} ${body.message}`;
  };
  assert.match(await refused({}), /^403 .*without corresponding RuntimeClass defined Overhead$/);
  assert.match(await refused({ containers: [] }), /^422 .*spec.containers: Required value$/);
  assert.match(await refused({ runtimeClassName: '' }), /^500 resource name may not be empty$/);
});

test('a Pod gets the zone and the region of its Node, and the labels of its Binding', async () => {
  const labels = { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r' };
  const node = `topology-${space}`;
  const metadata = { name: node, labels: { ...labels, 'topology.kubernetes.io/other': 'o' } };
  await api.made(api.post('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata }));
  const labelled = { 'topology.kubernetes.io/zone': 'mine', own: 'yes' };
  for (const name of ['topology-a', 'topology-b']) {
    const draft = pod(name);
    await api.made(
      api.post(pods(space), {
        ...draft,
        metadata: { name, labels: labelled },
        spec: { ...draft.spec, ...(name === 'topology-b' && { nodeName: node }) },
      }),
    );
  }
  await api.made(
    api.post(`${pods(space)}/topology-a/binding`, {
      ...binding('topology-a', node),
      metadata: { name: 'topology-a', labels: { bound: 'yes' }, annotations: { bound: 'yes' } },
    }),
  );
  const read = async (name: string) => (await api.get(`${pods(space)}/${name}`)).body;
  const bound = await read('topology-a');
  assert.deepEqual(bound.metadata.labels, { own: 'yes', bound: 'yes', ...labels });
  assert.deepEqual(bound.metadata.annotations, { bound: 'yes' });
  assert.equal(bound.status.conditions[0].lastProbeTime, null);
  assert.deepEqual((await read('topology-b')).metadata.labels, { own: 'yes', ...labels });
});

test(
  'hostnameOverride excludes the network of the host and is a domain name',
  skipBefore(37),
  async () => {
    for (const [own, why] of [
      [{ hostNetwork: true }, 'Forbidden: may not be specified when hostNetwork is true'],
      [
        { setHostnameAsFQDN: true },
        'Forbidden: may not be specified when setHostnameAsFQDN is true',
      ],
    ] as const) {
      const draft = pod('overridden');
      const spec = { ...draft.spec, hostnameOverride: 'a', ...own };
      const { status, body } = await api.post(pods(space), { ...draft, spec });
      assert.deepEqual(
        [status, body.message],
        [422, `Pod "overridden" is invalid: spec.hostnameOverride: ${why}`],
      );
    }
  },
);

test('an invalid pod is rejected', async () => {
  const none = pod('none');
  none.spec.containers = [];
  assertRejected(await api.post(pods(space), none), {
    code: 422,
    reason: 'Invalid',
    message: 'Pod "none" is invalid: spec.containers: Required value',
    causes: [['spec.containers', 'Required value']],
  });
  const odd = pod('odd');
  odd.spec.restartPolicy = 'Sometimes';
  assertRejected(await api.post(pods(space), odd), {
    code: 422,
    reason: 'Invalid',
    message:
      'Pod "odd" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
  });
});

test('a Pod with a later deadline has no other error of its update', async () => {
  const space = await api.namespace();
  const draft = pod('late');
  draft.spec.activeDeadlineSeconds = 1;
  await api.made(api.post(pods(space), draft));
  const spec = { activeDeadlineSeconds: 5, hostNetwork: true };
  assertRejected(await api.patch(`${pods(space)}/late`, { spec }), {
    code: 422,
    reason: 'Invalid',
    message:
      'Pod "late" is invalid: spec.activeDeadlineSeconds: Invalid value: 5: must be less than or equal to previous value',
  });
});

test('events are selected by their involved object', async () => {
  const events = `/api/v1/namespaces/${space}/events`;
  const time = '2024-01-01T00:00:00Z';
  const event = (name: string, kind: string, type: string) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name },
    involvedObject: { kind, name: 'p', namespace: space, uid: `uid-of-${kind}` },
    reason: 'Tested',
    message: 'It was tested.',
    type,
    source: { component: 'tester' },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  });
  await api.made(api.post(events, event('a', 'Pod', 'Normal')));
  await api.made(api.post(events, event('b', 'Widget', 'Warning')));
  const selected: [string, string[]][] = [
    // As kubectl describe selects them.
    [
      `involvedObject.name=p,involvedObject.namespace=${space},involvedObject.kind=Pod,involvedObject.uid=uid-of-Pod`,
      ['a'],
    ],
    ['involvedObject.name=p', ['a', 'b']],
    ['reason=Tested,type!=Warning', ['a']],
    ['source=tester,type=Warning', ['b']],
    ['involvedObject.apiVersion=,involvedObject.fieldPath=', ['a', 'b']],
    ['involvedObject.name!=p', []],
  ];
  for (const [selector, names] of selected) {
    const { body } = await api.get(`${events}?fieldSelector=${encodeURIComponent(selector)}`);
    assert.deepEqual(namesIn(body), names, selector);
  }
  assertRejected(await api.get(`${events}?fieldSelector=odd%3Dx`), {
    code: 400,
    reason: 'BadRequest',
    message: 'field label not supported: odd',
  });
});

test('an event must be in the namespace of its involved object', async () => {
  const events = `/api/v1/namespaces/${space}/events`;
  const reply = await api.post(events, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'elsewhere' },
    involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' },
    reason: 'Tested',
    type: 'Normal',
  });
  assertRejected(reply, {
    code: 422,
    reason: 'Invalid',
    message:
      'Event "elsewhere" is invalid: involvedObject.namespace: Invalid value: "default": does not match event.namespace',
  });
});

test('events.k8s.io accepts a series and rejects other changes of an event', async () => {
  const events = `/apis/events.k8s.io/v1/namespaces/${space}/events`;
  const eventTime = '2026-01-01T00:00:00.000000Z';
  const event = (name: string, fields: object) => ({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name },
    regarding: { kind: 'Pod', name: 'p', namespace: space, uid: 'u' },
    eventTime,
    reason: 'Tested',
    action: 'Testing',
    note: 'It was tested.',
    type: 'Normal',
    reportingController: 'tester',
    reportingInstance: 'tester-1',
    ...fields,
  });
  await api.made(api.post(events, event('series', {})));
  for (const [fields, message] of [
    [{ deprecatedCount: 1 }, 'count: Invalid value: "": needs to be unset'],
    [{ eventTime: null }, 'eventTime: Required value'],
    [
      { series: { count: 1, lastObservedTime: eventTime } },
      'series.count: Invalid value: "": should be at least 2',
    ],
  ] as const) {
    const { status, body } = await api.post(events, event('wrong', fields));
    assert.deepEqual([status, body.message], [422, `Event "wrong" is invalid: ${message}`]);
  }
  const patch = (body: object) => api.patch(`${events}/series`, body, STRATEGIC);
  for (const [body, message] of [
    [{ note: 'Changed' }, 'message: Invalid value: "Changed": field is immutable'],
    [
      { series: { count: 0, lastObservedTime: eventTime } },
      'series.count: Invalid value: "": should be at least 2',
    ],
  ] as const) {
    const { status, body: reply } = await patch(body);
    assert.deepEqual([status, reply.message], [422, `Event "series" is invalid: ${message}`]);
  }
  assert.equal((await patch({ series: { count: 2, lastObservedTime: eventTime } })).status, 200);
  const { body } = await api.get(`/api/v1/namespaces/${space}/events/series`);
  assert.deepEqual(
    [body.series, body.involvedObject.name, body.message, body.reportingComponent, body.count],
    [{ count: 2, lastObservedTime: eventTime }, 'p', 'It was tested.', 'tester', undefined],
  );
});

for (const apiVersion of ['v1', 'events.k8s.io/v1'] as const) {
  test(`events of ${apiVersion} that a recorder cut to the limits are accepted`, async () => {
    const namespace = await api.namespace();
    const config = await loadClusterConfig({ kubeconfig: api.kubeconfigPath });
    const connection = connectCluster(config);
    const { log, lines } = recordingLogger();
    const texts = ['', 'x', 'é', '字', '😀', '\ud800', '\udc00a', '\u0007'].map((text) =>
      text.repeat(600),
    );
    const components = ['web', 'example.com/web', 'My Controller!', 'a/b/c', '_', '字', ...texts];
    for (const [at, component] of components.entries()) {
      const text = texts[at % texts.length] ?? '';
      const broadcaster = new EventBroadcaster(
        { client: connection.client, clock: systemClock, log },
        { apiVersion, host: text },
      );
      const stop = new AbortController();
      const running = broadcaster.run(stop.signal);
      const metadata = { name: `pod-${at}`, namespace, uid: `uid-${at}` };
      broadcaster
        .recorder(component)
        .normal({ apiVersion: 'v1', kind: 'Pod', metadata }, text, text, {
          action: text,
          annotations: { 'example.com/text': text },
        });
      stop.abort();
      await running;
    }
    await connection.close();
    const errors = lines.filter(({ level }) => level === 'error');
    assert.deepEqual(
      errors.map(({ message, error }) => `${message}: ${String(error)}`),
      [],
    );
    const { items } = (await api.get(`/api/v1/namespaces/${namespace}/events`)).body;
    assert.equal(items.length, components.length);
    assert.ok(!JSON.stringify(items).includes('\\ud'), 'lone surrogates');
  });
}
