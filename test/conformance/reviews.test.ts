import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { skipBefore } from '../support/skip.ts';

const AUTHENTICATION = '/apis/authentication.k8s.io/v1';
const AUTHORIZATION = '/apis/authorization.k8s.io/v1';

const PODS = { namespace: 'default', verb: 'get', resource: 'pods' };
const METRICS = { path: '/metrics', verb: 'get' };

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

function reviewToken(spec: Json, query: string = ''): Promise<Reply> {
  return api.post(`${AUTHENTICATION}/tokenreviews${query}`, { spec });
}

function review(resource: string, spec: Json, metadata: Json = {}): Promise<Reply> {
  return api.post(`${AUTHORIZATION}/${resource}`, { metadata, spec });
}

const selfSubjectAccessReview = (spec: Json, metadata?: Json) =>
  review('selfsubjectaccessreviews', spec, metadata);
const subjectAccessReview = (spec: Json, metadata?: Json) =>
  review('subjectaccessreviews', spec, metadata);
const local = (spec: Json, metadata?: Json) =>
  review('namespaces/default/localsubjectaccessreviews', spec, metadata);

/** Error messages for reviews omit the kind. */
function assertInvalid(reply: Reply, causes: readonly (readonly [string, string])[]): void {
  const messages = causes.map(([field, message]) => `${field}: ${message}`);
  const all = messages.length === 1 ? messages[0] : `[${messages.join(', ')}]`;
  assertRejected(reply, {
    code: 422,
    reason: 'Invalid',
    message: `.authorization.k8s.io "" is invalid: ${all}`,
    causes,
  });
}

test('repeated owners of a review are reported', async () => {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
  const metadata = { ownerReferences: [owner, owner] };
  const { headers } = await selfSubjectAccessReview({ resourceAttributes: PODS }, metadata);
  assert.match(headers['warning'] ?? '', /duplicate UID\(s\) observed: u/);
});

test('reviews support create only', async () => {
  for (const [path, names] of [
    [AUTHENTICATION, ['selfsubjectreviews', 'tokenreviews']],
    [
      AUTHORIZATION,
      [
        'localsubjectaccessreviews',
        'selfsubjectaccessreviews',
        'selfsubjectrulesreviews',
        'subjectaccessreviews',
      ],
    ],
  ] as const) {
    const { resources } = (await api.get(path)).body;
    assert.deepEqual(
      resources.map(({ name, verbs }: Json) => [name, verbs]),
      names.map((name) => [name, ['create']]),
    );
  }
  const wrong = 'the server does not allow this method on the requested resource';
  const nowhere = 'the server could not find the requested resource';
  const reviews = `${AUTHENTICATION}/tokenreviews`;
  for (const [reply, code, reason, message] of [
    [await api.get(reviews), 405, 'MethodNotAllowed', wrong],
    [await api.delete(reviews), 405, 'MethodNotAllowed', wrong],
    [await api.get(`${reviews}/a`), 404, 'NotFound', nowhere],
    [await api.put(`${reviews}/a`, { spec: { token: 'a' } }), 404, 'NotFound', nowhere],
    [await api.patch(`${reviews}/a`, {}), 404, 'NotFound', nowhere],
    [await api.delete(`${reviews}/a`), 404, 'NotFound', nowhere],
    [
      await api.post(`${AUTHENTICATION}/namespaces/default/tokenreviews`, {}),
      404,
      'NotFound',
      nowhere,
    ],
    [await api.get(`${AUTHORIZATION}/localsubjectaccessreviews`), 404, 'NotFound', nowhere],
    [await api.post(`${AUTHORIZATION}/localsubjectaccessreviews`, {}), 404, 'NotFound', nowhere],
  ] as const) {
    assertRejected(reply, { code, reason, message });
  }
});

