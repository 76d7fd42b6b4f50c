import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected, MERGE } from './api.ts';
import { skipBefore } from '../support/skip.ts';

/** Kinds of an installation besides its workload: RBAC, disruption budgets and priority classes. */
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ROLES = `${RBAC}/namespaces/default/roles`;
const ROLE_BINDINGS = `${RBAC}/namespaces/default/rolebindings`;
const CLUSTER_ROLES = `${RBAC}/clusterroles`;
const CLUSTER_ROLE_BINDINGS = `${RBAC}/clusterrolebindings`;
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const PRIORITIES = '/apis/scheduling.k8s.io/v1/priorityclasses';
const GROUP = 'rbac.authorization.k8s.io';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

const named = (name: string, rest: Json = {}): Json => ({ metadata: { name }, ...rest });

async function created(path: string, object: Json): Promise<Json> {
  const reply = await api.post(path, object);
  assert.equal(reply.status, 201, reply.text);
  return reply.body;
}

/** @param subject `Role.rbac.authorization.k8s.io "bad"` */
function assertInvalid(
  reply: Reply,
  subject: string,
  causes: readonly (readonly [field: string, message: string])[],
): void {
  const messages = causes.map(([field, message]) => `${field}: ${message}`);
  const all = messages.length === 1 ? messages[0] : `[${messages.join(', ')}]`;
  assertRejected(reply, {
    code: 422,
    reason: 'Invalid',
    message: `${subject} is invalid: ${all}`,
    causes,
  });
}

/** Returns the table row that kubectl shows. */
async function row(path: string, name: string): Promise<Json> {
  const type = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const { body } = await api.get(`${path}/${name}`, type);
  const columns = body.columnDefinitions.map((column: Json) => [
    column.name,
    column.type,
    column.priority,
  ]);
  return { columns, cells: body.rows[0].cells };
}

test('their resources are discovered', async () => {
  for (const [path, resources] of [
    [
      RBAC,
      [
        ['clusterrolebindings', false, undefined],
        ['clusterroles', false, undefined],
        ['rolebindings', true, undefined],
        ['roles', true, undefined],
      ],
    ],
    [
      '/apis/policy/v1',
      [
        ['poddisruptionbudgets', true, ['pdb']],
        ['poddisruptionbudgets/status', true, undefined],
      ],
    ],
    ['/apis/scheduling.k8s.io/v1', [['priorityclasses', false, ['pc']]]],
  ] as const) {
    const { body } = await api.get(path);
    assert.deepEqual(
      body.resources.map(({ name, namespaced, shortNames }: Json) => [
        name,
        namespaced,
        shortNames,
      ]),
      resources,
    );
  }
});

describe('roles', () => {
  test('are stored unchanged', async () => {
    const rules = [
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      { nonResourceURLs: ['/metrics'], verbs: ['get'] },
    ];
    const role = await created(CLUSTER_ROLES, named('conformance:reader', { rules }));
    // The order of fields in Go is not part of the API.
    assert.deepEqual(role.rules, rules);
    assert.equal(role.metadata.generation, undefined);
    // kube-apiserver returns null, the embedded server omits the field.
    assert.equal((await created(ROLES, named('empty'))).rules ?? null, null);
    const patched = await api.patch(`${ROLES}/empty`, { metadata: { labels: { a: 'b' } } }, MERGE);
    assert.equal(patched.status, 200, patched.text);
    const put = await api.put(`${ROLES}/new`, {
      apiVersion: `${GROUP}/v1`,
      kind: 'Role',
      ...named('new'),
    });
    assert.equal(put.status, 201, put.text);
    assert.equal((await api.delete(`${ROLES}/new`)).body.kind, 'Status');
  });

  test('are rejected if a rule is incomplete or contradictory', skipBefore(37), async () => {
    const nonResourceURLs = ['/x'];
    const rules = [
      { verbs: [] },
      { verbs: ['get'], nonResourceURLs },
      { verbs: ['get'], apiGroups: [''], nonResourceURLs },
    ];
    const both = 'rules cannot apply to both regular resources and non-resource URLs';
    const namespaced = 'namespaced rules cannot apply to non-resource URLs';
    const nothing = [
      ['rules[0].apiGroups', 'Required value: resource rules must supply at least one api group'],
      ['rules[0].resources', 'Required value: resource rules must supply at least one resource'],
    ] as const;
    assertInvalid(await api.post(ROLES, named('bad', { rules })), `Role.${GROUP} "bad"`, [
      ...nothing,
      ['rules[1].nonResourceURLs', `Invalid value: ["/x"]: ${namespaced}`],
      ['rules[2].nonResourceURLs', `Invalid value: ["/x"]: ${namespaced}`],
      ['rules[2].nonResourceURLs', `Invalid value: ["/x"]: ${both}`],
      ['rules[0].verbs', 'Required value'],
    ]);
    assertInvalid(
      await api.post(CLUSTER_ROLES, named('bad', { rules, aggregationRule: {} })),
      `ClusterRole.${GROUP} "bad"`,
      [
        ...nothing,
        ['rules[2].nonResourceURLs', `Invalid value: ["/x"]: ${both}`],
        [
          'aggregationRule.clusterRoleSelectors',
          'Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
        ],
        ['rules[0].verbs', 'Required value'],
      ],
    );
  });

  test('are listed with their creation time', async () => {
    const { metadata } = await created(ROLES, named('shown'));
    assert.deepEqual(await row(ROLES, 'shown'), {
      columns: [
        ['Name', 'string', 0],
        ['Created At', 'date', 0],
      ],
      cells: ['shown', metadata.creationTimestamp],
    });
  });
});

