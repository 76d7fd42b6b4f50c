import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HttpHandler, HttpRequest } from '../../../../src/util/http.ts';
import { Api, PODS } from '../api-client.ts';

/** A server whose node `n` has a kubelet that answers with `status` and `text`, and a Pod on it. */
async function withKubelet(status: number, text: string) {
  const asked: HttpRequest[] = [];
  const kubelet: HttpHandler = async (request) => {
    asked.push(request);
    return { status, headers: {}, body: chunks(text) };
  };
  const api = new Api({ kubelets: (node) => (node === 'n' ? kubelet : undefined) });
  await api.post('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
  await api.post(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { nodeName: 'n', containers: [{ name: 'app', image: 'i' }] },
  });
  return { api, asked };
}

async function* chunks(text: string) {
  for (const character of text) yield new TextEncoder().encode(character);
}

test('the logs of the kubelet of the node are returned', async () => {
  const { api, asked } = await withKubelet(200, 'YAY\n');
  const plain = await api.get(`${PODS}/p/log`);
  assert.deepEqual(
    [plain.status, plain.text, plain.headers['content-type']],
    [200, 'YAY\n', 'text/plain'],
  );
  await api.get(`${PODS}/p/log?follow=true&timestamps=0&tailLines=3&container=app&limitBytes=9`);
  assert.deepEqual(
    asked.map(({ path, longRunning }) => [path, longRunning]),
    [
      ['/containerLogs/default/p/app', false],
      ['/containerLogs/default/p/app?follow=true&limitBytes=9&tailLines=3', true],
    ],
  );
});

test('a client that leaves ends the request to the kubelet', async () => {
  const { api, asked } = await withKubelet(200, '');
  const leave = new AbortController();
  const path = `${PODS}/p/log`;
  await api.server.handler({ method: 'GET', path, headers: {}, signal: leave.signal });
  leave.abort();
  assert.equal(asked[0]?.signal?.aborted, true);
});

test('an error of the kubelet becomes a Status of the server', async () => {
  const refusal = async (status: number, text: string) => {
    const { api } = await withKubelet(status, text);
    const { body } = await api.get(`${PODS}/p/log`);
    return [body.code, body.reason, body.message];
  };
  assert.deepEqual(await refusal(400, 'not yet'), [400, 'BadRequest', 'not yet']);
  assert.deepEqual(await refusal(500, 'no disk'), [
    500,
    'InternalError',
    'Internal error occurred: no disk',
  ]);
  assert.deepEqual(await refusal(404, 'no pod'), [
    404,
    'NotFound',
    'the server could not find the requested resource ( pods/log p)',
  ]);
  const long = await refusal(400, 'x'.repeat(5000));
  assert.equal(String(long[2]).length, 2000);
});
