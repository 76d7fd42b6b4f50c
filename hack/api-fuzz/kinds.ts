import { ACCESS_KINDS } from './access-kinds.ts';
import { schemaWithRules } from './cel-rules.ts';
import { CONVERSION, GADGET_CRD, GROUP, SCHEMAS, THINGS, VERSIONS, version } from './crds.ts';
import type { JsonSchema } from '../../src/api/json-schema.ts';
import type { Choices } from './choices.ts';
import type { Field } from './fields.ts';
import { under } from './fields.ts';
import { MORE_KINDS } from './more-kinds.ts';
import type { Json } from './requests.ts';
import type { Change } from './schema-values.ts';
import { formattedTexts } from './texts.ts';

export interface FuzzKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
  readonly base: Json;
  /** The schema of the members besides the metadata, for built-in kinds. */
  readonly schema?: JsonSchema;
  readonly fields: readonly Field[];
  /** Returns a generated change of an object or of its subresource `part`, or undefined for one of `fields`. */
  readonly change?: (choices: Choices, part: string) => Change | undefined;
  readonly subresources?: readonly ('status' | 'scale')[];
  readonly selectors?: readonly string[];
  /** Other versions of the kind that are served, or not. */
  readonly otherVersions?: readonly string[];
  /** @default a, b and c */
  readonly names?: readonly string[];
  readonly isClusterScoped?: boolean;
  /** True if every write is a dry run. */
  readonly isDryRun?: boolean;
  /** True if objects are not stored. */
  readonly isCreateOnly?: boolean;
  /**
   * Users of half of the requests.
   * @default `USERS`, of few requests
   */
  readonly users?: readonly string[];
}

const LONG = 'x'.repeat(300);
const PARTS = [
  [{ name: 'a', value: 1 }],
  [{ name: 'b' }, { name: 'a', value: 2 }],
  [],
  [{ name: 'a' }, { name: 'a' }],
  [{}],
  'x',
];
const CONTAINERS = [
  [{ name: 'c', image: 'i' }],
  [
    {
      name: 'c',
      image: 'i',
      env: [{ name: 'A', value: 'b' }, { name: 'B' }],
      ports: [{ containerPort: 80 }],
    },
  ],
  [
    {
      name: 'c',
      image: 'j',
      resources: { requests: { cpu: '0.5', memory: '1Gi' }, limits: { cpu: 1 } },
    },
  ],
  [
    { name: 'c', image: 'i' },
    { name: 'd', image: 'i', command: ['x'], imagePullPolicy: 'Never' },
  ],
  [{ name: 'c', image: 'i:1', livenessProbe: { httpGet: { port: 80 } }, volumeMounts: [] }],
  [{ name: 'c' }],
  [{ name: 'C_', image: 'i' }],
  [],
  [{ name: 'c', image: 'i', resources: { requests: { cpu: 'x' } } }],
  [{ name: 'c', image: 'i', ports: [{ containerPort: 0 }] }],
  [{ name: 'c', image: 'i', env: [{ value: 'b' }] }],
  'x',
] as const;

/** Labels that the admission policies of a comparison select. */
export const DENIED = 'fuzz-denied';
export const CHANGED = 'fuzz-changed';

const ENTRY = {
  manager: 'm4',
  operation: 'Update',
  apiVersion: 'v1',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:data': { 'f:a': {} } },
};
const MANAGED: readonly Json[] = [
  ENTRY,
  {},
  { ...ENTRY, apiVersion: 'v9/x' },
  { ...ENTRY, operation: 'x' },
  { ...ENTRY, manager: 'm'.repeat(129) },
  { ...ENTRY, time: '2020-01-01T00:00:00.5Z' },
  { ...ENTRY, fieldsV1: { 'x:data': {} } },
];

