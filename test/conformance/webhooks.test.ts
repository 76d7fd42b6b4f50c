import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps, deployment, deployments, pod, pods } from './objects.ts';
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

test('a webhook is called at the path of its URL without empty parts', async () => {
  const namespace = await api.namespace();
  const seen: string[] = [];
  const clientConfig = webhooks.serve('/at/path', ({ uid }) => {
    seen.push(uid);
    return { allowed: true };
  });
  const hooks = ['//at/path', '/at//path', '/at/path/', '/./at/other/../path'].map((path, index) =>
    webhook(
      namespace,
      { ...clientConfig, url: clientConfig.url.replace('/at/path', path) },
      { name: `path${index}.example.com` },
    ),
  );
  await install('Validating', namespace, hooks, (_probe, status) => status === 201);
  seen.length = 0;
  await api.made(api.post(configMaps(namespace), configMap('a')));
  assert.equal(seen.length, hooks.length);
});

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

/** Installs a mutating webhook that returns the objects which it sees, and changes them. */
async function installSpy(
  namespace: string,
  patchFor: (object: Json) => Json = () => ({ allowed: true }),
): Promise<ReadonlyMap<string, Json>> {
  const seen = new Map<string, Json>();
  const clientConfig = webhooks.serve(`/spy-${namespace}`, ({ object }) => {
    seen.set(object.metadata.name, object);
    return object.kind === 'ConfigMap'
      ? patchOf([{ op: 'add', path: '/data/mark', value: 'seen' }])
      : patchFor(object);
  });
  const rules = [
    {
      ...CONFIG_MAPS,
      apiGroups: ['*'],
      resources: ['configmaps', 'pods', 'nodes', 'persistentvolumeclaims', 'ingresses'],
    },
  ];
  const spy = webhook(namespace, clientConfig, {
    rules,
    matchConditions: [
      {
        name: 'own',
        expression: `request.namespace == '${namespace}' || request.name == 'node-${namespace}'`,
      },
    ],
  });
  await install('Mutating', namespace, [spy], isMarked);
  return seen;
}

/** Creates the PriorityClass and the RuntimeClass `of-NAMESPACE`, and an account for Pods. */
async function createClasses(namespace: string): Promise<void> {
  const metadata = { name: `of-${namespace}` };
  const preemptionPolicy = 'Never';
  await api.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
    metadata: { name: 'default' },
  });
  await api.made(
    api.post('/apis/scheduling.k8s.io/v1/priorityclasses', {
      metadata,
      value: 1000,
      preemptionPolicy,
    }),
  );
  await api.made(
    api.post('/apis/node.k8s.io/v1/runtimeclasses', {
      metadata,
      handler: 'boxed',
      overhead: { podFixed: { cpu: '10m' } },
      scheduling: {
        nodeSelector: { box: 'yes' },
        tolerations: [
          { key: 'box', operator: 'Exists' },
          { key: 'node.kubernetes.io/unreachable', operator: 'Exists' },
        ],
      },
    }),
  );
}

function podWith(name: string, spec: Json, metadata: Json = {}): Json {
  const draft = pod(name, metadata);
  return { ...draft, spec: { ...draft.spec, ...spec } };
}

const NOT_READY = {
  key: 'node.kubernetes.io/not-ready',
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
};
const UNREACHABLE = { ...NOT_READY, key: 'node.kubernetes.io/unreachable' };

