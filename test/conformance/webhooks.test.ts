import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps, deployment, deployments } from './objects.ts';
import { WebhookServer, patchOf } from './webhook-server.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';

let api: Api;
let webhooks: WebhookServer;

before(async () => {
  api = await Api.start();
  webhooks = await WebhookServer.start(['hook.services.svc']);
});

after(async () => {
  await api.close();
  await webhooks.close();
});

const CONFIG_MAPS: Json = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE', 'UPDATE'],
  resources: ['configmaps'],
};

/** Returns a webhook that applies to the ConfigMaps of one namespace. */
function webhook(namespace: string, clientConfig: Json, rest: Json = {}): Json {
  return {
    name: 'hook.example.com',
    clientConfig,
    rules: [CONFIG_MAPS],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...rest,
  };
}

/** Installs a configuration and waits until `probe` is affected by it. */
async function install(
  kind: 'Mutating' | 'Validating',
  namespace: string,
  hooks: readonly Json[],
  isActive: (probe: Json, status: number) => boolean = () => true,
): Promise<string> {
  const path = `${GROUP}/${kind.toLowerCase()}webhookconfigurations`;
  const { metadata } = await api.made(
    api.post(path, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: `${kind}WebhookConfiguration`,
      metadata: { name: `${namespace}-${kind.toLowerCase()}` },
      webhooks: hooks,
    }),
  );
  await api.until('the configuration is active', async () => {
    const { body, status } = await api.post(
      `${configMaps(namespace)}?dryRun=All`,
      configMap('probe'),
    );
    return isActive(body, status);
  });
  return `${path}/${metadata.name}`;
}

const isMarked = (probe: Json) => probe.data?.mark !== undefined;
const isRefused = (_probe: Json, status: number) => status >= 400;

test('a validating webhook rejects writes with its status', async () => {
  const namespace = await api.namespace();
  const seen: Json[] = [];
  const clientConfig = webhooks.serve('/reject', (request) => {
    seen.push(request);
    const allowed = request.object.data.a !== '1';
    return { allowed, status: { message: 'a is 1', code: 418, reason: 'Teapot' } };
  });
  await install('Validating', namespace, [webhook(namespace, clientConfig)], isRefused);
  const path = configMaps(namespace);
  const reply = await api.post(path, configMap('x'));
  assert.equal(reply.status, 418);
  assert.equal(
    reply.body.message,
    'admission webhook "hook.example.com" denied the request: a is 1',
  );
  assert.equal(reply.body.reason, 'Teapot');
  await api.made(api.post(path, configMap('x', { a: '2' })));
  assert.equal((await api.patch(`${path}/x`, { data: { a: '1' } })).status, 418);
  const { object, oldObject, operation, ...request } = seen.at(-1);
  assert.equal(operation, 'UPDATE');
  assert.deepEqual([object.data.a, oldObject.data.a], ['1', '2']);
  assert.equal(request.requestKind.kind, 'ConfigMap');
  assert.deepEqual(request.resource, { group: '', version: 'v1', resource: 'configmaps' });
  assert.deepEqual([request.name, request.namespace, request.dryRun], ['x', namespace, false]);
  assert.equal(request.options.kind, 'UpdateOptions');
  assert.ok(request.userInfo.username);
});

test('a rejection without a message has code 400', async () => {
  const namespace = await api.namespace();
  const clientConfig = webhooks.serve('/silent', () => ({ allowed: false }));
  await install('Validating', namespace, [webhook(namespace, clientConfig)], isRefused);
  const { status, body } = await api.post(configMaps(namespace), configMap('x'));
  assert.equal(status, 400);
  assert.equal(
    body.message,
    'admission webhook "hook.example.com" denied the request without explanation',
  );
});