test('an unknown token is not authenticated, and the review contains the error', async () => {
  const { status, body } = await reviewToken({ token: 'unknown' });
  assert.equal(status, 201);
  assert.deepEqual([body.kind, body.apiVersion], ['TokenReview', 'authentication.k8s.io/v1']);
  assert.deepEqual(body.spec, { token: 'unknown' });
  assert.deepEqual(body.status, { user: {}, error: 'invalid bearer token' });
  const [{ time, ...entry }, ...more] = body.metadata.managedFields;
  assert.ok(time);
  assert.deepEqual(more, []);
  assert.deepEqual(entry, {
    manager: 'conformance',
    operation: 'Update',
    apiVersion: 'authentication.k8s.io/v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': { 'f:token': {} } },
  });
  assert.deepEqual(Object.keys(body.metadata), ['managedFields']);
});

test('a valid token authenticates the administrator, for the audience of the server only', async () => {
  const token = await api.token();
  const { status } = (await reviewToken({ token })).body;
  assert.equal(status.authenticated, true);
  assert.deepEqual(status.user.groups, ['system:masters', 'system:authenticated']);
  assert.deepEqual(status.audiences, ['https://kubernetes.default.svc']);
  const other = (await reviewToken({ token, audiences: ['vault'] })).body;
  assert.deepEqual(other.status, { user: {}, error: 'invalid bearer token' });
  const among = ['vault', 'https://kubernetes.default.svc'];
  const both = (await reviewToken({ token, audiences: among })).body;
  assert.deepEqual(both.status.audiences, ['https://kubernetes.default.svc']);
  const self = await api.post(`${AUTHENTICATION}/selfsubjectreviews`, { metadata: { name: 'x' } });
  assert.equal(self.status, 201);
  assert.deepEqual(Object.keys(self.body.metadata), ['creationTimestamp']);
  assert.deepEqual(self.body.status.userInfo, status.user);
});

test('a review without a token is rejected', async () => {
  for (const reply of [
    await reviewToken({}),
    await api.post(`${AUTHENTICATION}/tokenreviews`, {}),
  ]) {
    assertRejected(reply, {
      code: 400,
      reason: 'BadRequest',
      message: 'token is required for TokenReview in authentication',
    });
  }
  assertRejected(await reviewToken({ token: 'a', tocken: 'b' }, '?fieldValidation=Strict'), {
    code: 400,
    reason: 'BadRequest',
    message:
      'TokenReview in version "v1" cannot be handled as a TokenReview: strict decoding error: unknown field "spec.tocken"',
  });
});

test('the status in a request is ignored', async () => {
  const { body } = await api.post(`${AUTHENTICATION}/tokenreviews`, {
    metadata: { name: 'x', namespace: 'y', labels: { a: 'b' }, uid: '1' },
    spec: { token: 'unknown' },
    status: { authenticated: true },
  });
  const { managedFields, ...metadata } = body.metadata;
  assert.ok(managedFields);
  assert.deepEqual(metadata, { name: 'x', labels: { a: 'b' } });
  assert.deepEqual(body.status, { user: {}, error: 'invalid bearer token' });
});

test('the administrator is allowed every request, also for unknown resources', async () => {
  for (const spec of [
    { resourceAttributes: PODS },
    { resourceAttributes: { verb: 'get', group: 'x.y', resource: 'unicorns' } },
    { resourceAttributes: {} },
    { nonResourceAttributes: METRICS },
  ]) {
    const { status, body } = await selfSubjectAccessReview(spec);
    assert.equal(status, 201);
    assert.deepEqual(body.spec, spec);
    assert.deepEqual(body.status, { allowed: true });
  }
  // Go clients send null for empty lists.
  const { body } = await api.post(`${AUTHORIZATION}/selfsubjectrulesreviews`, {
    spec: { namespace: 'default' },
    status: { resourceRules: null, nonResourceRules: null, incomplete: false },
  });
  assert.deepEqual([body.metadata, body.spec], [{}, {}]);
  const { resourceRules, nonResourceRules, incomplete } = body.status;
  const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
  assert.deepEqual(
    resourceRules.filter(({ resources }: Json) => resources.includes('*')),
    [all],
  );
  assert.ok(nonResourceRules.some(({ nonResourceURLs }: Json) => nonResourceURLs.includes('*')));
  assert.equal(incomplete, false);
  assertRejected(await review('selfsubjectrulesreviews', {}), {
    code: 400,
    reason: 'BadRequest',
    message: 'no namespace on request',
  });
});

