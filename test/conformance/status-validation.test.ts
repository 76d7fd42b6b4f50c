import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { skipBefore } from '../support/skip.ts';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { CRDS, deployment, pod, widgetCrd } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
});

after(() => api.close());

const CONDITION = {
  type: 'Ready',
  status: 'True',
  reason: 'Done',
  message: '',
  lastTransitionTime: '2024-01-01T00:00:00Z',
};
const NEGATIVE = 'Invalid value: -1: must be greater than or equal to 0';

/** Conditions of the type `metav1.Condition`, and the problems of the last one. */
const CONDITIONS: readonly (readonly [changed: object, field: string, problem: string])[] = [
  [{ type: '' }, 'type', 'Required value: is required'],
  [{ type: 'a b' }, 'type', 'Invalid value: "a b": name part must consist of'],
  [{ status: 'x' }, 'status', 'Unsupported value: "x": supported values: "False", "True"'],
  [{ observedGeneration: -1 }, 'observedGeneration', 'Invalid value: -1: must be greater than'],
  [{ lastTransitionTime: null }, 'lastTransitionTime', 'Required value'],
  [{ lastTransitionTime: '0001-01-01T00:00:00Z' }, 'lastTransitionTime', 'Required value'],
  [{ reason: '' }, 'reason', 'Required value'],
  [{ reason: 'R-R' }, 'reason', 'Invalid value: "R-R": a condition reason must start with'],
  [{ reason: 'R'.repeat(1025) }, 'reason', 'Too long: may not be more than 1024 bytes'],
  [{ message: 'm'.repeat(32_769) }, 'message', 'Too long: may not be more than 32768 bytes'],
];

const template = { metadata: { labels: { a: 'b' } }, spec: pod('x').spec };
const workload = { selector: { matchLabels: { a: 'b' } }, template };

interface StatusCase {
  readonly path: string;
  readonly spec: Json;
  /** A status that is written before. */
  readonly valid?: Json;
  /** Invalid statuses, and their problems. */
  readonly invalid: readonly (readonly [status: Json, problem: string])[];
}

const negative = (...fields: string[]) =>
  fields.map((field) => [{ [field]: -1 }, `status.${field}: ${NEGATIVE}`] as const);
const COLLISIONS = [
  { collisionCount: 1 },
  'status.collisionCount: Invalid value: 1: cannot be decremented',
] as const;
const ingress = (point: object, problem: string) =>
  [{ loadBalancer: { ingress: [point] } }, `status.loadBalancer.ingress[0].${problem}`] as const;
const POINTS = [
  ingress({ ip: 'x', ipMode: 'VIP' }, 'ip: Invalid value: "x": must be a valid IP address'),
  ingress({ hostname: '1.2.3.4' }, 'hostname: Invalid value: "1.2.3.4": must be a DNS name'),
  ingress({ hostname: 'A.b' }, 'hostname: Invalid value: "A.b": a lowercase RFC 1123'),
];