test('a mutating webhook sees the changes of built-in admission plugins', async () => {
  const namespace = await api.namespace();
  await createClasses(namespace);
  const seen = await installSpy(namespace);
  const path = pods(namespace);
  const name = `of-${namespace}`;
  const classes = { priorityClassName: name, runtimeClassName: name };
  const stored = await api.made(api.post(path, pod('plain')));
  await api.made(api.post(path, podWith('classed', classes)));
  const pick = ({ spec }: Json): Json => {
    const { priority, preemptionPolicy, tolerations, overhead, nodeSelector } = spec;
    return { priority, preemptionPolicy, tolerations, overhead, nodeSelector };
  };
  const plain = {
    priority: 0,
    preemptionPolicy: 'PreemptLowerPriority',
    tolerations: [NOT_READY, UNREACHABLE],
    overhead: undefined,
    nodeSelector: undefined,
  };
  assert.deepEqual(pick(seen.get('plain')), plain);
  assert.deepEqual(pick(seen.get('classed')), {
    priority: 1000,
    preemptionPolicy: 'Never',
    tolerations: [
      NOT_READY,
      { key: 'box', operator: 'Exists' },
      { key: UNREACHABLE.key, operator: 'Exists' },
    ],
    overhead: { cpu: '10m' },
    nodeSelector: { box: 'yes' },
  });
  const { priority: _, preemptionPolicy: __, tolerations: ___, ...sent } = stored.spec;
  const metadata = { ...stored.metadata, labels: { a: 'b' } };
  const { status, body } = await api.put(`${path}/plain`, { ...stored, metadata, spec: sent });
  assert.equal(status, 200, body.message);
  assert.equal(seen.get('plain').metadata.labels.a, 'b');
  assert.deepEqual(pick(seen.get('plain')), plain);
  const node = `node-${namespace}`;
  await api.made(api.post('/api/v1/nodes', { metadata: { name: node } }));
  const { taints } = seen.get(node).spec;
  assert.deepEqual(taints, [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }]);
});

test('a mutating webhook sees the default class of new claims and Ingresses', async () => {
  const namespace = await api.namespace();
  const seen = await installSpy(namespace);
  const name = `of-${namespace}`;
  const storage = '/apis/storage.k8s.io/v1/storageclasses';
  const ingress = '/apis/networking.k8s.io/v1/ingressclasses';
  const classOf = (annotation: string): Json => ({
    name,
    annotations: { [`${annotation}.kubernetes.io/is-default-class`]: 'true' },
  });
  await api.made(
    api.post(storage, { metadata: classOf('storageclass'), provisioner: 'example.com/none' }),
  );
  await api.made(
    api.post(ingress, {
      metadata: classOf('ingressclass'),
      spec: { controller: 'example.com/none' },
    }),
  );
  const claims = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
  const ingresses = `/apis/networking.k8s.io/v1/namespaces/${namespace}/ingresses`;
  const claim = (own: Json): Json => ({
    metadata: { name: 'claim' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...own,
    },
  });
  const route = (annotations: Json): Json => ({
    metadata: { name: 'route', annotations },
    spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
  });
  const seenAt = async (path: string, object: Json): Promise<Json> => {
    await api.made(api.post(`${path}?dryRun=All`, object));
    return seen.get(object.metadata.name)?.spec;
  };
  try {
    await api.until('the classes are defaults', async () => {
      const { storageClassName } = await seenAt(claims, claim({}));
      const { ingressClassName } = await seenAt(ingresses, route({}));
      return storageClassName === name && ingressClassName === name;
    });
    const { storageClassName } = await seenAt(claims, claim({ storageClassName: '' }));
    assert.equal(storageClassName, '');
    const own = await seenAt(ingresses, route({ 'kubernetes.io/ingress.class': 'own' }));
    assert.equal(own.ingressClassName, undefined);
  } finally {
    await api.delete(`${storage}/${name}`);
    await api.delete(`${ingress}/${name}`);
  }
});

test('built-in admission plugins run again after a mutating webhook has changed a Pod', async () => {
  const namespace = await api.namespace();
  await createClasses(namespace);
  const name = `of-${namespace}`;
  await installSpy(namespace, ({ metadata: { annotations = {} } }) =>
    patchOf(
      Object.entries(annotations).map(([field, value]) => ({
        op: 'add',
        path: `/spec/${field}`,
        value,
      })),
    ),
  );
  const created = (annotations: Json) =>
    api.post(pods(namespace), podWith('changed', {}, { annotations }));
  const refused = await created({ priorityClassName: name });
  assert.equal(refused.status, 403);
  assert.match(refused.body.message, /priority \(0\) must not be provided/);
  const { spec } = await api.made(created({ runtimeClassName: name }));
  assert.deepEqual(
    [spec.overhead, spec.nodeSelector, spec.tolerations.length],
    [{ cpu: '10m' }, { box: 'yes' }, 3],
  );
  const never = podWith('never', { preemptionPolicy: 'Never' });
  const { status, body } = await api.post(pods(namespace), never);
  assert.equal(status, 403);
  assert.match(body.message, /PreemptionPolicy \(Never\) must not be provided/);
});
