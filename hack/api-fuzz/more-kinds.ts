/** Built-in kinds whose status, times, quantities and addresses are validated. */
import type { Field } from './fields.ts';
import type { FuzzKind } from './kinds.ts';
import type { Json } from './requests.ts';

const TIMES: readonly Json[] = [
  '2020-01-01T00:00:00Z',
  '2020-01-01T09:00:00.5+09:00',
  null,
  '0001-01-01T00:00:00Z',
  '2020-01-01t00:00:00Z',
  '2020-02-30T00:00:00Z',
  5,
];

const QUANTITIES: readonly Json[] = [
  '1',
  '1Gi',
  '1.5',
  '+1',
  '00012',
  '1e3',
  1,
  '0.0001',
  '-1',
  '1e400',
  '1K',
  '',
  null,
];

const TEMPLATE = {
  metadata: { labels: { a: 'b' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};
const WORKLOAD = { selector: { matchLabels: { a: 'b' } }, template: TEMPLATE };
const condition = (changed: object) => [
  {
    type: 'Ready',
    status: 'True',
    reason: 'Done',
    message: '',
    lastTransitionTime: '2020-01-01T00:00:00Z',
    ...changed,
  },
];
const CONDITIONS = [
  condition({}),
  condition({ type: 'a b' }),
  condition({ reason: '' }),
  condition({ status: 'x' }),
  ...TIMES.map((lastTransitionTime) => condition({ lastTransitionTime })),
];
const INGRESSES = [
  [{ ip: '1.2.3.4', ipMode: 'VIP' }],
  [{ hostname: 'a.b' }],
  [{ ip: '01.2.3.4' }],
  [{ hostname: '1.2.3.4' }],
];
const COUNTS = [0, 1, 5, -1, 'x', undefined];

export const MORE_KINDS: readonly FuzzKind[] = [
  {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    resource: 'poddisruptionbudgets',
    base: { spec: { minAvailable: 1 } },
    fields: [
      ['spec.minAvailable', 2, '50%', 0, undefined, -1, '101%', 'x'],
      ['spec.maxUnavailable', undefined, 1],
      ['spec.selector', { matchLabels: { a: 'b' } }, {}, { matchExpressions: [{ key: 'a' }] }],
      ['status.conditions', ...CONDITIONS],
      ['status.currentHealthy', ...COUNTS],
      ['status', { disruptedPods: { a: '2020-01-01T00:00:00.5Z' } }, { disruptedPods: { a: 'x' } }],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    resource: 'statefulsets',
    base: { spec: { ...WORKLOAD, serviceName: 'x' } },
    fields: [
      ['spec.replicas', ...COUNTS],
      ['spec.serviceName', 'y', undefined, 'A_'],
      ['spec.updateStrategy', { type: 'OnDelete' }, { type: 'x' }, {}],
      ['spec.ordinals', { start: 1 }, { start: -1 }],
      ['spec.minReadySeconds', ...COUNTS],
      ['status', { replicas: 1, collisionCount: 1 }, { replicas: 1, availableReplicas: 2 }, {}],
    ],
    subresources: ['status', 'scale'],
  },
  {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    resource: 'daemonsets',
    base: { spec: WORKLOAD },
    fields: [
      ['spec.updateStrategy', { type: 'OnDelete' }, { type: 'x' }, undefined],
      ['spec.template.metadata.creationTimestamp', ...TIMES],
      ['spec.template.spec.containers', [{ name: 'd', image: 'j' }], []],
      ['status', { numberReady: 1, collisionCount: 1 }, { numberReady: -1 }, {}],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    resource: 'cronjobs',
    base: {
      spec: {
        schedule: '* * * * *',
        jobTemplate: { spec: { template: { spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } } } },
      },
    },
    fields: [
      ['spec.schedule', '@daily', '1,2,,3 * * * *', '', 'x', 'TZ=UTC * * * * *'],
      ['spec.timeZone', 'Asia/Tokyo', 'asia/tokyo', 'Local', '', 5],
      ['spec.suspend', true, 'x'],
      ['spec.concurrencyPolicy', 'Forbid', 'x'],
      ['status.lastScheduleTime', ...TIMES],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    resource: 'ingresses',
    base: { spec: { defaultBackend: { service: { name: 's', port: { number: 1 } } } } },
    fields: [
      ['spec.rules', [{ host: 'a.b' }], [{ host: '1.2.3.4' }], [{ host: '*' }], [{}], 'x'],
      ['spec.tls', [{ hosts: ['a.b'] }], [{ hosts: ['A_'] }]],
      ['spec.ingressClassName', 'a', 'A_', undefined],
      ['status.loadBalancer.ingress', ...INGRESSES],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    resource: 'networkpolicies',
    base: { spec: { podSelector: {} } },
    fields: [
      ['spec.podSelector', { matchLabels: { a: 'b' } }, { matchLabels: { a: '-' } }, undefined],
      [
        'spec.ingress',
        [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }] }],
        [{ from: [{ ipBlock: { cidr: '10.0.0.1/8' } }] }],
        [{ from: [{}] }],
        [{ ports: [{ port: 'a' }, { port: 70_000 }] }],
      ],
      ['spec.policyTypes', ['Egress'], ['x'], []],
    ],
  },
  {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    resource: 'horizontalpodautoscalers',
    base: {
      spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'A', name: 'a' } },
    },
    fields: [
      ['spec.minReplicas', 2, 0, 5, -1],
      ['spec.maxReplicas', 5, 0, undefined],
      ...QUANTITIES.map((averageValue): Field => [
        'spec.metrics',
        [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'AverageValue', averageValue } },
          },
        ],
      ]),
      ['status', { currentReplicas: 1, desiredReplicas: 1 }, { currentReplicas: -1 }],
      ['status.lastScaleTime', ...TIMES],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'v1',
    kind: 'LimitRange',
    resource: 'limitranges',
    isDryRun: true,
    base: { spec: { limits: [{ type: 'Container', max: { cpu: '2' } }] } },
    fields: [
      ...QUANTITIES.map((cpu): Field => ['spec.limits', [{ type: 'Container', max: { cpu } }]]),
      ...QUANTITIES.map((memory): Field => ['spec.limits', [{ type: 'Pod', min: { memory } }]]),
      ['spec.limits', [{ type: 'x' }], [{}], []],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Event',
    resource: 'events',
    base: { involvedObject: { namespace: '$ns', kind: 'Pod', name: 'p' } },
    fields: [
      ['firstTimestamp', ...TIMES],
      ['lastTimestamp', ...TIMES],
      ['eventTime', '2020-01-01T00:00:00.123456Z', ...TIMES],
      ['series', { count: 2, lastObservedTime: '2020-01-01T00:00:00.000001Z' }, { count: 'x' }],
      ['count', 1, -1, 'x'],
      ['type', 'Normal', 'x', ''],
      ['reason', 'R', 'x'.repeat(200)],
      ['involvedObject.namespace', 'other', '$ns', undefined],
    ],
    selectors: ['type=Normal', 'involvedObject.name=p', 'reason=R'],
  },
];
