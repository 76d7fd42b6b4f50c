import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected } from './api.ts';
import { pod, pods } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
  await api.made(api.post(pods(space), pod('p')));
  const several = pod('several');
  several.spec.initContainers = [{ name: 'x', image: 'i' }];
  several.spec.containers = ['a', 'b'].map((name) => ({ name, image: 'i' }));
  await api.made(api.post(pods(space), several));
});

after(() => api.close());

const log = (path: string) => api.get(`${pods(space)}/${path}`);

test('an unscheduled pod has an empty log', async () => {
  for (const path of [
    'p/log',
    'p/log?follow=&previous=1&tailLines=%2B3',
    'several/log?container=x',
  ]) {
    const { status, text } = await log(path);
    assert.deepEqual([status, text], [204, ''], path);
  }
});

test('the container must be named if the pod has several', async () => {
  const assertLogError = async (path: string, message: string) =>
    assertRejected(await log(path), { code: 400, reason: 'BadRequest', message });
  await assertLogError(
    'several/log',
    'a container name must be specified for pod several, choose one of: [x a b]',
  );
  await assertLogError('p/log?container=z', 'container z is not valid for pod p');
  assertRejected(await log('nope/log'), {
    code: 404,
    reason: 'NotFound',
    message: 'pods "nope" not found',
  });
});

test('invalid log options are rejected before the pod is looked up', async () => {
  const invalid = async (query: string, problem: string) =>
    assertRejected(await log(`nope/log?${query}`), {
      code: 422,
      reason: 'Invalid',
      message: `PodLogOptions "nope" is invalid: ${problem}`,
    });
  await invalid('sinceSeconds=0', 'sinceSeconds: Invalid value: 0: must be greater than 0');
  await invalid(
    'tailLines=-1&limitBytes=-2',
    '[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: -2: must be greater than 0]',
  );
  await invalid(
    'sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z',
    '[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
  );
  await invalid('stream=All', 'stream: Forbidden: may not be specified');
  const unreadable = async (query: string, message: string) =>
    assertRejected(await log(`nope/log?${query}`), { code: 400, reason: 'BadRequest', message });
  await unreadable('tailLines=x', 'strconv.ParseInt: parsing "x": invalid syntax');
  await unreadable('tailLines=', 'strconv.ParseInt: parsing "": invalid syntax');
  const far = '9'.repeat(20);
  await unreadable(`tailLines=${far}`, `strconv.ParseInt: parsing "${far}": value out of range`);
  await unreadable(
    'sinceTime=soon',
    'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
  );
});

test('the log subresource is read-only', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    const body = method === 'DELETE' ? undefined : {};
    const { status } = await api.send(method, `${pods(space)}/p/log`, body);
    assert.equal(status, 405, method);
  }
  const { resources } = (await api.get('/api/v1')).body;
  assert.deepEqual(
    resources.find(({ name }: { readonly name: string }) => name === 'pods/log'),
    { name: 'pods/log', singularName: '', namespaced: true, kind: 'Pod', verbs: ['get'] },
  );
});

test('an unknown node, or one without a kubelet, returns an error', async () => {
  await api.made(api.post(pods(space), pod('bound')));
  const node = `node-${space}`;
  await api.made(
    api.post(`${pods(space)}/bound/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'bound' },
      target: { kind: 'Node', name: node },
    }),
  );
  assertRejected(await log('bound/log'), {
    code: 404,
    reason: 'NotFound',
    message: `pods "${node}" not found`,
  });
  await api.made(
    api.post('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node } }),
  );
  assertRejected(await log('bound/log'), {
    code: 500,
    message: 'no preferred addresses found; known addresses: []',
  });
});
