import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../api-client.ts';
import { Api, CONFIG_MAPS, configMap } from '../api-client.ts';

/** Starts a server with the rules of an audit policy. Returns the events as well. */
function audited(rules: readonly Json[], rest: Json = {}) {
  const events: Json[] = [];
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules, ...rest };
  const api = new Api({ audit: { policy, write: (event) => events.push(event) } });
  return { api, events };
}

test('an event has the user, the object and the status of a request', async () => {
  const { api, events } = audited([{ level: 'Metadata' }]);
  const path = `${CONFIG_MAPS}/missing`;
  await api.get(path, { 'impersonate-user': 'jane', 'audit-id': 'id-1' });
  assert.deepEqual(
    events.map(({ stage }) => stage),
    ['RequestReceived', 'ResponseComplete'],
  );
  const { user, impersonatedUser, requestReceivedTimestamp, stageTimestamp, ...event } = events[1];
  assert.deepEqual([user.username, impersonatedUser.username], ['admin', 'jane']);
  assert.match(requestReceivedTimestamp, /^[-\d]+T[:\d]+\.\d{6}Z$/);
  assert.equal(stageTimestamp, requestReceivedTimestamp);
  const message =
    'configmaps "missing" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "default"';
  assert.deepEqual(event, {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    auditID: 'id-1',
    level: 'Metadata',
    stage: 'ResponseComplete',
    requestURI: path,
    verb: 'get',
    userAgent: 'tester/1',
    authenticationMetadata: { impersonationConstraint: 'impersonate:user-info' },
    objectRef: {
      resource: 'configmaps',
      namespace: 'default',
      name: 'missing',
      apiVersion: 'v1',
    },
    responseStatus: {
      metadata: {},
      status: 'Failure',
      message,
      reason: 'Forbidden',
      details: { name: 'missing', kind: 'configmaps' },
      code: 403,
    },
    annotations: {
      'authorization.k8s.io/decision': 'forbid',
      'authorization.k8s.io/reason': '',
    },
  });
});

test('the first rule that matches decides the level and the stages', async () => {
  const { api, events } = audited(
    [
      { level: 'None', nonResourceURLs: ['/healthz*'] },
      { level: 'RequestResponse', verbs: ['create'], resources: [{ resources: ['configmaps'] }] },
      { level: 'Request', namespaces: ['default'], omitManagedFields: true },
      { level: 'Metadata', users: ['admin'], resources: [{ resources: ['pods/*'] }] },
    ],
    { omitStages: ['RequestReceived'] },
  );
  await api.get('/healthz');
  await api.post(CONFIG_MAPS, configMap('a'));
  await api.patch(`${CONFIG_MAPS}/a`, { data: { b: '1' } });
  await api.get('/api/v1/pods');
  await api.get('/api/v1/nodes');
  assert.deepEqual(
    events.map(({ verb, level, requestObject, responseObject }) => [
      `${verb} ${level}`,
      requestObject?.data !== undefined,
      responseObject?.metadata.name,
    ]),
    [
      ['create RequestResponse', true, 'a'],
      ['patch Request', true, undefined],
      ['list Metadata', false, undefined],
    ],
  );
});

test('policies add annotations to the event', async () => {
  const { api, events } = audited([{ level: 'Metadata' }], { omitStages: ['RequestReceived'] });
  const group = '/apis/admissionregistration.k8s.io/v1';
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const rule = {
    apiGroups: [''],
    apiVersions: ['v1'],
    operations: ['CREATE'],
    resources: ['configmaps'],
  };
  await api.post(`${group}/validatingadmissionpolicies`, {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'p' },
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'false', message: 'never' }],
      auditAnnotations: [{ key: 'name', valueExpression: "'is ' + object.metadata.name" }],
    },
  });
  await api.post(`${group}/validatingadmissionpolicybindings`, {
    apiVersion,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'b' },
    spec: { policyName: 'p', validationActions: ['Audit'] },
  });
  const { status } = await api.post(CONFIG_MAPS, configMap('x'));
  assert.equal(status, 201);
  const { annotations } = events.at(-1);
  assert.equal(annotations['p/name'], 'is x');
  const [failure] = JSON.parse(
    annotations['validation.policy.admission.k8s.io/validation_failure'],
  );
  assert.deepEqual(failure, {
    message: 'never',
    policy: 'p',
    binding: 'b',
    expressionIndex: 0,
    validationActions: ['Audit'],
  });
});

test('a watch has an event when it starts and one when it ends', async () => {
  const { api, events } = audited([{ level: 'Metadata', verbs: ['watch'] }]);
  const { body } = await api.server.handler({
    method: 'GET',
    path: `${CONFIG_MAPS}?watch=true`,
    headers: {},
  });
  await body[Symbol.asyncIterator]().return?.();
  assert.deepEqual(
    events.map(({ stage }) => stage),
    ['RequestReceived', 'ResponseStarted', 'ResponseComplete'],
  );
});

test('a policy with an unknown level is refused', () => {
  assert.throws(() => audited([{ level: 'All' }]), /rules\[0\].*None, Metadata/);
});
