import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { certificateRequest } from '../../support/certificate-request.ts';
import type { Json } from './api-client.ts';
import { Api, PODS, pod } from './api-client.ts';

describe('pods', () => {
  test('an eviction deletes the Pod', async () => {
    const api = new Api();
    await api.post(PODS, pod('web'));
    const evicted = await api.post(`${PODS}/web/eviction`, { metadata: { name: 'web' } });
    assert.equal(evicted.status, 201);
    assert.equal((await api.get(`${PODS}/web`)).status, 404);
  });

  describe('an eviction of a Pod that a budget selects', () => {
    const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    const setUp = async (allowed: number, pods: object = {}) => {
      const api = new Api();
      const draft = pod('web');
      await api.post(PODS, { ...draft, metadata: { ...draft.metadata, labels: { app: 'web' } } });
      const ready = [{ type: 'Ready', status: 'True' }];
      const running = { status: { phase: 'Running', conditions: ready, ...pods } };
      await api.patch(`${PODS}/web/status`, running);
      const spec = { minAvailable: 1, selector: { matchLabels: { app: 'web' } } };
      await api.post(BUDGETS, { metadata: { name: 'web' }, spec });
      const status = {
        observedGeneration: 1,
        disruptionsAllowed: allowed,
        currentHealthy: 1,
        desiredHealthy: 2,
        expectedPods: 2,
      };
      if (allowed >= 0) await api.patch(`${BUDGETS}/web/status`, { status });
      return api;
    };
    const evict = (api: Api) => api.post(`${PODS}/web/eviction`, { metadata: { name: 'web' } });

    test('is rejected while the budget allows no disruption, or has no status', async () => {
      for (const [allowed, cause] of [
        [0, 'The disruption budget web needs 2 healthy pods and has 1 currently'],
        [-1, 'The disruption budget web is still being processed by the server.'],
      ] as const) {
        const api = await setUp(allowed);
        const { status, body } = await evict(api);
        assert.equal(status, 429);
        assert.equal(
          body.message,
          "Cannot evict pod as it would violate the pod's disruption budget.",
        );
        assert.deepEqual(body.details.causes, [{ reason: 'DisruptionBudget', message: cause }]);
        assert.equal((await api.get(`${PODS}/web`)).status, 200);
      }
    });

    test('charges the budget', async () => {
      const api = await setUp(1);
      assert.equal((await evict(api)).status, 201);
      const { status } = (await api.get(`${BUDGETS}/web`)).body;
      assert.equal(status.disruptionsAllowed, 0);
      assert.deepEqual(Object.keys(status.disruptedPods), ['web']);
      assert.equal((await api.get(`${PODS}/web`)).status, 404);
    });

    test('is allowed if the Pod does not run', async () => {
      const api = await setUp(0, { phase: 'Failed' });
      assert.equal((await evict(api)).status, 201);
    });

    test('is rejected if several budgets select the Pod', async () => {
      const api = await setUp(1);
      const spec = { maxUnavailable: 1, selector: {} };
      await api.post(BUDGETS, { metadata: { name: 'all' }, spec });
      const { status, body } = await evict(api);
      assert.equal(status, 500);
      assert.match(body.message, /more than one PodDisruptionBudget/);
    });
  });

  test('verbs that a subresource does not have are rejected', async () => {
    const api = new Api();
    await api.post(PODS, pod('web'));
    assert.equal((await api.get(`${PODS}/web/binding`)).status, 405);
    assert.equal((await api.delete(`${PODS}/web/status`)).status, 405);
    assert.equal((await api.post(`${PODS}/web/status`, {})).status, 405);
    assert.equal((await api.get(`${PODS}/web/scale`)).status, 404);
  });
});

describe('subresources of built-in kinds', () => {
  test('an approval writes only the conditions of a certificate request', async () => {
    const api = new Api();
    const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
    const { pem } = certificateRequest('jane');
    const { body } = await api.post(requests, {
      metadata: { name: 'web' },
      spec: {
        request: Buffer.from(pem).toString('base64'),
        signerName: 'example.com/signer',
        usages: ['client auth'],
        username: 'another-user',
      },
    });
    assert.notEqual(body.spec.username, 'another-user');
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Test' }];
    const approved = await api.patch(`${requests}/web/approval`, {
      status: { conditions, certificate: 'eA==' },
      spec: { username: 'other' },
    });
    assert.equal(approved.body.spec.username, body.spec.username);
    assert.equal(approved.body.status.certificate, undefined);
    assert.equal(approved.body.status.conditions[0].type, 'Approved');
    const denied = [{ type: 'Denied', status: 'True', reason: 'Test' }];
    const status = await api.patch(`${requests}/web/status`, { status: { conditions: denied } });
    assert.deepEqual(
      status.body.status.conditions.map(({ type }: Json) => type),
      ['Approved'],
    );
  });

  test('a binding names its Pod in the body', async () => {
    const api = new Api();
    await api.post(PODS, pod('web'));
    const binding = { metadata: { name: 'web' }, target: { kind: 'Node', name: 'n' } };
    const bound = await api.post('/api/v1/namespaces/default/bindings', binding);
    assert.equal(bound.status, 201, bound.text);
    assert.equal((await api.get(`${PODS}/web`)).body.spec.nodeName, 'n');
  });

  test('connections to a Pod need its node, and another protocol', async () => {
    const api = new Api({ kubelets: () => async () => Promise.reject(new Error('not called')) });
    await api.post('/api/v1/nodes', { metadata: { name: 'node-1' } });
    const web = pod('web');
    await api.post(PODS, { ...web, spec: { ...web.spec, nodeName: 'node-1' } });
    const { status, body } = await api.post(`${PODS}/web/exec?command=ls`, {});
    assert.deepEqual([status, body.message], [400, 'Upgrade request required']);
    for (const subresource of ['attach', 'exec', 'portforward', 'proxy']) {
      const missing = await api.post(`${PODS}/missing/${subresource}`, {});
      assert.equal(missing.status, 404, subresource);
    }
  });
});
