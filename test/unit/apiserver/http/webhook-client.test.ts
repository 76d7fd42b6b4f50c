import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api } from '../api-client.ts';

test('connects to no other machine for the name of a Service', async () => {
  const api = new Api();
  const service = async (name: string, spec: object) =>
    api.post('/api/v1/namespaces/default/services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: [{ port: 443 }], ...spec },
    });
  await service('address', {});
  await service('headless', { clusterIP: 'None' });
  await service('external', { type: 'ExternalName', externalName: 'example.invalid' });
  const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  const clients = [
    ...['address', 'headless', 'external'].map((name) => ({
      service: { namespace: 'default', name, path: '/x' },
    })),
    { url: 'https://address.default.svc/x' },
    { url: 'https://address.default.svc.cluster.local:8443/x' },
  ];
  for (const clientConfig of clients) {
    await api.post(path, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'hook' },
      webhooks: [
        {
          name: 'hook.example.com',
          clientConfig,
          rules: [
            { apiGroups: [''], apiVersions: ['*'], operations: ['CREATE'], resources: ['pods'] },
          ],
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
        },
      ],
    });
    const { body } = await api.post('/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: { containers: [{ name: 'a', image: 'a' }] },
    });
    assert.match(body.message, /has no network with \w+\.default\.svc.*clientConfig\.url/);
    await api.delete(`${path}/hook`);
  }
});
