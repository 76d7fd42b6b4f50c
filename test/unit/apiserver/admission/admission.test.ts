import type { WebhookFunction } from '../../../../src/apiserver/objects/webhook-call.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../api-client.ts';
import { Api, CONFIG_MAPS, configMap, PODS } from '../api-client.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const URL = 'https://hook.system.svc/path';

/** Starts a server with one webhook for ConfigMaps, which a Service identifies. */
async function apiWith(
  kind: 'Mutating' | 'Validating',
  answer: WebhookFunction,
  rest: Json = {},
): Promise<Api> {
  const api = new Api({ webhooks: { [URL]: answer } });
  const { status, text } = await api.post(`${GROUP}/${kind.toLowerCase()}webhookconfigurations`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: 'hooks' },
    webhooks: [
      {
        name: 'hook.example.com',
        clientConfig: { service: { namespace: 'system', name: 'hook', path: '/path' } },
        rules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['configmaps'] },
        ],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        ...rest,
      },
    ],
  });
  assert.equal(status, 201, text);
  return api;
}

test('a function answers in place of the webhook of a Service', async () => {
  const api = await apiWith('Mutating', ({ object }) => ({
    allowed: true,
    patch: [{ op: 'add', path: '/data/size', value: String(Object.keys(Object(object)).length) }],
  }));
  const { body } = await api.post(CONFIG_MAPS, configMap('x'));
  assert.equal(body.data.size, '4');
});

test('a function that throws is a failed call', async () => {
  const broken = () => {
    throw new Error('broken');
  };
  const failing = await apiWith('Validating', broken);
  const { status, body } = await failing.post(CONFIG_MAPS, configMap('x'));
  assert.equal(status, 500);
  assert.match(body.message, /failed calling webhook "hook\.example\.com": .*: broken$/);
  const ignoring = await apiWith('Validating', broken, { failurePolicy: 'Ignore' });
  assert.equal((await ignoring.post(CONFIG_MAPS, configMap('x'))).status, 201);
});

test('a call ends after timeoutSeconds', async () => {
  const api = await apiWith('Validating', () => new Promise(() => undefined), {
    timeoutSeconds: 3,
  });
  const reply = api.post(CONFIG_MAPS, configMap('x'));
  await api.clock.advance(3000);
  const { status, body } = await reply;
  assert.equal(status, 500);
  assert.match(body.message, /path\?timeout=3s": context deadline exceeded$/);
});

test('a patch is repeated if the object changes while a webhook is called', async () => {
  const waiting: PromiseWithResolvers<void>[] = [];
  const api = await apiWith('Validating', async ({ operation }) => {
    if (operation === 'UPDATE' && waiting.length === 0) {
      waiting.push(Promise.withResolvers());
      await waiting[0]?.promise;
    }
    return { allowed: true, warnings: ['once'] };
  });
  await api.post(CONFIG_MAPS, configMap('x'));
  const slow = api.patch(`${CONFIG_MAPS}/x`, { data: { slow: '1' } });
  await api.clock.advance(1);
  await api.patch(`${CONFIG_MAPS}/x`, { data: { fast: '1' } });
  waiting[0]?.resolve();
  const { status, body, headers } = await slow;
  assert.equal(status, 200);
  assert.equal(headers['warning'], '299 - "once"');
  assert.deepEqual([body.data.slow, body.data.fast], ['1', '1']);
});

test('an update with an old resourceVersion is a conflict after a webhook call', async () => {
  const held = Promise.withResolvers<void>();
  let calls = 0;
  const api = await apiWith('Validating', async ({ operation }) => {
    if (operation === 'UPDATE' && ++calls === 1) await held.promise;
    return { allowed: true };
  });
  const { body } = await api.post(CONFIG_MAPS, configMap('x'));
  const slow = api.put(`${CONFIG_MAPS}/x`, { ...body, data: { slow: '1' } });
  await api.clock.advance(1);
  await api.patch(`${CONFIG_MAPS}/x`, { data: { fast: '1' } });
  held.resolve();
  assert.equal((await slow).status, 409);
});

test('a deletion waits for a finalizer that is added while a webhook is called', async () => {
  const held = Promise.withResolvers<void>();
  const api = await apiWith('Validating', async ({ operation }) => {
    if (operation === 'DELETE') await held.promise;
    return { allowed: true };
  });
  await api.post(CONFIG_MAPS, configMap('x'));
  const deletion = api.delete(`${CONFIG_MAPS}/x`);
  await api.clock.advance(1);
  await api.patch(`${CONFIG_MAPS}/x`, { metadata: { finalizers: ['example.com/hold'] } });
  held.resolve();
  assert.deepEqual((await deletion).body.metadata.finalizers, ['example.com/hold']);
});

test('two creations of one name at the same time store one object', async () => {
  const api = await apiWith('Validating', async () => {
    await Promise.resolve();
    return { allowed: true };
  });
  const replies = await Promise.all([
    api.post(CONFIG_MAPS, configMap('x')),
    api.post(CONFIG_MAPS, configMap('x')),
  ]);
  assert.deepEqual(
    replies.map(({ status }) => status).sort((a, b) => a - b),
    [201, 409],
  );
});

test('a webhook does not apply to webhook configurations', async () => {
  const rules = [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }];
  const api = await apiWith('Validating', () => ({ allowed: false }), { rules });
  assert.equal((await api.post(CONFIG_MAPS, configMap('x'))).status, 400);
  const path = `${GROUP}/validatingwebhookconfigurations/hooks`;
  assert.equal((await api.delete(path)).status, 200);
  assert.equal((await api.post(CONFIG_MAPS, configMap('x'))).status, 201);
});

test('a webhook for one version of a kind gets requests of other versions in its version', async () => {
  const seen: Json[] = [];
  const rules = [
    {
      apiGroups: ['autoscaling'],
      apiVersions: ['v2'],
      operations: ['CREATE'],
      resources: ['horizontalpodautoscalers'],
    },
  ];
  const answer = (request: Json) => {
    seen.push(request);
    return { allowed: true };
  };
  const api = await apiWith('Validating', answer, { rules });
  const { status, text } = await api.post(
    '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers',
    {
      metadata: { name: 'web' },
      spec: {
        maxReplicas: 3,
        targetCPUUtilizationPercentage: 80,
        scaleTargetRef: { kind: 'Deployment', name: 'web', apiVersion: 'apps/v1' },
      },
    },
  );
  assert.equal(status, 201, text);
  const [{ object, kind, requestKind }] = seen as [Json];
  assert.deepEqual([kind.version, requestKind.version], ['v2', 'v1']);
  assert.equal(object.apiVersion, 'autoscaling/v2');
  assert.equal(object.spec.metrics[0].resource.target.averageUtilization, 80);
});

test('a new Pod waits a short time for the default ServiceAccount of its namespace', async () => {
  const api = new Api({ serviceAccounts: true });
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'web', image: 'nginx' }] },
  };
  const early = api.post(PODS, pod);
  await api.clock.advance(300);
  await api.post('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
  await api.clock.advance(300);
  assert.equal((await early).status, 201);
  await api.delete('/api/v1/namespaces/default/serviceaccounts/default');
  const late = api.post(PODS, { ...pod, metadata: { name: 'other' } });
  await api.clock.advance(2000);
  assert.equal((await late).status, 403);
});
