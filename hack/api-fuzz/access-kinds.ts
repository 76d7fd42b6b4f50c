/** Users with permissions of each form, and the kinds that ask for permissions, grant them and are checked for escalation. */
import type { Field } from './fields.ts';
import { under } from './fields.ts';
import type { FuzzKind } from './kinds.ts';
import type { Json } from './requests.ts';

const RBAC = 'rbac.authorization.k8s.io';

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

const RESOURCES = ['configmaps', 'pods', 'widgets', 'deployments', 'poddisruptionbudgets'];
const OF_RBAC = {
  apiGroups: [RBAC],
  resources: ['roles', 'rolebindings'],
  verbs: ['create', 'get', 'list', 'watch', 'update', 'patch', 'delete'],
};

/** The permissions of each user, in all namespaces. */
export const PERMISSIONS: Readonly<Record<string, readonly Rule[]>> = {
  'fuzz-guest': [],
  'fuzz-reader': [
    { apiGroups: ['*'], resources: RESOURCES, verbs: ['list', 'watch', 'create'] },
    { apiGroups: ['*'], resources: RESOURCES, resourceNames: ['a'], verbs: ['*'] },
    { apiGroups: ['*'], resources: ['*/status'], verbs: ['patch'] },
  ],
  'fuzz-author': [
    OF_RBAC,
    {
      apiGroups: ['', 'apps'],
      resources: ['pods', 'deployments', 'configmaps'],
      verbs: ['get', 'list'],
    },
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: ['a', 'b'],
      verbs: ['get', 'deletecollection'],
    },
    { apiGroups: ['batch'], resources: ['*'], verbs: ['*'] },
    { apiGroups: ['*'], resources: ['*/scale', 'pods/*'], verbs: ['get', 'update'] },
    { nonResourceURLs: ['/healthz/*', '/metrics'], verbs: ['get'] },
  ],
  'fuzz-binder': [
    OF_RBAC,
    {
      apiGroups: [RBAC],
      resources: ['roles', 'clusterroles'],
      resourceNames: ['a', 'system:discovery'],
      verbs: ['bind'],
    },
    { apiGroups: [RBAC], resources: ['roles'], resourceNames: ['b'], verbs: ['escalate'] },
    {
      apiGroups: [''],
      resources: ['users', 'groups'],
      resourceNames: ['u'],
      verbs: ['impersonate'],
    },
  ],
};

/** Users of requests: most are the first. */
export const USERS: readonly string[] = ['fuzz-reader', 'fuzz-reader', 'fuzz-guest'];
const AUTHORS = ['fuzz-author', 'fuzz-author', 'fuzz-binder', 'fuzz-binder', 'fuzz-reader'];

