import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject } from '../../../../../src/apiserver/objects/resource-definition.ts';
import { context, created, draft, kind, problems, updateProblems, updated } from '../admitted.ts';

const container = { name: 'web', image: 'nginx' };
const spec = { containers: [container] };

function specOf(object: ApiObject): Record<string, unknown> {
  return object['spec'] as Record<string, unknown>;
}

test('a new pod gets the defaults of a real server', () => {
  const pod = created('Pod', { spec });
  assert.deepEqual(pod['spec'], {
    containers: [
      {
        name: 'web',
        image: 'nginx',
        imagePullPolicy: 'Always',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ],
    dnsPolicy: 'ClusterFirst',
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
    priority: 0,
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    tolerations: [
      {
        key: 'node.kubernetes.io/not-ready',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
      {
        key: 'node.kubernetes.io/unreachable',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
    ],
  });
  assert.deepEqual(pod['status'], { phase: 'Pending', qosClass: 'BestEffort' });
});

test('fields that are set are not defaulted', () => {
  const tolerations = [{ operator: 'Exists' }];
  const given = { ...spec, restartPolicy: 'Never', terminationGracePeriodSeconds: 0, tolerations };
  const pod = specOf(created('Pod', { spec: given, status: { phase: 'Running' } }));
  assert.equal(pod['restartPolicy'], 'Never');
  assert.equal(pod['terminationGracePeriodSeconds'], 0);
  assert.deepEqual(pod['tolerations'], tolerations);
});

test('defaulting is idempotent', () => {
  const volumes = [{ name: 'a' }, { name: 'b', configMap: { name: 'c' } }];
  const probe = { httpGet: { port: 80 }, periodSeconds: 0 };
  const rich = { ...spec, volumes, containers: [{ ...container, livenessProbe: probe }] };
  const once = created('Pod', { spec: rich });
  const twice = structuredClone(once);
  kind('Pod').hooks?.applyDefaults?.(twice);
  assert.deepEqual(twice, once);
});

const pulled: readonly [image: string, policy: string][] = [
  ['nginx', 'Always'],
  ['nginx:latest', 'Always'],
  ['nginx:1.27', 'IfNotPresent'],
  ['registry:5000/nginx', 'Always'],
  ['registry:5000/nginx:1.27', 'IfNotPresent'],
  [`nginx@sha256:${'ab'.repeat(32)}`, 'IfNotPresent'],
  [`nginx:latest@sha256:${'ab'.repeat(32)}`, 'Always'],
  ['nginx:latest@sha256:abcd', 'IfNotPresent'],
];

for (const [image, policy] of pulled) {
  test(`${image} is pulled ${policy}`, () => {
    const [first] = specOf(created('Pod', { spec: { containers: [{ name: 'a', image }] } }))[
      'containers'
    ] as Record<string, unknown>[];
    assert.equal(first?.['imagePullPolicy'], policy);
  });
}

test('probes, volumes, ports and references get their defaults', () => {
  const rich = {
    hostNetwork: true,
    serviceAccount: 'robot',
    volumes: [
      { name: 'a' },
      { name: 'b', secret: { secretName: 's' } },
      { name: 'c', hostPath: { path: '/' } },
      { name: 'd', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
    ],
    containers: [
      {
        ...container,
        ports: [{ containerPort: 80 }],
        env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
        readinessProbe: { httpGet: { port: 80 } },
      },
    ],
  };
  const pod = specOf(created('Pod', { spec: rich }));
  const [first] = pod['containers'] as Record<string, unknown>[];
  assert.equal(pod['serviceAccountName'], 'robot');
  assert.deepEqual(pod['volumes'], [
    { name: 'a', emptyDir: {} },
    { name: 'b', secret: { secretName: 's', defaultMode: 420 } },
    { name: 'c', hostPath: { path: '/', type: '' } },
    {
      name: 'd',
      projected: {
        defaultMode: 420,
        sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }],
      },
    },
  ]);
  assert.deepEqual(first?.['ports'], [{ containerPort: 80, protocol: 'TCP', hostPort: 80 }]);
  assert.deepEqual(first?.['env'], [
    { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP', apiVersion: 'v1' } } },
  ]);
  assert.deepEqual(first?.['readinessProbe'], {
    httpGet: { port: 80, path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
});

test('limits become requests and determine the QoS class', () => {
  const limits = { cpu: '500m', memory: '1Gi' };
  const classOf = (resources: object) =>
    created('Pod', { spec: { containers: [{ ...container, resources }] } });
  const guaranteed = classOf({ limits });
  const [first] = specOf(guaranteed)['containers'] as Record<string, unknown>[];
  assert.deepEqual(first?.['resources'], {
    limits: { cpu: '500m', memory: '1Gi' },
    requests: { cpu: '500m', memory: '1Gi' },
  });
  assert.deepEqual(guaranteed['status'], { phase: 'Pending', qosClass: 'Guaranteed' });
  const burstable = classOf({ requests: { cpu: '1' } })['status'];
  assert.deepEqual(burstable, { phase: 'Pending', qosClass: 'Burstable' });
});

test('an arbitrary pod does not throw', () => {
  const hooks = kind('Pod').hooks;
  const shapes: unknown[] = [undefined, null, 1, 'x', [], {}, { containers: {} }];
  shapes.push({ containers: [null, 1, { env: 'x', ports: [null], resources: [] }] });
  shapes.push({ volumes: [null, 'x'], tolerations: 7, containers: [{ livenessProbe: 'x' }] });
  for (const shape of shapes) {
    const pod = draft('Pod', { spec: shape, status: shape });
    hooks?.applyDefaults?.(pod);
    hooks?.prepareForCreate?.(pod, context);
    hooks?.validate?.(pod, undefined);
    hooks?.validateUpdate?.(pod, draft('Pod', { spec }));
  }
});

const mistakes: readonly [mistake: string, spec: object, problem: RegExp][] = [
  ['no containers', { containers: [] }, /^spec.containers: Required value$/],
  ['no name', { containers: [{ image: 'x' }] }, /^spec.containers\[0\].name: Required value$/],
  [
    'a name in capitals',
    { containers: [{ name: 'Web', image: 'x' }] },
    /^spec.containers\[0\].name: Invalid value: "Web": a lowercase RFC 1123 label must consist of/,
  ],
  ['no image', { containers: [{ name: 'a' }] }, /^spec.containers\[0\].image: Required value$/],
  [
    'a name twice',
    { containers: [container, container] },
    /^spec.containers\[1\].name: Duplicate value: "web"$/,
  ],
  [
    'an init container of the same name',
    { ...spec, initContainers: [container] },
    /^spec.initContainers\[0\].name: Duplicate value: "web"$/,
  ],
  [
    'an unknown restart policy',
    { ...spec, restartPolicy: 'Sometimes' },
    /^spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"$/,
  ],
  [
    'an unknown pull policy',
    { containers: [{ ...container, imagePullPolicy: 'Once' }] },
    /^spec.containers\[0\].imagePullPolicy: Unsupported value: "Once": supported values: "Always", "IfNotPresent", "Never"$/,
  ],
  [
    'a port out of range',
    { containers: [{ ...container, ports: [{ containerPort: 70_000 }] }] },
    /^spec.containers\[0\].ports\[0\].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive$/,
  ],
  [
    'a mount without a volume',
    { containers: [{ ...container, volumeMounts: [{ name: 'v', mountPath: '/v' }] }] },
    /^spec.containers\[0\].volumeMounts\[0\].name: Not found: "v"$/,
  ],
  [
    'a request beyond its limit',
    { containers: [{ ...container, resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }] },
    /^spec.containers\[0\].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1$/,
  ],
  [
    'a probe that does nothing',
    { containers: [{ ...container, livenessProbe: {} }] },
    /^spec.containers\[0\].livenessProbe: Required value: must specify a handler type$/,
  ],
];

for (const [mistake, wrong, problem] of mistakes) {
  test(`rejects a Pod with ${mistake} like a real server`, () => {
    const found = problems('Pod', { spec: wrong });
    assert.match(found[0] ?? 'nothing', problem);
  });
}

test('a valid pod is accepted', () => assert.deepEqual(problems('Pod', { spec }), []));

const before = created('Pod', { spec });

function afterChange(change: (spec: Record<string, unknown>) => object): string[] {
  return updateProblems(before, updated(before, { spec: change(specOf(before)) }));
}

test('an update can change images and labels, and add tolerations', () => {
  assert.deepEqual(
    afterChange((was) => was),
    [],
  );
  const [first] = specOf(before)['containers'] as object[];
  assert.deepEqual(
    afterChange((was) => ({ ...was, containers: [{ ...first, image: 'x:1' }] })),
    [],
  );
  const tolerations = [...(specOf(before)['tolerations'] as object[]), { operator: 'Exists' }];
  assert.deepEqual(
    afterChange((was) => ({ ...was, tolerations })),
    [],
  );
  assert.deepEqual(
    afterChange((was) => ({ ...was, activeDeadlineSeconds: 10 })),
    [],
  );
});

test('an update cannot change other fields of the spec', () => {
  const [problem] = afterChange((was) => ({ ...was, nodeName: 'n1' }));
  assert.match(
    problem ?? '',
    /^spec: Forbidden: pod updates may not change fields other than `spec.containers\[\*\].image`,`spec.initContainers\[\*\].image`,.*\n- "NodeName": "[^"]*",\n\+ "NodeName": "n1",\n/s,
  );
  assert.deepEqual(
    afterChange((was) => ({ ...was, containers: [] })),
    ['spec.containers: Forbidden: pod updates may not add or remove containers'],
  );
});

test('an update cannot remove a toleration', () => {
  const tolerant = created('Pod', {
    spec: { ...spec, tolerations: [{ key: 'a', operator: 'Exists' }] },
  });
  const after = updated(tolerant, { spec: { ...specOf(tolerant), tolerations: [] } });
  assert.deepEqual(updateProblems(tolerant, after), [
    'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
  ]);
});

test('fields that admission set stay when a client omits them', () => {
  const { priority: _, preemptionPolicy: __, tolerations: ___, ...given } = specOf(before);
  const after = updated(before, { spec: given });
  assert.deepEqual(after['spec'], before['spec']);
  assert.deepEqual(updateProblems(before, after), []);
});

test('a pod with scheduling gates has a condition for them', () => {
  const gated = created('Pod', { spec: { ...spec, schedulingGates: [{ name: 'g' }] } });
  assert.deepEqual(gated['status'], {
    phase: 'Pending',
    qosClass: 'BestEffort',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        lastProbeTime: null,
        lastTransitionTime: '2026-01-01T00:00:00Z',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ],
  });
});

test('a status without the QoS class keeps it', () => {
  const next = updated(before, { status: { phase: 'Running' } }, 'status');
  assert.deepEqual(next['status'], { phase: 'Running', qosClass: 'BestEffort' });
});

test('podIP is the first of podIPs', () => {
  const statusOf = (status: object) => updated(before, { status }, 'status')['status'];
  const qosClass = 'BestEffort';
  const both = { podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }], qosClass };
  assert.deepEqual(statusOf({ podIP: '10.0.0.1' }), both);
  assert.deepEqual(statusOf({ podIPs: [{ ip: '10.0.0.1' }] }), both);
  assert.deepEqual(statusOf({ podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.2' }] }), both);
});

test('only a scheduled pod has a grace period', () => {
  const grace = kind('Pod').hooks?.gracePeriodSeconds;
  const bound = (phase: string) =>
    draft('Pod', {
      spec: { ...spec, nodeName: 'n1', terminationGracePeriodSeconds: 30 },
      status: { phase },
    });
  assert.equal(grace?.(draft('Pod', { spec }), undefined), 0);
  assert.equal(grace?.(bound('Running'), undefined), 30);
  assert.equal(grace?.(bound('Running'), 5), 5);
  assert.equal(grace?.(bound('Running'), -1), 1);
  assert.equal(grace?.(bound('Succeeded'), 5), 0);
});

test('pods can be selected by node and phase', () => {
  const select = kind('Pod').selectableFields ?? {};
  const pod = draft('Pod', {
    spec: { nodeName: 'n1', restartPolicy: 'Never', hostNetwork: true },
    status: { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }] },
  });
  assert.equal(select['spec.nodeName']?.(pod), 'n1');
  assert.equal(select['spec.restartPolicy']?.(pod), 'Never');
  assert.equal(select['spec.hostNetwork']?.(pod), 'true');
  assert.equal(select['status.phase']?.(pod), 'Running');
  assert.equal(select['status.podIP']?.(pod), '10.0.0.1');
  assert.equal(select['status.nominatedNodeName']?.(pod), '');
});
