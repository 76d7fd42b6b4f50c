import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { configMap, configMaps } from './objects.ts';
import { WebhookServer, patchOf } from './webhook-server.ts';

const WRITERS = 200;

let api: Api;
let webhooks: WebhookServer;

before(async () => {
  api = await Api.start();
  webhooks = await WebhookServer.start();
});

after(async () => {
  await api.close();
  await webhooks.close();
});

/** Sends one request of each writer at the same time, and returns the status codes. */
async function together(
  send: (writer: number) => Promise<{ readonly status: number }>,
  writers: number = WRITERS,
): Promise<number[]> {
  const replies = await Promise.all(Array.from({ length: writers }, (_, writer) => send(writer)));
  return replies.map(({ status }) => status);
}

function countOf(codes: readonly number[], code: number): number {
  return codes.filter((each) => each === code).length;
}

test('no patch of one object is lost', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  await api.made(api.post(configMaps(space), configMap('a', {})));
  const codes = await together((writer) => api.patch(path, { data: { [`w${writer}`]: '' } }));
  assert.equal(countOf(codes, 200), WRITERS);
  assert.equal(Object.keys((await api.get(path)).body.data).length, WRITERS);
});

test('one of several updates with the same resourceVersion succeeds', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  const made = await api.made(api.post(configMaps(space), configMap('a', {})));
  const codes = await together((writer) =>
    api.put(path, { ...made, data: { writer: String(writer) } }),
  );
  assert.deepEqual([countOf(codes, 200), countOf(codes, 409)], [1, WRITERS - 1]);
});

test('one of several creates of the same name succeeds', async () => {
  const space = await api.namespace();
  const codes = await together(() => api.post(configMaps(space), configMap('a', {})));
  assert.deepEqual([countOf(codes, 201), countOf(codes, 409)], [1, WRITERS - 1]);
});

test('a quota admits exactly as many objects as it allows', async () => {
  const space = await api.namespace();
  const quotas = `/api/v1/namespaces/${space}/resourcequotas`;
  const hard = { 'count/secrets': '50' };
  const quota: Json = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'q' },
    spec: { hard },
  };
  await api.made(api.post(quotas, quota));
  const status = { hard, used: { 'count/secrets': '0' } };
  await api.made(api.put(`${quotas}/q/status`, { ...quota, status }));
  const secrets = `/api/v1/namespaces/${space}/secrets`;
  const secret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name } });
  await api.until('the quota is enforced', async () => {
    const { status: code } = await api.post(`${secrets}?dryRun=All`, secret('probe'));
    return code === 201;
  });
  const codes = await together((writer) => api.post(secrets, secret(`w${writer}`)));
  assert.deepEqual([countOf(codes, 201), countOf(codes, 403)], [50, WRITERS - 50]);
  assert.equal((await api.get(secrets)).body.items.length, 50);
});

test('no patch is lost while a webhook changes the object', async () => {
  const writers = 20;
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  const calls: string[] = [];
  const clientConfig = webhooks.serve(`/${space}`, (request) => {
    calls.push(request.object.metadata.name);
    const { keys: _keys, ...data } = request.object.data ?? {};
    const value = { ...data, keys: String(Object.keys(data).length) };
    return patchOf([{ op: 'add', path: '/data', value }]);
  });
  await api.made(
    api.post('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: space },
      webhooks: [
        {
          name: 'hook.example.com',
          clientConfig,
          rules: [
            {
              apiGroups: [''],
              apiVersions: ['v1'],
              operations: ['UPDATE'],
              resources: ['configmaps'],
            },
          ],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': space } },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    }),
  );
  await api.made(api.post(configMaps(space), configMap('a', { keys: '' })));
  await api.until('the webhook is called', async () => {
    await api.patch(path, { data: { keys: null } });
    return calls.length > 0;
  });
  const codes = await together(
    (writer) => api.patch(path, { data: { [`w${writer}`]: '' } }),
    writers,
  );
  assert.equal(countOf(codes, 200), writers);
  const { data } = (await api.get(path)).body;
  assert.equal(Object.keys(data).length, writers + 1);
  assert.equal(data.keys, String(writers));
});