export const METADATA: readonly Field[] = [
  [
    'metadata.labels',
    { a: 'x' },
    { a: 'y', b: 'x' },
    { [CHANGED]: 'x' },
    {},
    undefined,
    { [DENIED]: 'x' },
    { a: '-' },
    { 'a/b/c': 'x' },
    { a: 1 },
    'x',
  ],
  ['metadata.annotations', { a: 'x' }, { b: '' }, undefined, { 'A B': 'x' }, [1]],
  [
    'metadata.finalizers',
    ['example.com/a'],
    ['example.com/a', 'example.com/b'],
    [],
    undefined,
    ['a'],
    'x',
  ],
  [
    'metadata.ownerReferences',
    [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
    [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true }],
    [
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' },
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' },
    ],
    undefined,
    [
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true },
      { apiVersion: 'v1', kind: 'Pod', name: 'q', uid: 'v', controller: true },
    ],
    [{ apiVersion: 'a/b/c', kind: 'Pod', name: 'p', uid: 'u' }],
    [{ apiVersion: 'v1', kind: 'Event', name: 'p', uid: 'u' }],
    [{ kind: 'Pod' }],
    [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', namespace: 'n' }],
    [null],
  ],
  ...MANAGED.map((entry): Field => ['metadata.managedFields', [entry]]),
  ['metadata.resourceVersion', '$rv', '$rv', '$rv', undefined, '1', 'x', '0'],
  ['metadata.uid', '$uid', undefined, 'x'],
  ['metadata.name', 'a', 'b', undefined, 'Upper', LONG, ''],
  ['metadata.namespace', '$ns', 'other', ''],
  ['metadata.generation', 7, -1, 'x'],
  ['metadata.creationTimestamp', null, '2020-01-01T00:00:00Z', 'x'],
  ['metadata.unknown', 1],
  ['unknown', { a: 1 }],
  ['apiVersion', undefined, 'v9', 5, `${GROUP}/v1beta1`],
  ['kind', undefined, 'Nothing'],
];

const POD_SPEC: readonly Field[] = [
  ['containers', ...CONTAINERS],
  ['restartPolicy', 'Always', 'Never', undefined, 'Sometimes', 1],
  ['terminationGracePeriodSeconds', 0, 5, null, -1, 'x'],
  [
    'tolerations',
    [{ key: 'a', operator: 'Exists' }],
    [],
    [{ operator: 'Exists', value: 'x' }],
    [{ key: 'a', effect: 'X' }],
  ],
  ['nodeSelector', { a: 'b' }, { a: '-' }],
  [
    'volumes',
    [{ name: 'v' }],
    [{ name: 'v', configMap: { name: 'a' } }],
    [{ name: 'v', secret: {} }],
    [{ name: '' }],
  ],
  ['activeDeadlineSeconds', 5, 1, undefined, 0],
  ['hostNetwork', true, false],
  ['securityContext', { runAsUser: 5 }, { runAsUser: -1 }, {}],
];