test('other users are allowed what their groups are allowed', async () => {
  const isAllowed = async (reply: Promise<Reply>) => (await api.made(reply)).status.allowed;
  const health = { path: '/healthz', verb: 'get' };
  const ask = {
    group: 'authorization.k8s.io',
    resource: 'selfsubjectaccessreviews',
    verb: 'create',
  };
  for (const [spec, expected] of [
    [{ user: 'jane', resourceAttributes: PODS }, false],
    [{ user: 'jane', groups: ['system:masters'], resourceAttributes: PODS }, true],
    [{ groups: ['system:masters'], nonResourceAttributes: METRICS }, true],
    [{ user: 'jane', groups: ['system:authenticated'], nonResourceAttributes: METRICS }, false],
    [{ user: 'jane', groups: ['system:authenticated'], resourceAttributes: ask }, true],
    [{ user: 'jane', resourceAttributes: ask }, false],
    [{ user: 'jane', nonResourceAttributes: health }, false],
    [{ user: 'jane', groups: ['system:authenticated'], nonResourceAttributes: health }, true],
    [{ user: 'who', groups: ['system:unauthenticated'], nonResourceAttributes: health }, true],
  ] as const) {
    assert.equal(await isAllowed(subjectAccessReview(spec)), expected, JSON.stringify(spec));
  }
  assert.equal(await isAllowed(local({ user: 'jane', resourceAttributes: PODS })), false);
  const masters = { groups: ['system:masters'], resourceAttributes: PODS };
  assert.equal(await isAllowed(local(masters, { namespace: 'default' })), true);
});

test('an invalid review is rejected with all errors', skipBefore(37), async () => {
  const one =
    'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified';
  const noSubject = 'Invalid value: "": at least one of user or group must be specified';
  const shown = 'Invalid value: {"Path":"/metrics","Verb":"get"}';
  assertInvalid(await selfSubjectAccessReview({}), [['spec', one]]);
  assertInvalid(
    await selfSubjectAccessReview({ resourceAttributes: PODS, nonResourceAttributes: METRICS }),
    [['spec', one.replace('Invalid value: null', shown)]],
  );
  assertInvalid(await subjectAccessReview({}), [
    ['spec', one],
    ['spec.user', noSubject],
  ]);
  assertInvalid(await local({ user: 'jane', nonResourceAttributes: METRICS }), [
    ['spec.nonResourceAttributes', `${shown}: disallowed on this kind of request`],
  ]);
  const elsewhere = { user: 'jane', resourceAttributes: { ...PODS, namespace: 'other' } };
  assertInvalid(await local(elsewhere), [
    ['spec.resourceAttributes.namespace', 'Invalid value: "other": must match metadata.namespace'],
  ]);
  assertRejected(await local(elsewhere, { namespace: 'other' }), {
    code: 400,
    reason: 'BadRequest',
    message:
      'the namespace of the provided object does not match the namespace sent on the request',
  });
  assertRejected(await selfSubjectAccessReview({ resourceAttributes: PODS }, { name: 'a' }), {
    code: 422,
    reason: 'Invalid',
    message:
      /^\.authorization\.k8s\.io "" is invalid: metadata: Invalid value: \{.*"name":"a".*\}: must be empty$/,
  });
  assertRejected(await local({ user: 'j', resourceAttributes: PODS }, { labels: { a: 'b' } }), {
    code: 422,
    reason: 'Invalid',
    message: /: must be empty except for namespace$/,
  });
});