describe('role bindings', () => {
  const subjects = [
    { kind: 'User', name: 'jane' },
    { kind: 'User', name: 'joe' },
    { kind: 'Group', name: 'ops' },
    { kind: 'ServiceAccount', name: 'sa', namespace: 'default' },
  ];

  test('are defaulted and listed', async () => {
    const binding = await created(
      ROLE_BINDINGS,
      named('a:b', { roleRef: { kind: 'Role', name: 'x' }, subjects }),
    );
    assert.deepEqual(binding.roleRef, { apiGroup: GROUP, kind: 'Role', name: 'x' });
    assert.deepEqual(
      binding.subjects.map(({ apiGroup }: Json) => apiGroup),
      [GROUP, GROUP, GROUP, undefined],
    );
    const { columns, cells } = await row(ROLE_BINDINGS, 'a:b');
    assert.deepEqual(columns, [
      ['Name', 'string', 0],
      ['Role', 'string', 0],
      ['Age', 'string', 0],
      ['Users', 'string', 1],
      ['Groups', 'string', 1],
      ['ServiceAccounts', 'string', 1],
    ]);
    assert.deepEqual(cells.toSpliced(2, 1), ['a:b', 'Role/x', 'jane, joe', 'ops', 'default/sa']);
  });

  test('cannot change their roleRef', skipBefore(37), async () => {
    const roleRef = { kind: 'ClusterRole', name: 'x' };
    await created(CLUSTER_ROLE_BINDINGS, named('conformance', { roleRef }));
    assertInvalid(
      await api.patch(`${CLUSTER_ROLE_BINDINGS}/conformance`, { roleRef: { name: 'y' } }, MERGE),
      `ClusterRoleBinding.${GROUP} "conformance"`,
      [
        [
          'roleRef',
          `Invalid value: {"APIGroup":"${GROUP}","Kind":"ClusterRole","Name":"y"}: field is immutable`,
        ],
      ],
    );
    await api.delete(`${CLUSTER_ROLE_BINDINGS}/conformance`);
  });

  test('are rejected with an invalid role or subject', skipBefore(37), async () => {
    const wrong = [
      { kind: 'ServiceAccount', name: 'A_B', apiGroup: 'z' },
      { kind: 'User', name: '', apiGroup: 'z' },
      { kind: 'Cat', name: 'x' },
    ];
    const name =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".replaceAll(
        '\\\\',
        '\\',
      );
    assertInvalid(
      await api.post(
        ROLE_BINDINGS,
        named('bad', { roleRef: { apiGroup: 'z', kind: 'X', name: '' }, subjects: wrong }),
      ),
      `RoleBinding.${GROUP} "bad"`,
      [
        ['roleRef.apiGroup', `Unsupported value: "z": supported values: "${GROUP}"`],
        ['roleRef.kind', 'Unsupported value: "X": supported values: "Role", "ClusterRole"'],
        ['subjects[0].name', `Invalid value: "A_B": ${name}`],
        ['subjects[0].apiGroup', 'Unsupported value: "z": supported values: ""'],
        ['subjects[1].apiGroup', `Unsupported value: "z": supported values: "${GROUP}"`],
        [
          'subjects[2].kind',
          'Unsupported value: "Cat": supported values: "ServiceAccount", "User", "Group"',
        ],
        ['subjects[1].name', 'Required value'],
        ['roleRef.name', 'Required value'],
      ],
    );
    assertInvalid(
      await api.post(
        CLUSTER_ROLE_BINDINGS,
        named('bad', {
          roleRef: { kind: 'Role', name: 'a/b' },
          subjects: [{ kind: 'ServiceAccount', name: 'x' }],
        }),
      ),
      `ClusterRoleBinding.${GROUP} "bad"`,
      [
        ['roleRef.kind', 'Unsupported value: "Role": supported values: "ClusterRole"'],
        ['roleRef.name', `Invalid value: "a/b": may not contain '/'`],
        ['subjects[0].namespace', 'Required value'],
      ],
    );
  });
});