const CASES: Readonly<Record<string, StatusCase>> = {
  PodDisruptionBudget: {
    path: '/apis/policy/v1/namespaces/$/poddisruptionbudgets',
    spec: { minAvailable: 1 },
    invalid: [
      ...CONDITIONS.map(
        ([changed, field, problem]) =>
          [
            { conditions: [{ ...CONDITION, ...changed }] },
            `status.conditions[0].${field}: ${problem}`,
          ] as const,
      ),
      [{ conditions: [CONDITION, CONDITION] }, 'status.conditions[1]: Duplicate value: "Ready"'],
      ...negative('disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'),
    ],
  },
  Deployment: {
    path: '/apis/apps/v1/namespaces/$/deployments',
    spec: deployment('x').spec,
    valid: { collisionCount: 2 },
    invalid: [...negative('unavailableReplicas', 'terminatingReplicas'), COLLISIONS],
  },
  StatefulSet: {
    path: '/apis/apps/v1/namespaces/$/statefulsets',
    spec: { ...workload, serviceName: 'x' },
    valid: { collisionCount: 2 },
    invalid: [
      ...negative('availableReplicas'),
      [
        { replicas: 2, availableReplicas: 1 },
        'status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas',
      ],
      COLLISIONS,
    ],
  },
  ReplicaSet: {
    path: '/apis/apps/v1/namespaces/$/replicasets',
    spec: workload,
    invalid: negative('terminatingReplicas'),
  },
  DaemonSet: {
    path: '/apis/apps/v1/namespaces/$/daemonsets',
    spec: workload,
    valid: { collisionCount: 2 },
    invalid: [
      ...negative('observedGeneration', 'currentNumberScheduled', 'numberMisscheduled'),
      ...negative('desiredNumberScheduled', 'numberReady', 'updatedNumberScheduled'),
      ...negative('numberAvailable', 'numberUnavailable'),
      COLLISIONS,
    ],
  },
  Job: {
    path: '/apis/batch/v1/namespaces/$/jobs',
    spec: {
      completions: 3,
      completionMode: 'Indexed',
      backoffLimitPerIndex: 1,
      template: { spec: { ...pod('x').spec, restartPolicy: 'Never' } },
    },
    valid: { completedIndexes: '0-1' },
    invalid: [
      [{ completedIndexes: '1,3' }, 'error parsing completedIndexes: too large index: "3"'],
      [{ completedIndexes: '2,1' }, 'non-increasing order, previous: 2, current: 1'],
      [{ completedIndexes: 'x' }, 'cannot convert string to integer for index: "x"'],
      [{ failedIndexes: '0-1-2' }, "can have at most two parts separated by '-'"],
      [{ failedIndexes: '1' }, 'failedIndexes and completedIndexes overlap at index: 1'],
      [
        { uncountedTerminatedPods: { succeeded: ['a'], failed: ['a'] } },
        'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
      ],
      [
        { uncountedTerminatedPods: { succeeded: [''] } },
        'status.uncountedTerminatedPods.succeeded[0]: Invalid value: "": must not be empty',
      ],
    ],
  },
  HorizontalPodAutoscaler: {
    path: '/apis/autoscaling/v2/namespaces/$/horizontalpodautoscalers',
    spec: { maxReplicas: 1, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'A', name: 'a' } },
    invalid: negative('currentReplicas', 'desiredReplicas'),
  },
  Service: {
    path: '/api/v1/namespaces/$/services',
    spec: { type: 'LoadBalancer', ports: [{ port: 1 }] },
    invalid: [
      ...POINTS,
      ingress({ ip: '1.2.3.4', ipMode: 'x' }, 'ipMode: Unsupported value: "x"'),
      ingress({ hostname: 'a', ipMode: 'VIP' }, 'ipMode: Forbidden: may not be specified when'),
    ],
  },
  Ingress: {
    path: '/apis/networking.k8s.io/v1/namespaces/$/ingresses',
    spec: { defaultBackend: { service: { name: 's', port: { number: 1 } } } },
    invalid: POINTS,
  },
  Pod: {
    path: '/api/v1/namespaces/$/pods',
    spec: pod('x').spec,
    invalid: [
      [
        { hostIPs: [{ ip: '1.1.1.1' }] },
        'status.hostIPs[0].ip: Invalid value: "1.1.1.1": must be equal to `hostIP`',
      ],
    ],
  },
  Node: {
    path: '/api/v1/nodes',
    spec: {},
    invalid: [
      [
        {
          addresses: [
            { type: 'InternalIP', address: '1.1.1.1' },
            { type: 'InternalIP', address: '1.1.1.1' },
          ],
        },
        'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"1.1.1.1"}',
      ],
    ],
  },
  ValidatingAdmissionPolicy: {
    path: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['x.y'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['x'] },
        ],
      },
      validations: [{ expression: 'true' }],
    },
    invalid: [
      [{ conditions: [{ ...CONDITION, reason: '' }] }, 'conditions[0].reason: Required value'],
      [
        { typeChecking: { expressionWarnings: [{ fieldRef: ' ', warning: 'x' }] } },
        'status.typeChecking.expressionWarnings[0].fieldRef: Required value',
      ],
      [
        { typeChecking: { expressionWarnings: [{ fieldRef: 'a[', warning: 'x' }] } },
        'expressionWarnings[0].fieldRef: Invalid value: "a[": invalid JSONPath: ',
      ],
    ],
  },
};

for (const [kind, { path, spec, valid, invalid }] of Object.entries(CASES)) {
  test(`the status of a ${kind} is validated`, skipBefore(37), async () => {
    const list = path.replace('$', space);
    const name = `${space}-a`;
    await api.made(api.post(list, { metadata: { name }, spec }));
    if (valid) await api.made(api.patch(`${list}/${name}/status`, { status: valid }));
    for (const [status, problem] of invalid) {
      const reply = await api.patch(`${list}/${name}/status`, { status });
      assert.equal(reply.status, 422, `${JSON.stringify(status)}: ${reply.text}`);
      assert.ok(reply.body.message.includes(problem), reply.body.message);
    }
  });
}

test('the status of a CRD has valid names, and versions that the spec need not have', async () => {
  const crd = widgetCrd('status-validation.example.com');
  await api.install(crd);
  const path = `${CRDS}/${crd.metadata.name}/status`;
  const { status, body } = await api.patch(path, { status: { acceptedNames: { plural: 'A' } } });
  assert.equal(status, 422);
  assert.match(body.message, /status\.acceptedNames\.plural: Invalid value: "A": a DNS-1035 label/);
  for (const [sent, stored] of [
    [
      ['v0', 'v1'],
      ['v0', 'v1'],
    ],
    [[], ['v1']],
  ]) {
    const made = await api.made(api.patch(path, { status: { storedVersions: sent } }));
    assert.deepEqual(made.status.storedVersions, stored);
  }
});

test('the finalizers of the contents of a Namespace are validated', async () => {
  const name = await api.namespace();
  const finalize = { metadata: { name }, spec: { finalizers: ['x'] } };
  const { status, body } = await api.put(`/api/v1/namespaces/${name}/finalize`, finalize);
  assert.equal(status, 422);
  assert.match(body.message, /spec\.finalizers\[0\]: Invalid value: "x": name is neither/);
});