test('mutating webhooks change new and changed objects, and send warnings', async () => {
  const namespace = await api.namespace();
  const clientConfig = webhooks.serve('/mark', ({ operation }) => ({
    ...patchOf([{ op: 'add', path: '/data/mark', value: operation }]),
    warnings: ['marked'],
  }));
  await install('Mutating', namespace, [webhook(namespace, clientConfig)], isMarked);
  const path = configMaps(namespace);
  const created = await api.post(path, configMap('x'));
  assert.deepEqual(created.body.data, { a: '1', mark: 'CREATE' });
  assert.equal(created.headers['warning'], '299 - "marked"');
  const fields = created.body.metadata.managedFields[0].fieldsV1['f:data'];
  assert.deepEqual(Object.keys(fields), ['.', 'f:a']);
  const updated = await api.patch(`${path}/x`, { data: { b: '2' } });
  assert.deepEqual(updated.body.data, { a: '1', b: '2', mark: 'UPDATE' });
  const applied = await api.apply(`${path}/y`, 'm', configMap('y'));
  assert.deepEqual(applied.body.data, { a: '1', mark: 'CREATE' });
});

test('a webhook with reinvocationPolicy IfNeeded is called again after later changes', async () => {
  const namespace = await api.namespace();
  const calls: string[] = [];
  const hook = (name: string, rest: Json = {}): Json => {
    const clientConfig = webhooks.serve(`/again-${name}`, ({ object }) => {
      calls.push(name);
      const value = `${object.data.mark ?? ''}${name}`;
      const isDone = object.data[name] !== undefined;
      return isDone
        ? { allowed: true }
        : patchOf([
            { op: 'add', path: '/data/mark', value },
            { op: 'add', path: `/data/${name}`, value: 'done' },
          ]);
    });
    return webhook(namespace, clientConfig, { name: `${name}.example.com`, ...rest });
  };
  const hooks = [hook('p', { reinvocationPolicy: 'IfNeeded' }), hook('q'), hook('r')];
  await install('Mutating', namespace, hooks, isMarked);
  calls.length = 0;
  const { data } = await api.made(api.post(configMaps(namespace), configMap('x')));
  assert.equal(data.mark, 'pqr');
  assert.deepEqual(calls, ['p', 'q', 'r', 'p']);
});

test('object selectors and match conditions limit the objects of a webhook', async () => {
  const namespace = await api.namespace();
  const clientConfig = webhooks.serve('/never', () => ({ allowed: false }));
  await install(
    'Validating',
    namespace,
    [
      webhook(namespace, clientConfig, {
        objectSelector: { matchExpressions: [{ key: 'free', operator: 'DoesNotExist' }] },
        matchConditions: [
          { name: 'big', expression: '!has(object.data) || size(object.data) < 3' },
          { name: 'user', expression: 'request.userInfo.username != "none"' },
        ],
      }),
    ],
    isRefused,
  );
  const path = configMaps(namespace);
  assert.equal((await api.post(path, configMap('x'))).status, 400);
  assert.equal((await api.post(path, configMap('free', {}, { labels: { free: '' } }))).status, 201);
  assert.equal((await api.post(path, configMap('big', { a: '', b: '', c: '' }))).status, 201);
});

test('failurePolicy decides when a webhook does not answer', async () => {
  const namespace = await api.namespace();
  const closed = { url: 'https://127.0.0.1:1/gone' };
  const failing = await install('Validating', namespace, [webhook(namespace, closed)], isRefused);
  assertRejected(await api.post(configMaps(namespace), configMap('x')), {
    code: 500,
    reason: 'InternalError',
    message:
      /^Internal error occurred: failed calling webhook "hook\.example\.com": failed to call webhook: Post "https:\/\/127\.0\.0\.1:1\/gone\?timeout=10s": dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
  });
  await api.made(
    api.patch(failing, { webhooks: [webhook(namespace, closed, { failurePolicy: 'Ignore' })] }),
  );
  await api.until('failures are ignored', async () => {
    const { status } = await api.post(`${configMaps(namespace)}?dryRun=All`, configMap('x'));
    return status === 201;
  });
});