test('selectors in a review are validated', async () => {
  const list = (selectors: Json) =>
    selfSubjectAccessReview({ resourceAttributes: { ...PODS, verb: 'list', ...selectors } });
  const field = 'spec.resourceAttributes.fieldSelector';
  const label = 'spec.resourceAttributes.labelSelector';
  const good = { requirements: [{ key: 'a', operator: 'In', values: ['b'] }] };
  for (const selectors of [
    { labelSelector: good, fieldSelector: good },
    { labelSelector: { rawSelector: 'a in (b)' } },
    { labelSelector: { requirements: [{ key: 'a', operator: 'Like' }] } },
  ]) {
    assert.equal((await api.made(list(selectors))).status.allowed, true);
  }
  assertInvalid(await list({ labelSelector: {}, fieldSelector: {} }), [
    [
      `${field}.requirements`,
      `Required value: when ${field} is specified, requirements or rawSelector is required`,
    ],
    [
      `${label}.requirements`,
      `Required value: when ${label} is specified, requirements or rawSelector is required`,
    ],
  ]);
  assertInvalid(await list({ labelSelector: { ...good, rawSelector: 'a' } }), [
    [
      `${label}.rawSelector`,
      'Invalid value: "a": may not specified at the same time as requirements',
    ],
  ]);
  const odd = {
    requirements: [
      { key: 'a', operator: 'In' },
      { key: 'b', operator: 'Exists', values: ['x'] },
      { key: '', operator: 'NotIn' },
    ],
  };
  const missing = "Required value: must be specified when `operator` is 'In' or 'NotIn'";
  const extra = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
  assertInvalid(await list({ fieldSelector: odd }), [
    [`${field}.requirements[0].values`, missing],
    [`${field}.requirements[1].values`, extra],
    [`${field}.requirements[2].key`, 'Required value: must be specified'],
    [`${field}.requirements[2].values`, missing],
  ]);
  const { body } = await list({ labelSelector: odd });
  assert.deepEqual(
    body.details.causes.map((cause: Json) => cause.field),
    [
      `${label}.requirements[0].values`,
      `${label}.requirements[1].values`,
      `${label}.requirements[2].values`,
      `${label}.requirements[2].key`,
      `${label}.requirements[2].key`,
    ],
  );
});

test('a user without permissions may use discovery and review its own access only', async () => {
  const jane = { 'impersonate-user': 'jane' };
  const as = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: Json) =>
    api.send(method, path, body, jane);
  for (const path of ['/api', '/apis/apps/v1', '/openapi/v3', '/healthz', '/version']) {
    assert.equal((await as('GET', path)).status, 200, path);
  }
  const self = await as('POST', `${AUTHENTICATION}/selfsubjectreviews`, {});
  const { username, groups } = self.body.status.userInfo;
  assert.deepEqual([username, groups], ['jane', ['system:authenticated']]);
  const question = { spec: { resourceAttributes: PODS } };
  const asked = await as('POST', `${AUTHORIZATION}/selfsubjectaccessreviews`, question);
  assert.deepEqual(asked.body.status, { allowed: false });

  const cannot = 'is forbidden: User "jane" cannot';
  const inDefault = 'in API group "" in the namespace "default"';
  for (const [reply, message, details] of [
    [
      await as('GET', '/api/v1/namespaces/default/pods'),
      `pods ${cannot} list resource "pods" ${inDefault}`,
      { kind: 'pods' },
    ],
    [
      await as('GET', '/api/v1/namespaces/default/pods/x/log'),
      `pods "x" ${cannot} get resource "pods/log" ${inDefault}`,
      { name: 'x', kind: 'pods' },
    ],
    [
      await as('DELETE', '/apis/apps/v1/namespaces/default/deployments'),
      `deployments.apps ${cannot} deletecollection resource "deployments" in API group "apps" in the namespace "default"`,
      { group: 'apps', kind: 'deployments' },
    ],
    [
      await as('GET', '/api/v1/namespaces/default'),
      `namespaces "default" ${cannot} get resource "namespaces" ${inDefault}`,
      { name: 'default', kind: 'namespaces' },
    ],
    [
      await as('GET', '/api/v1/nodes?watch=1'),
      `nodes ${cannot} watch resource "nodes" in API group "" at the cluster scope`,
      { kind: 'nodes' },
    ],
    [
      await as('POST', `${AUTHORIZATION}/subjectaccessreviews`, {}),
      `subjectaccessreviews.authorization.k8s.io ${cannot} create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope`,
      { group: 'authorization.k8s.io', kind: 'subjectaccessreviews' },
    ],
    [
      await as('GET', '/apis/no.such/v1/unicorns'),
      `unicorns.no.such ${cannot} list resource "unicorns" in API group "no.such" at the cluster scope`,
      { group: 'no.such', kind: 'unicorns' },
    ],
    [await as('GET', '/metrics'), 'forbidden: User "jane" cannot get path "/metrics"', {}],
    [await as('GET', '/'), 'forbidden: User "jane" cannot get path "/"', {}],
  ] as const) {
    assertRejected(reply, { code: 403, reason: 'Forbidden', message, details });
  }
});

