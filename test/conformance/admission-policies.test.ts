import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api } from './api.ts';
import { configMap, configMaps } from './objects.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const API_VERSION = 'admissionregistration.k8s.io/v1';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

const CONSTRAINTS: Json = {
  resourceRules: [
    {
      apiGroups: [''],
      apiVersions: ['v1'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['configmaps'],
    },
  ],
};

/** Creates a policy with a binding to one namespace, and waits until it affects `probe`. */
async function install(
  namespace: string,
  spec: Json,
  binding: Json = {},
  probe: Json = configMap('x'),
): Promise<Reply> {
  await api.made(
    api.post(`${GROUP}/validatingadmissionpolicies`, {
      apiVersion: API_VERSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: `${namespace}.example.com` },
      spec: { matchConstraints: CONSTRAINTS, ...spec },
    }),
  );
  await api.made(
    api.post(`${GROUP}/validatingadmissionpolicybindings`, {
      apiVersion: API_VERSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: `${namespace}.binding` },
      spec: {
        policyName: `${namespace}.example.com`,
        validationActions: ['Deny'],
        matchResources: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        },
        ...binding,
      },
    }),
  );
  const affected = await api.until('the policy is active', async () => {
    const reply = await api.post(`${configMaps(namespace)}?dryRun=All`, probe);
    return reply.status !== 201 || reply.headers['warning'] ? reply : undefined;
  });
  assert.ok(affected);
  return affected;
}

function denial(namespace: string, why: string): string {
  return `configmaps "x" is forbidden: ValidatingAdmissionPolicy '${namespace}.example.com' with binding '${namespace}.binding' denied request: ${why}`;
}

test('a policy rejects what one of its validations does not accept', async () => {
  const namespace = await api.namespace();
  const { status, body } = await install(namespace, {
    validations: [{ expression: "object.data.a != '1'" }],
  });
  assert.equal(status, 422);
  const message = denial(namespace, "failed expression: object.data.a != '1'");
  assert.equal(body.message, message);
  assert.equal(body.reason, 'Invalid');
  assert.deepEqual(body.details, {
    name: 'x',
    kind: 'configmaps',
    causes: [{ message: message.replace(/^.*? is forbidden: /, '') }],
  });
  const path = configMaps(namespace);
  await api.made(api.post(path, configMap('x', { a: '2' })));
  assert.equal((await api.patch(`${path}/x`, { data: { a: '1' } })).status, 422);
});

test('message expressions, variables and reasons', async () => {
  const namespace = await api.namespace();
  const { status, body } = await install(namespace, {
    variables: [
      { name: 'keys', expression: 'object.data.map(key, key)' },
      { name: 'count', expression: 'variables.keys.size()' },
    ],
    validations: [
      {
        expression: 'variables.count > 1',
        messageExpression: `'too few in ' + namespaceObject.metadata.name + ' for ' + request.operation + ': ' + string(variables.count)`,
        reason: 'Forbidden',
      },
    ],
  });
  assert.equal(status, 403);
  assert.equal(body.message, denial(namespace, `too few in ${namespace} for CREATE: 1`));
});

test('an error denies the request unless failurePolicy is Ignore', async () => {
  const namespace = await api.namespace();
  const { status, body } = await install(namespace, {
    validations: [{ expression: 'object.data.missing == "1"' }],
  });
  assert.equal(status, 422);
  assert.equal(
    body.message,
    denial(
      namespace,
      `expression 'object.data.missing == "1"' resulted in error: no such key: missing`,
    ),
  );
  const policy = `${GROUP}/validatingadmissionpolicies/${namespace}.example.com`;
  await api.made(api.patch(policy, { spec: { failurePolicy: 'Ignore' } }));
  await api.until('errors are ignored', async () => {
    return (await api.post(`${configMaps(namespace)}?dryRun=All`, configMap('x'))).status === 201;
  });
});

test('a binding can warn instead of denying', async () => {
  const namespace = await api.namespace();
  const { status, headers } = await install(
    namespace,
    { validations: [{ expression: 'false', message: 'never' }] },
    { validationActions: ['Warn'] },
  );
  assert.equal(status, 201);
  assert.equal(
    headers['warning'],
    `299 - "Validation failed for ValidatingAdmissionPolicy '${namespace}.example.com' with binding '${namespace}.binding': never"`,
  );
});

test('params of the binding are available to expressions', async () => {
  const namespace = await api.namespace();
  const path = configMaps(namespace);
  await api.made(api.post(path, configMap('limits', { max: '1' })));
  const { body } = await install(
    namespace,
    {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        {
          expression: 'object.data.size() <= int(params.data.max)',
          messageExpression: `'at most ' + params.data.max`,
        },
      ],
    },
    { paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } },
    configMap('x', { a: '1', b: '2' }),
  );
  assert.equal(body.message, denial(namespace, 'at most 1'));
  assert.equal((await api.post(path, configMap('small'))).status, 201);
});

test('match conditions limit the requests of a policy', async () => {
  const namespace = await api.namespace();
  await install(namespace, {
    matchConditions: [{ name: 'large', expression: 'object.data.size() < 2' }],
    validations: [{ expression: 'false' }],
  });
  const path = configMaps(namespace);
  assert.equal((await api.post(path, configMap('y', { a: '', b: '' }))).status, 201);
});
