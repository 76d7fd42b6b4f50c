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

/** Creates a policy and its binding to one namespace. */
async function create(
  type: 'Mutating' | 'Validating',
  namespace: string,
  spec: Json,
  binding: Json = {},
  name: string = namespace,
): Promise<void> {
  const path = `${GROUP}/${type.toLowerCase()}admissionpolic`;
  await api.made(
    api.post(`${path}ies`, {
      apiVersion: API_VERSION,
      kind: `${type}AdmissionPolicy`,
      metadata: { name: `${name}.example.com` },
      spec: { matchConstraints: CONSTRAINTS, ...spec },
    }),
  );
  await api.made(
    api.post(`${path}ybindings`, {
      apiVersion: API_VERSION,
      kind: `${type}AdmissionPolicyBinding`,
      metadata: { name: `${name}.binding` },
      spec: {
        policyName: `${name}.example.com`,
        ...(type === 'Validating' && { validationActions: ['Deny'] }),
        matchResources: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        },
        ...binding,
      },
    }),
  );
}

/** Creates a validating policy with a binding to one namespace, and waits until it affects `probe`. */
async function install(
  namespace: string,
  spec: Json,
  binding: Json = {},
  probe: Json = configMap('x'),
): Promise<Reply> {
  await create('Validating', namespace, spec, binding);
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

test('an authorizer decides for the user of the request and for service accounts', async () => {
  const namespace = await api.namespace();
  const secrets = `authorizer.group('').resource('secrets').namespace('${namespace}')`;
  const account = `authorizer.serviceAccount('${namespace}', 'someone')`;
  const checks = [
    `${secrets}.name('x').check('get').allowed()`,
    `authorizer.requestResource.check('create').allowed()`,
    `authorizer.path('/healthz').check('get').allowed()`,
    `!${account}.group('').resource('secrets').subresource('x').check('get').allowed()`,
    `${account}.group('').resource('secrets').check('get').reason() == ''`,
  ];
  const { body } = await install(namespace, {
    validations: [
      ...checks.map((expression) => ({ expression })),
      { expression: `${account}.path('/apis').check('post').allowed()`, message: 'as expected' },
    ],
  });
  assert.equal(body.message, denial(namespace, 'as expected'));
});

/** A policy with one mutation, or several. */
function mutating(mutations: readonly Json[], rest: Json = {}): Json {
  return { mutations, reinvocationPolicy: 'Never', failurePolicy: 'Fail', ...rest };
}

function applying(expression: string): Json {
  return { patchType: 'ApplyConfiguration', applyConfiguration: { expression } };
}

function patching(expression: string): Json {
  return { patchType: 'JSONPatch', jsonPatch: { expression } };
}

/** Creates a mutating policy and waits until it has an effect on a dry run. Returns the reply. */
async function mutate(namespace: string, spec: Json, binding: Json = {}): Promise<Reply> {
  await create('Mutating', namespace, spec, binding);
  return probe(namespace);
}

/** Waits until the mutating policies of a namespace change or reject a ConfigMap. */
async function probe(
  namespace: string,
  isActive = ({ status, body }: Reply) => status !== 201 || Object.keys(body.data).length > 1,
): Promise<Reply> {
  return api.until('the policy is active', async () => {
    const path = `${configMaps(namespace)}?dryRun=All`;
    const reply = await api.post(path, configMap('x', { a: '1' }));
    return isActive(reply) ? reply : undefined;
  }) as Promise<Reply>;
}

test('a mutating policy merges the configuration that its expression constructs', async () => {
  const namespace = await api.namespace();
  const { body } = await mutate(
    namespace,
    mutating(
      [
        applying(`Object{
          metadata: Object.metadata{labels: {"from": request.userInfo.username == "" ? "" : "policy"}},
          data: {"b": variables.twice, ?"c": object.data.?absent}
        }`),
        applying(`Object{data: {"d": object.data.b}}`),
      ],
      { variables: [{ name: 'twice', expression: 'object.data.a + object.data.a' }] },
    ),
  );
  assert.deepEqual(body.data, { a: '1', b: '11', d: '11' });
  assert.deepEqual(body.metadata.labels, { from: 'policy' });
});

test('a mutating policy applies the JSON patch of its expression', async () => {
  const namespace = await api.namespace();
  const { body } = await mutate(
    namespace,
    mutating([
      patching(`[
        JSONPatch{op: "add", path: "/data/b", value: "2"},
        JSONPatch{op: "add", path: "/metadata/labels", value: {"example.com/x": "1"}},
        JSONPatch{
          op: "replace",
          path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/x"),
          value: "2"
        },
        JSONPatch{op: "copy", from: "/data/a", path: "/data/c"}
      ]`),
      patching(`[
        JSONPatch{op: "test", path: "/data/b", value: "3"},
        JSONPatch{op: "remove", path: "/data/b"}
      ]`),
    ]),
  );
  assert.deepEqual(body.data, { a: '1', b: '2', c: '1' });
  assert.deepEqual(body.metadata.labels, { 'example.com/x': '2' });
});

test('a mutating policy that fails rejects the write, unless failurePolicy is Ignore', async () => {
  const namespace = await api.namespace();
  const { status, body } = await mutate(
    namespace,
    mutating([applying('Object{data: {"b": object.data.missing}}')]),
  );
  assert.equal(status, 403);
  const message = `policy '${namespace}.example.com' with binding '${namespace}.binding' denied request: expression 'Object{data: {"b": object.data.missing}}' resulted in error: no such key: missing`;
  assert.deepEqual(
    [body.reason, body.message, body.details],
    ['Invalid', message, { name: 'x', kind: 'configmaps', causes: [{ message }] }],
  );
  const policy = `${GROUP}/mutatingadmissionpolicies/${namespace}.example.com`;
  await api.made(api.patch(policy, { spec: { failurePolicy: 'Ignore' } }));
  await probe(namespace, (reply) => reply.status === 201);
});

test('types of constructed objects are the paths of their fields', async () => {
  const namespace = await api.namespace();
  const { body } = await mutate(
    namespace,
    mutating([applying('Object{metadata: Object.spec{labels: {"a": "b"}}}')]),
  );
  assert.match(
    body.message,
    /: type mismatch: unexpected type name "Object\.spec", expected "Object\.metadata", which matches field name path from root Object type$/,
  );
});

test('a mutating policy cannot change atomic lists', async () => {
  const namespace = await api.namespace();
  const pods = {
    apiGroups: [''],
    apiVersions: ['v1'],
    operations: ['CREATE'],
    resources: ['pods'],
  };
  await create(
    'Mutating',
    namespace,
    mutating(
      [
        applying(
          'Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", args: ["x"]}]}}',
        ),
      ],
      { matchConstraints: { resourceRules: [pods] } },
    ),
  );
  const message = await api.until('the policy is active', async () => {
    const { status, body } = await api.post(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x' },
      spec: { containers: [{ name: 'a', image: 'a' }] },
    });
    return status === 403 && body.reason === 'Invalid' ? body.message : undefined;
  });
  assert.match(
    message,
    /: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \.spec\.containers\[0\]\.args$/,
  );
});