test('an invalid answer counts as a failure', async () => {
  const namespace = await api.namespace();
  const clientConfig = webhooks.serve('/stale', () => ({ uid: 'other', allowed: true }));
  await install('Validating', namespace, [webhook(namespace, clientConfig)], isRefused);
  assertRejected(await api.post(configMaps(namespace), configMap('x')), {
    code: 500,
    reason: 'InternalError',
    message: /received invalid webhook response: expected response\.uid="[-0-9a-f]+", got "other"$/,
  });
});

test('webhooks see deletions with the old object', async () => {
  const namespace = await api.namespace();
  const clientConfig = webhooks.serve('/delete', ({ object, oldObject }) => ({
    allowed: object !== null || oldObject.data.keep !== 'yes',
    status: { message: 'kept' },
  }));
  const rules = [{ ...CONFIG_MAPS, operations: ['DELETE'] }];
  const path = configMaps(namespace);
  await api.made(api.post(path, configMap('keep', { keep: 'yes' })));
  await api.made(api.post(path, configMap('drop')));
  const configuration = await install('Validating', namespace, [
    webhook(namespace, clientConfig, { rules }),
  ]);
  await api.until('deletions are refused', async () => {
    return (await api.delete(`${path}/keep?dryRun=All`)).status === 400;
  });
  const { body } = await api.delete(`${path}/keep`);
  assert.equal(body.message, 'admission webhook "hook.example.com" denied the request: kept');
  assert.equal((await api.delete(`${path}/drop`)).status, 200);
  assert.equal((await api.delete(path)).status, 400);
  await api.made(api.delete(configuration));
});

test('a Service of type ExternalName leads to a webhook', async () => {
  await api.post('/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'services' },
  });
  await api.made(
    api.post('/api/v1/namespaces/services/services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'hook' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    }),
  );
  const namespace = await api.namespace();
  const clientConfig = webhooks.service('services', 'hook', '/service', () => ({ allowed: false }));
  await install('Validating', namespace, [webhook(namespace, clientConfig)], isRefused);
  const { body } = await api.post(configMaps(namespace), configMap('x'));
  assert.match(body.message, /denied the request without explanation$/);
});

test('a webhook for the scale of a kind gets the Scale', async () => {
  const namespace = await api.namespace();
  const clientConfig = webhooks.serve('/scale', ({ object, kind }) => ({
    allowed: object.spec.replicas < 5,
    status: { message: kind.kind },
  }));
  const rules = [
    {
      apiGroups: ['apps'],
      apiVersions: ['v1'],
      operations: ['*'],
      resources: ['deployments/scale'],
    },
  ];
  await install('Validating', namespace, [webhook(namespace, clientConfig, { rules })]);
  const path = `${deployments(namespace)}/web`;
  await api.made(api.post(deployments(namespace), deployment('web')));
  const scaled = await api.until('the webhook is called', async () => {
    const reply = await api.patch(`${path}/scale`, { spec: { replicas: 7 } });
    return reply.status === 400 ? reply : undefined;
  });
  assert.match(scaled?.body.message, /denied the request: Scale$/);
  assert.equal((await api.patch(`${path}/scale`, { spec: { replicas: 3 } })).status, 200);
});

/** Paths in the URL of a webhook, with the path that is called. */
const PATHS: ReadonlyMap<string, string> = new Map([
  ['', '/'],
  ['//a//b/', '/a/b'],
  ['/a/./b/../c', '/a/c'],
  ['/..', '/'],
  ['/a%2Fb', '/a/b'],
  ['/a%2F..%2Fc', '/c'],
  ["/a'b(c)!*", '/a%27b%28c%29%21%2A'],
  ['/a[b]', '/a%5Bb%5D'],
  ['/a|b', '/a%7Cb'],
  ['/a\\b', '/a%5Cb'],
  ['/a b%20c', '/a%20b%20c'],
  ['/a;,=&+$@:b', '/a;,=&+$@:b'],
  ['/a%3Fb%23', '/a%3Fb%23'],
  ['/ü%c3%bc%ff', '/%C3%BC%C3%BC%FF'],
]);