describe('disruption budgets', () => {
  test('have an initial status without allowed disruptions, and a generation', async () => {
    const budget = await created(BUDGETS, named('ok', { spec: { maxUnavailable: 1 } }));
    assert.deepEqual(budget.spec, { maxUnavailable: 1 });
    assert.deepEqual(budget.status, {
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
    });
    assert.equal(budget.metadata.generation, 1);
    const { body } = await api.patch(`${BUDGETS}/ok`, { spec: { maxUnavailable: '10%' } }, MERGE);
    assert.equal(body.metadata.generation, 2);
    const { columns, cells } = await row(BUDGETS, 'ok');
    assert.deepEqual(columns, [
      ['Name', 'string', 0],
      ['Min Available', 'string', 0],
      ['Max Unavailable', 'string', 0],
      ['Allowed Disruptions', 'integer', 0],
      ['Age', 'string', 0],
    ]);
    assert.deepEqual(cells.slice(0, 4), ['ok', 'N/A', '10%', 0]);
  });

  test('are rejected if they are invalid', async () => {
    const matchExpressions = [{ key: 'a', operator: 'X' }];
    const selector = { matchExpressions };
    assertInvalid(
      await api.post(
        BUDGETS,
        named('bad', {
          spec: { maxUnavailable: '101%', selector, unhealthyPodEvictionPolicy: 'X' },
        }),
      ),
      'PodDisruptionBudget.policy "bad"',
      [
        ['spec.maxUnavailable', 'Invalid value: "101%": must not be greater than 100%'],
        [
          'spec.selector.matchExpressions[0].operator',
          'Invalid value: "X": not a valid selector operator',
        ],
        [
          'spec.unhealthyPodEvictionPolicy',
          'Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget"',
        ],
      ],
    );
    assertRejected(
      await api.post(BUDGETS, named('bad', { spec: { minAvailable: -1, maxUnavailable: 1 } })),
      {
        code: 422,
        reason: 'Invalid',
        message:
          /spec: Invalid value: .*: minAvailable and maxUnavailable cannot be both set, spec.minAvailable: Invalid value: -1: must be greater than or equal to 0\]$/,
      },
    );
    assertInvalid(
      await api.post(BUDGETS, named('bad', { spec: { minAvailable: 'x' } })),
      'PodDisruptionBudget.policy "bad"',
      [
        [
          'spec.minAvailable',
          `Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`,
        ],
      ],
    );
  });
});

describe('priority classes', () => {
  test('are defaulted and listed, and their value is immutable', async () => {
    const name = 'conformance';
    const stored = await created(PRIORITIES, named(name, { value: 10 }));
    assert.equal(stored.preemptionPolicy, 'PreemptLowerPriority');
    assert.equal(stored.metadata.generation, 1);
    const { body } = await api.patch(`${PRIORITIES}/${name}`, { description: 'x' }, MERGE);
    assert.equal(body.metadata.generation, 1);
    assertInvalid(
      await api.patch(`${PRIORITIES}/${name}`, { value: 11, preemptionPolicy: 'Never' }, MERGE),
      `PriorityClass.scheduling.k8s.io "${name}"`,
      [
        ['value', 'Forbidden: may not be changed in an update.'],
        ['preemptionPolicy', 'Invalid value: "Never": field is immutable'],
      ],
    );
    const { columns, cells } = await row(PRIORITIES, name);
    assert.deepEqual(columns, [
      ['Name', 'string', 0],
      ['Value', 'integer', 0],
      ['Global-Default', 'boolean', 0],
      ['Age', 'string', 0],
      ['PreemptionPolicy', 'string', 0],
    ]);
    assert.deepEqual(cells.toSpliced(3, 1), [name, 10, false, 'PreemptLowerPriority']);
    await api.delete(`${PRIORITIES}/${name}`);
  });

  test('are rejected with names and values reserved for the system', async () => {
    assertInvalid(
      await api.post(PRIORITIES, named('bad', { value: 1_000_000_001, preemptionPolicy: 'X' })),
      'PriorityClass.scheduling.k8s.io "bad"',
      [
        ['value', 'Forbidden: maximum allowed value of a user defined priority is 1000000000'],
        [
          'preemptionPolicy',
          'Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"',
        ],
      ],
    );
    assertInvalid(
      await api.post(PRIORITIES, named('system-x', { value: 5 })),
      'PriorityClass.scheduling.k8s.io "system-x"',
      [
        [
          'metadata.name',
          `Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class`,
        ],
      ],
    );
  });
});
