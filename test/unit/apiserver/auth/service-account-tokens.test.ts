import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createServerAuthority } from '../../../../src/apiserver/api-server.ts';
import { Api } from '../api-client.ts';

const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';
const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

async function robotToken(api: Api): Promise<string> {
  await api.send('POST', ACCOUNTS, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'robot' },
  });
  const { body } = await api.send('POST', `${ACCOUNTS}/robot/token`, { spec: {} });
  return body.status.token;
}

async function statusWith(api: Api, token: string): Promise<number> {
  return (await api.send('POST', WHOAMI, {}, { authorization: `Bearer ${token}` })).status;
}

test('a token of a ServiceAccount expires', async () => {
  const api = new Api({ authenticate: false });
  const strict = new Api({ authenticate: true });
  const token = await robotToken(api);
  assert.equal(await statusWith(strict, token), 401, 'another server does not know the key');
  const review = async () => {
    const path = '/apis/authentication.k8s.io/v1/tokenreviews';
    return (await api.send('POST', path, { spec: { token } })).body.status;
  };
  await api.clock.advance(3600_000);
  assert.equal((await review()).authenticated, true);
  await api.clock.advance(61_000);
  assert.equal((await review()).error, '[invalid bearer token, service account token has expired]');
});

test('a server with the authority and the objects of another one accepts its tokens', async () => {
  const authority = await createServerAuthority();
  const first = new Api({ authority });
  const token = await robotToken(first);
  const next = new Api({ authority, authenticate: true });
  assert.equal(await statusWith(next, token), 401, 'the ServiceAccount does not exist');
  next.server.faults.restore(first.server.faults.snapshot());
  assert.equal(await statusWith(next, token), 201);
});