test('the path of the URL of a webhook is cleaned and escaped', async () => {
  const namespace = await api.namespace();
  const urls = Array.from(PATHS, ([path, called]) => {
    const { url, caBundle } = webhooks.serve(called, () => ({ allowed: true }));
    return { url: url.slice(0, -called.length), path, called, caBundle };
  });
  const hooks = urls.flatMap(({ url, path, caBundle }, index) =>
    [{ caBundle }, {}].map((trust, trusts) =>
      webhook(
        namespace,
        { url: url + path, ...trust },
        {
          name: `path-${index}-${trusts}.example.com`,
          objectSelector: { matchLabels: { hook: `${index}-${trusts}` } },
        },
      ),
    ),
  );
  await api.made(
    api.post(`${GROUP}/validatingwebhookconfigurations`, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: `${namespace}-paths` },
      webhooks: hooks,
    }),
  );
  const create = (hook: string) => {
    const object = configMap('x');
    object.metadata.labels = { hook };
    return api.post(`${configMaps(namespace)}?dryRun=All`, object);
  };
  await api.until('the webhooks are active', async () => (await create('0-1')).status === 500);
  for (const [index, { url, path, called }] of urls.entries()) {
    assert.equal((await create(`${index}-0`)).status, 201, path);
    const { body } = await create(`${index}-1`);
    assert.ok(body.message.includes(`Post "${url}${called}?timeout=10s": tls:`), body.message);
  }
});

/** Client configurations with a part of the error. */
const INVALID_CLIENTS: readonly (readonly [client: Json, message: string])[] = [
  [
    { url: 'https://a/b%ZZ' },
    'url: Required value: url must be a valid URL: parse "https://a/b%ZZ": invalid URL escape "%ZZ"; desired format: https://host[/path]',
  ],
  [{ url: 'https://a:b/' }, 'parse "https://a:b/": invalid port ":b" after host'],
  [{ url: 'https://a b/' }, 'invalid character " " in host name'],
  [{ url: 'https://a%41/' }, 'invalid URL escape "%41"'],
  [{ url: 'https://[::1/' }, "missing ']' in host"],
  [{ url: 'https://a/\u007F' }, 'net/url: invalid control character in URL'],
  [{ url: '://a/' }, 'missing protocol scheme'],
  [{ url: 'a:b' }, 'url: Invalid value: "": host must be specified; desired'],
  [{ url: 'http://a/' }, `url: Invalid value: "http": 'https' is the only allowed URL scheme`],
  [{ url: 'https:///a' }, 'url: Invalid value: "": host must be specified; desired'],
  [{ url: 'https://u@a/' }, 'Invalid value: "u": user information is not permitted in the URL'],
  [{ url: 'https://a/?b=c' }, 'Invalid value: "b=c": query parameters are not permitted'],
  [{ url: 'https://a/#b' }, 'Invalid value: "b": fragments are not permitted in the URL'],
  [
    { service: { namespace: 'a', name: 'b', port: 65_536 } },
    'service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive',
  ],
  [
    { service: { namespace: 'a', name: 'b', path: 'c' } },
    `service.path: Invalid value: "c": must start with a '/'`,
  ],
  [
    { service: { namespace: 'a', name: 'b', path: '/c//d/' } },
    'service.path: Invalid value: "/c//d/": segment[1] may not be empty',
  ],
  [
    { service: { namespace: 'a', name: 'b', path: '/c_' } },
    'service.path: Invalid value: "/c_": segment[0]: a lowercase RFC 1123 subdomain',
  ],
];

test('the URL or Service of a webhook is validated', async () => {
  for (const [client, message] of INVALID_CLIENTS) {
    const reply = await api.post(`${GROUP}/validatingwebhookconfigurations?dryRun=All`, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'invalid' },
      webhooks: [webhook('default', client)],
    });
    assert.equal(reply.status, 422, JSON.stringify(client));
    assert.ok(reply.body.message.includes(message), reply.body.message);
  }
});