const TEMPLATE = {
  metadata: { labels: { a: 'x' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};

export const KINDS: readonly FuzzKind[] = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    resource: 'configmaps',
    base: { data: { a: 'x' } },
    fields: [
      [
        'data',
        { a: 'y' },
        { a: 'x', b: '' },
        {},
        undefined,
        null,
        { 'a b': 'x' },
        { a: 1 },
        { '..a': 'x' },
        'x',
      ],
      ['data.c', 'x', '', null, true],
      ['binaryData', { b: 'YQ==' }, {}, { a: 'YQ==' }, { b: 'x!' }, { b: '' }],
      ['immutable', true, false, undefined, 'x'],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    resource: 'secrets',
    base: { data: { a: 'eA==' } },
    fields: [
      ['data', { a: 'eQ==' }, { b: '' }, undefined, { a: '!' }, { a: 5 }],
      ['stringData', { a: 'z', c: 'x' }, { a: '' }, 'x'],
      ['type', 'Opaque', 'a/b', 'kubernetes.io/tls', 'kubernetes.io/basic-auth', 5],
      ['immutable', true, undefined],
    ],
    selectors: ['type=Opaque', 'type!=Opaque'],
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    resource: 'pods',
    base: { spec: { containers: [{ name: 'c', image: 'i' }] } },
    fields: [
      ...under('spec', POD_SPEC),
      ['spec.nodeName', 'n', undefined, 'N_'],
      [
        'status',
        { phase: 'Running' },
        { phase: 'Failed', podIP: '10.0.0.1' },
        { conditions: [{ type: 'Ready', status: 'True' }] },
        { phase: 5 },
      ],
    ],
    subresources: ['status'],
    selectors: ['spec.nodeName=n', 'status.phase=Pending', 'spec.restartPolicy!=Never', 'spec.x=1'],
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    resource: 'services',
    base: { spec: { ports: [{ port: 80 }], selector: { a: 'x' } } },
    fields: [
      [
        'spec.ports',
        [{ port: 81 }],
        [
          { name: 'a', port: 80 },
          { name: 'b', port: 81, targetPort: 'http' },
        ],
        [{ port: 80, protocol: 'UDP' }],
        [],
        [{ port: 0 }],
        [{ port: 80 }, { port: 81 }],
        [{ port: 80, targetPort: 'x y' }],
        'x',
      ],
      ['spec.type', 'ClusterIP', 'ExternalName', 'NodePort', 'LoadBalancer', 'Other'],
      ['spec.externalName', 'example.com', '-'],
      ['spec.clusterIP', undefined, 'None', '', 'x'],
      ['spec.selector', { a: 'y' }, undefined, { a: 1 }],
      ['spec.sessionAffinity', 'None', 'ClientIP', 'x'],
      ['spec.publishNotReadyAddresses', true, 'x'],
      ['spec.externalTrafficPolicy', undefined, 'Local', 'Cluster'],
      [
        'status',
        { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
        { loadBalancer: { ingress: [{ ip: 'x' }] } },
      ],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    resource: 'deployments',
    base: { spec: { selector: { matchLabels: { a: 'x' } }, template: TEMPLATE } },
    fields: [
      ['spec.replicas', 2, 0, undefined, -1, 'x', 1.5],
      ['spec.paused', true, 'x'],
      [
        'spec.strategy',
        { type: 'Recreate' },
        { type: 'RollingUpdate', rollingUpdate: { maxSurge: '30%' } },
        { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
        { type: 'x' },
      ],
      ['spec.minReadySeconds', 5, -1],
      ['spec.progressDeadlineSeconds', 700, 0],
      ['spec.selector', { matchLabels: { a: 'x' } }, { matchLabels: { b: 'x' } }, {}, undefined],
      ['spec.template.metadata.labels', { a: 'x', c: 'z' }, {}, undefined],
      ...under('spec.template.spec', POD_SPEC),
      [
        'status',
        { replicas: 1, observedGeneration: 1 },
        { replicas: 1, readyReplicas: 2 },
        { replicas: -1 },
      ],
    ],
    subresources: ['status', 'scale'],
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    resource: 'jobs',
    base: { spec: { template: { spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } } } },
    fields: [
      ['spec.parallelism', 2, 0, -1],
      ['spec.completions', 3, undefined, -1],
      ['spec.backoffLimit', 1, -1, 'x'],
      ['spec.completionMode', 'Indexed', 'NonIndexed', 'x'],
      ['spec.suspend', true, false],
      ['spec.ttlSecondsAfterFinished', 5, -1],
      ['spec.activeDeadlineSeconds', 5, -1],
      ['spec.template.spec.restartPolicy', 'OnFailure', 'Always', undefined],
      [
        'status',
        { active: 1 },
        { active: -1 },
        { conditions: [{ type: 'Complete', status: 'True' }] },
      ],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    resource: 'leases',
    base: { spec: { holderIdentity: 'a', leaseDurationSeconds: 15 } },
    fields: [
      ['spec.holderIdentity', 'b', '', undefined, 5],
      ['spec.leaseDurationSeconds', 5, 0, -1],
      ['spec.renewTime', '2020-01-01T00:00:00.000000Z', '2020-01-01T00:00:00Z', 'x'],
      ['spec.leaseTransitions', 1, -1],
    ],
  },
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'Widget',
    resource: 'widgets',
    base: { spec: { color: 'red' } },
    change: (choices) =>
      choices.chance(0.2) ? [['spec', 'formats'], formattedTexts(choices)] : undefined,
    fields: [
      ['spec.color', 'blue', 'a', '', 'RED', undefined, 5, LONG],
      ['spec.size', 2, 10, undefined, -1, 11, 'x', 1.5, null],
      ['spec.max', 3, 0, 'x'],
      ['spec.mode', 'Fast', 'Slow', 'x', null],
      ['spec.note', null, 'x', 5],
      ['spec.tags', ['a', 'b'], [], ['a', 'a'], ['a', 'b', 'c', 'd'], [1]],
      ['spec.parts', ...PARTS],
      ['spec.any', { a: { b: [1, 'x'] } }, 5, null],
      ['spec.port', 80, 'http', true, {}],
      ['spec.when', '2020-01-01T00:00:00Z', 'x'],
      ['spec.map', { a: 1 }, { b: -1 }, { a: 'x' }, {}],
      ['spec.unknown', 1],
      ['spec', undefined, null, {}, 'x'],
      ['status', { size: 1, phase: 'x' }, { size: 'x' }, { phase: 5, unknown: 1 }],
    ],
    subresources: ['status', 'scale'],
    selectors: ['spec.color=red', 'spec.color!=red', 'spec.size=1'],
  },
  {
    apiVersion: `${GROUP}/v1`,
    otherVersions: [
      `${GROUP}/v1beta1`,
      `${GROUP}/v1beta1`,
      `${GROUP}/v1beta1`,
      `${GROUP}/v1alpha1`,
    ],
    kind: 'Gadget',
    resource: 'gadgets',
    base: { spec: { color: 'red' } },
    fields: [
      ['spec.color', 'blue', 'green', undefined, 5],
      ['spec.size', 2, 10, undefined, 'x', 1.5, 11],
      ['spec.old', 'x', 'y', 5, undefined],
      ['spec.new', { a: 'x' }, { a: 1 }, {}],
      ['spec.replicas', 1, 0, -1],
      ['spec.parts', ...PARTS],
      ['spec.count', 3, 'x'],
      ['status', { replicas: 1 }, { phase: 'x' }, { phase: 5 }],
    ],
    subresources: ['status', 'scale'],
    selectors: ['spec.color=red', 'spec.color!=red', 'spec.size=2', 'spec.old=x'],
  },
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    resource: 'customresourcedefinitions',
    names: [`things.${GROUP}`, `things.${GROUP}`, `gadgets.${GROUP}`],
    isClusterScoped: true,
    isDryRun: true,
    base: { spec: THINGS },
    change: (choices) => {
      if (choices.chance(0.7)) return undefined;
      const openAPIV3Schema = schemaWithRules(choices);
      return [['spec', 'versions'], [version('v1', { schema: { openAPIV3Schema } })]];
    },
    fields: [
      ['spec', GADGET_CRD.spec, THINGS, {}],
      ['spec.group', 'other.example.com', '', 'x', 'k8s.io', 5],
      ['spec.scope', 'Cluster', 'Other', undefined],
      [
        'spec.conversion',
        { strategy: 'None' },
        { strategy: 'Webhook' },
        { strategy: 'x' },
        CONVERSION,
        {},
      ],
      ['spec.preserveUnknownFields', false, true],
      [
        'spec.names',
        { plural: 'things', kind: 'Thing' },
        { plural: 'Things', kind: 'thing_' },
        { plural: 'gadgets', kind: 'Gadget' },
        {},
      ],
      ['spec.names.shortNames', ['th'], ['gadgets'], ['A'], 'x'],
      ['spec.names.categories', ['all'], ['A B']],
      ['spec.versions', ...VERSIONS],
      ...SCHEMAS.map((schema): Field => [
        'spec.versions',
        [version('v1', { openAPIV3Schema: schema })],
      ]),
      ['status', { storedVersions: ['v1'] }, { storedVersions: ['v9'] }, 'x'],
    ],
  },
  ...MORE_KINDS,
  ...ACCESS_KINDS,
];