const RULES: readonly Json[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  { apiGroups: ['', 'apps'], resources: ['pods', 'deployments'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['get'] },
  {
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: ['c', 'a'],
    verbs: ['get', 'deletecollection'],
  },
  { apiGroups: ['apps'], resources: ['deployments/scale', 'deployments/status'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods/log', 'pods/*', '*/scale'], verbs: ['update'] },
  { apiGroups: ['batch'], resources: ['jobs', 'jobs/status', '*'], verbs: ['*', 'x'] },
  { apiGroups: ['*'], resources: ['pods'], verbs: ['get'] },
  { apiGroups: [''], resources: ['*'], verbs: ['get'] },
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { apiGroups: [RBAC], resources: ['roles'], verbs: ['bind', 'escalate'] },
  { apiGroups: [''], resources: ['users'], resourceNames: ['u'], verbs: ['impersonate'] },
  { nonResourceURLs: ['/healthz/*', '/healthz/ping', '/metrics', '*'], verbs: ['get'] },
  { nonResourceURLs: ['/x'], verbs: ['get'], resources: ['pods'], apiGroups: [''] },
  { verbs: ['get'], resources: ['pods'] },
  { verbs: [] },
];
const ROLE_FIELDS: readonly Field[] = [
  ...RULES.map((rule): Field => ['rules', [rule]]),
  ...RULES.slice(1).map((rule, index): Field => ['rules', [rule, RULES[index], RULES[0]]]),
  ['rules', [], undefined],
];
const AGGREGATION: Field = [
  'aggregationRule',
  { clusterRoleSelectors: [{ matchLabels: { a: 'x' } }] },
  { clusterRoleSelectors: [] },
  { clusterRoleSelectors: [{ matchLabels: { a: '-' } }] },
];

const RESOURCE_ATTRIBUTES: readonly Field[] = [
  [
    'verb',
    'get',
    'list',
    'watch',
    'create',
    'update',
    'patch',
    'delete',
    'deletecollection',
    '*',
    'bind',
    '',
  ],
  ['group', '', 'apps', 'batch', RBAC, '*', 'fuzz.example.com', 'x'],
  ['version', 'v1', '*'],
  [
    'resource',
    'configmaps',
    'pods',
    'secrets',
    'deployments',
    'jobs',
    'roles',
    'users',
    '*',
    'widgets',
    '',
  ],
  ['subresource', 'status', 'scale', 'log', '*', ''],
  ['name', 'a', 'b', 'u', 'view', ''],
  ['namespace', '$ns', '', 'other'],
  [
    'fieldSelector',
    { rawSelector: 'metadata.name=a' },
    { requirements: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] },
    { rawSelector: '((' },
    { requirements: [{ key: 'a', operator: 'x' }] },
    {},
    { rawSelector: 'a=b', requirements: [{ key: 'a', operator: 'Exists' }] },
  ],
  [
    'labelSelector',
    { rawSelector: 'a in (b)' },
    { requirements: [{ key: 'a', operator: 'Exists' }] },
    { requirements: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
    { rawSelector: '((' },
  ],
];
const PATH_ATTRIBUTES: readonly Field[] = [
  ['path', '/healthz', '/healthz/ping', '/metrics', '/metrics/x', '/api', ''],
  ['verb', 'get', 'post', '*', ''],
];
const atResource = under('spec.resourceAttributes', RESOURCE_ATTRIBUTES);
const REVIEW_FIELDS: readonly Field[] = [
  ...atResource,
  ...atResource,
  ...under('spec.nonResourceAttributes', PATH_ATTRIBUTES),
  ['spec.resourceAttributes', undefined, {}, 'x'],
];
const SUBJECT_FIELDS: readonly Field[] = [
  ...REVIEW_FIELDS,
  [
    'spec.user',
    'fuzz-reader',
    'fuzz-author',
    'fuzz-binder',
    'fuzz-guest',
    '',
    'system:serviceaccount:$ns:default',
  ],
  ['spec.groups', ['system:masters'], ['system:authenticated'], [], [''], 'x'],
  ['spec.extra', { a: ['b'] }, { a: [] }, { A: 'x' }],
  ['spec.uid', 'x', 5],
];
const REVIEW = { apiVersion: 'authorization.k8s.io/v1', isCreateOnly: true };
const resourceAttributes = { verb: 'get', resource: 'pods' };

export const ACCESS_KINDS: readonly FuzzKind[] = [
  {
    apiVersion: `${RBAC}/v1`,
    kind: 'Role',
    resource: 'roles',
    base: { rules: [RULES[0]] },
    fields: ROLE_FIELDS,
    users: AUTHORS,
  },
  {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    resource: 'clusterroles',
    isClusterScoped: true,
    isDryRun: true,
    base: { rules: [RULES[0]] },
    fields: [...ROLE_FIELDS, AGGREGATION, AGGREGATION],
    users: AUTHORS,
  },
  {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    resource: 'rolebindings',
    base: { roleRef: { apiGroup: RBAC, kind: 'Role', name: 'a' } },
    fields: [
      [
        'subjects',
        [{ apiGroup: RBAC, kind: 'User', name: 'u' }],
        [{ kind: 'x', name: 'u' }],
        [{}],
        [],
        'x',
      ],
      [
        'subjects',
        [{ kind: 'ServiceAccount', name: 'u', namespace: '$ns' }],
        [{ kind: 'Group', name: '' }],
      ],
      [
        'roleRef',
        { apiGroup: RBAC, kind: 'Role', name: 'b' },
        { kind: 'Role', name: 'a' },
        {},
        undefined,
      ],
      // Without controllers, a kube-apiserver has no rules for `view` and `edit`.
      ...['cluster-admin', 'system:discovery', 'absent'].map((name): Field => [
        'roleRef',
        { apiGroup: RBAC, kind: 'ClusterRole', name },
      ]),
      ['roleRef.name', 'b', 'c', '', 'a/b'],
      ['roleRef.apiGroup', '', 'x'],
    ],
    users: AUTHORS,
  },
  {
    ...REVIEW,
    kind: 'SubjectAccessReview',
    resource: 'subjectaccessreviews',
    isClusterScoped: true,
    base: { spec: { user: 'fuzz-author', resourceAttributes } },
    fields: SUBJECT_FIELDS,
  },
  {
    ...REVIEW,
    kind: 'LocalSubjectAccessReview',
    resource: 'localsubjectaccessreviews',
    base: {
      spec: {
        user: 'fuzz-binder',
        resourceAttributes: { ...resourceAttributes, namespace: '$ns' },
      },
    },
    fields: SUBJECT_FIELDS,
  },
  {
    ...REVIEW,
    kind: 'SelfSubjectAccessReview',
    resource: 'selfsubjectaccessreviews',
    isClusterScoped: true,
    base: { spec: { resourceAttributes } },
    fields: REVIEW_FIELDS,
    users: AUTHORS,
  },
  {
    ...REVIEW,
    kind: 'SelfSubjectRulesReview',
    resource: 'selfsubjectrulesreviews',
    isClusterScoped: true,
    base: { spec: { namespace: '$ns' } },
    fields: [['spec.namespace', 'default', '', undefined, 5]],
    users: AUTHORS,
  },
];