test('each param of the binding mutates the object, in addition to the policies before', async () => {
  const namespace = await api.namespace();
  const path = configMaps(namespace);
  for (const name of ['one', 'two']) {
    const param = configMap(name, { key: `from-${name}` });
    param.metadata.labels = { param: 'yes' };
    await api.made(api.post(path, param));
  }
  const { body } = await mutate(
    namespace,
    mutating([applying('Object{data: {params.data.key: object.data.a}}')], {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConditions: [{ name: 'small', expression: '!has(object.data.skip)' }],
    }),
    {
      paramRef: {
        selector: { matchLabels: { param: 'yes' } },
        parameterNotFoundAction: 'Deny',
      },
    },
  );
  assert.deepEqual(body.data, { a: '1', 'from-one': '1', 'from-two': '1' });
  const skipped = await api.made(api.post(path, configMap('y', { skip: '1' })));
  assert.deepEqual(skipped.data, { skip: '1' });
});

test('a mutating policy with reinvocationPolicy IfNeeded runs again after later changes', async () => {
  const namespace = await api.namespace();
  const count = (field: string) => `object.?data.${field}.orValue("") + "+"`;
  const later = `${namespace}.later`;
  const spec = mutating([
    applying(`Object{data: {"b": ${count('b')}, "seen": string(object.?data.c.orValue(""))}}`),
  ]);
  await create('Mutating', namespace, { ...spec, reinvocationPolicy: 'IfNeeded' });
  await create(
    'Mutating',
    namespace,
    mutating([applying(`Object{data: {"c": ${count('c')}}}`)]),
    {},
    later,
  );
  const { body } = await probe(namespace, (reply) => reply.body.data.b && reply.body.data.c);
  assert.deepEqual(body.data, { a: '1', b: '++', c: '+', seen: '+' });
});

test('a policy whose expressions do not compile is refused', async () => {
  const refused = async (spec: Json): Promise<string[]> => {
    const { status, body } = await api.post(`${GROUP}/validatingadmissionpolicies?dryRun=All`, {
      apiVersion: API_VERSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'refused.example.com' },
      spec: { matchConstraints: CONSTRAINTS, ...spec },
    });
    assert.equal(status, 422, JSON.stringify(body));
    return body.details.causes.map(({ field, message }: Json) => `${field} ${message}`).sort();
  };
  const [syntax = ''] = await refused({ validations: [{ expression: 'object.' }] });
  assert.match(
    syntax,
    /^spec\.validations\[0\]\.expression Invalid value: "object\.": compilation failed: ERROR/,
  );
  const [type = ''] = await refused({ validations: [{ expression: "'x'" }] });
  assert.match(type, /must evaluate to bool/);
  const [variable = ''] = await refused({
    variables: [{ name: 'a', expression: 'nothing' }],
    validations: [{ expression: 'true' }],
  });
  assert.match(variable, /^spec\.variables\[0\]\.expression .*undeclared reference to 'nothing'/);
  const [constant = ''] = await refused({ validations: [{ expression: "int('a') == 1" }] });
  assert.match(
    constant,
    /^\S+ Internal error: program instantiation failed: type conversion error/,
  );
  assert.deepEqual(
    (await refused({})).map((cause) => cause.split(' ', 1)[0]),
    ['spec.auditAnnotations', 'spec.validations'],
  );
});