test('an impersonated service account is in the groups of its namespace', async () => {
  const { body } = await api.send(
    'POST',
    `${AUTHENTICATION}/selfsubjectreviews`,
    {},
    { 'impersonate-user': 'system:serviceaccount:default:prometheus' },
  );
  assert.deepEqual(body.status.userInfo.groups, [
    'system:serviceaccounts',
    'system:serviceaccounts:default',
    'system:authenticated',
  ]);
  const anonymous = await api.send(
    'POST',
    `${AUTHENTICATION}/selfsubjectreviews`,
    {},
    { 'impersonate-user': 'system:anonymous' },
  );
  assert.equal(anonymous.status, 403, anonymous.text);
});

test('an impersonated user has the groups, the uid and the extra fields of the headers', async () => {
  const whoami = async (headers: Record<string, string>) => {
    const path = `${AUTHENTICATION}/selfsubjectreviews`;
    return (await api.made(api.send('POST', path, {}, headers))).status.userInfo;
  };
  const jane = { 'impersonate-user': 'jane' };
  assert.deepEqual(
    await whoami({
      ...jane,
      'impersonate-uid': '7',
      'impersonate-group': 'cn=team,dc=example',
      'impersonate-extra-Scopes.example%2Fa': 'view',
    }),
    {
      username: 'jane',
      uid: '7',
      groups: ['cn=team,dc=example', 'system:authenticated'],
      extra: { 'scopes.example/a': ['view'] },
    },
  );
  const account = { 'impersonate-user': 'system:serviceaccount:default:prometheus' };
  for (const [headers, groups] of [
    [{ ...account, 'impersonate-group': 'team' }, ['team', 'system:authenticated']],
    [{ ...jane, 'impersonate-group': 'system:authenticated' }, ['system:authenticated']],
  ] as const) {
    assert.deepEqual((await whoami(headers)).groups, groups);
  }
  const unauthenticated = { ...jane, 'impersonate-group': 'system:unauthenticated' };
  assert.equal((await api.send('GET', '/apis', undefined, unauthenticated)).status, 403);
  assert.equal((await api.send('GET', '/healthz', undefined, unauthenticated)).status, 200);
});

test('impersonation without a user is rejected', async () => {
  for (const headers of [
    { 'impersonate-group': 'system:masters' },
    { 'impersonate-uid': '7' },
    { 'impersonate-extra-scopes': 'view' },
    { 'impersonate-user': '', 'impersonate-group': 'system:masters' },
  ]) {
    assertRejected(await api.send('GET', '/api/v1/namespaces/default', undefined, headers), {
      code: 400,
      reason: 'BadRequest',
      message: /^requested .* without impersonating a user/,
    });
  }
});
