import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { credentialsOf } from '../../../../src/client/kube-config/credentials.ts';
import { loadClusterConfig } from '../../../../src/client/kube-config/kube-config.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { jwt, OidcServer } from '../../../support/kubeconfig/oidc-server.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

/** A provider, a kubeconfig of one user, and its credentials. */
async function provided(t: TestContext, config: Readonly<Record<string, string>>) {
  const clock = new FakeClock();
  const nowS = Math.floor(clock.now() / 1000);
  const server = await OidcServer.start();
  server.expiresAt = nowS + 3600;
  const folder = await mkdtemp(join(tmpdir(), 'oidc-'));
  t.after(async () => {
    await rm(folder, { recursive: true });
    await server.close();
  });
  const file = join(folder, 'config');
  const write = (tokens: Readonly<Record<string, string>>) =>
    writeFile(
      file,
      `# The comment stays.
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://x"}}]
users:
- name: x
  user: {${server.provider(tokens)}}
`,
    );
  await write(config);
  const { log, lines } = recordingLogger();
  const open = async () =>
    credentialsOf(await loadClusterConfig({ kubeconfig: file, environment: {} }), { clock, log });
  const credentials = await open();
  const token = async () => {
    const { authorization = '' } = await credentials.headers();
    return authorization.replace('Bearer ', '');
  };
  const stored = async () => {
    const text = await readFile(file, 'utf8');
    return [/"id-token": ?"([^"]*)"/, /"refresh-token": ?"([^"]*)"/].map(
      (pattern) => pattern.exec(text)?.[1],
    );
  };
  return { clock, nowS, server, folder, file, write, token, stored, lines };
}

const expired = jwt(1);
const discovery = 'GET /.well-known/openid-configuration';
const grant = (count: number) => `grant_type=refresh_token refresh_token=refresh-${count}`;

test('sends the ID token until 10 s before its expiry, then renews and stores it', async (t) => {
  const start = Math.floor(new FakeClock().now() / 1000);
  const first = jwt(start + 60);
  const { clock, server, file, folder, token, stored } = await provided(t, {
    'id-token': first,
    'refresh-token': 'refresh-0',
  });
  await clock.advance(49_000);
  assert.equal(await token(), first);
  assert.deepEqual(server.requests, []);
  await clock.advance(1_000);
  const tokens = await Promise.all([token(), token()]);
  const renewed = jwt(start + 3600, '1');
  assert.deepEqual(tokens, [renewed, renewed]);
  assert.deepEqual(server.requests, [discovery, `POST /token basic client:s%26cret ${grant(0)}`]);
  assert.deepEqual(await stored(), [renewed, 'refresh-1']);
  assert.match(await readFile(file, 'utf8'), /# The comment stays\./);
  assert.deepEqual(await readdir(folder), ['config'], 'no lock is left');
  await clock.advance(3600_000);
  assert.equal(await token(), jwt(start + 3600, '2'));
  assert.deepEqual(await stored(), [jwt(start + 3600, '2'), 'refresh-2']);
});

test('authenticates by the body if the provider rejects Basic, and follows a redirect of the discovery', async (t) => {
  const { server, token } = await provided(t, {
    'refresh-token': 'refresh-0',
    'idp-issuer-url': '$URL/old/',
  });
  server.authentication = 'body';
  assert.equal(await token(), jwt(server.expiresAt, '1'));
  assert.deepEqual(server.requests, [
    'GET /old/.well-known/openid-configuration',
    discovery,
    `POST /token basic client:s%26cret ${grant(0)}`,
    `POST /token client_id=client client_secret=s&cret ${grant(0)}`,
  ]);
});

test('uses the tokens that another program has stored', async (t) => {
  const { nowS, server, write, token } = await provided(t, {
    'id-token': expired,
    'refresh-token': 'refresh-0',
  });
  await write({ 'id-token': jwt(nowS + 500, 'other'), 'refresh-token': 'refresh-0' });
  assert.equal(await token(), jwt(nowS + 500, 'other'));
  assert.deepEqual(server.requests, []);
});

test('continues with the new tokens if they cannot be stored', async (t) => {
  const { clock, server, folder, token, lines } = await provided(t, {
    'id-token': expired,
    'refresh-token': 'refresh-0',
  });
  await writeFile(join(folder, 'config.lock'), '');
  assert.equal(await token(), jwt(server.expiresAt, '1'));
  await clock.advance(3600_000);
  server.expiresAt += 3600;
  assert.equal(await token(), jwt(server.expiresAt, '2'));
  assert.match(JSON.stringify(lines), /Failed to store the tokens/);
  assert.doesNotMatch(JSON.stringify(lines), /refresh-\d|eyJ/);
});

test('keeps its refresh token if the provider returns none', async (t) => {
  const { nowS, server, token, stored } = await provided(t, {
    'id-token': expired,
    'refresh-token': 'refresh-0',
  });
  const renewed = jwt(nowS + 3600, '1');
  server.answer = { id_token: renewed, refresh_token: '' };
  assert.equal(await token(), renewed);
  assert.deepEqual(await stored(), [renewed, 'refresh-0']);
});

test('follows ten redirects of the discovery', async (t) => {
  const tokens = { 'refresh-token': 'refresh-0', 'idp-issuer-url': '$URL/old' };
  const { server, token } = await provided(t, tokens);
  server.redirect = '/old/.well-known/openid-configuration';
  await assert.rejects(token, /redirected too often/);
  assert.equal(server.requests.length, 11);
});

test('sends no request without a token, and no token or secret is in the error', async (t) => {
  const cases: [tokens: Record<string, string>, answer: object | undefined, message: RegExp][] = [
    [{ 'id-token': expired }, undefined, /has expired, and there is no refresh-token/],
    [{ 'id-token': 'canary' }, undefined, /not a JWT/],
    [{ 'refresh-token': 'canary', 'client-secret': 'canary' }, {}, /with 401: invalid_client/],
    [{ 'refresh-token': 'canary' }, undefined, /with 400: invalid_grant/],
    [{ 'refresh-token': 'canary' }, { access_token: 'canary' }, /returned no id_token/],
    [{ 'refresh-token': 'canary', 'idp-certificate-authority-data': '' }, {}, /certificate/],
    [{ 'refresh-token': 'canary', 'idp-issuer-url': 'http://10.0.0.1' }, {}, /https:\/\//],
    [{ 'refresh-token': 'a', 'idp-issuer-url': 'https://me:canary@127.0.0.1:1' }, {}, /refused/],
    [{ 'refresh-token': 'a', 'idp-issuer-url': 'https://me:canary@[' }, {}, /malformed URL/],
  ];
  for (const [config, answer, message] of cases) {
    const { server, token } = await provided(t, config);
    server.answer = answer;
    await assert.rejects(token, (error) => {
      assert.ok(isApiError(error, 'unauthorized'), String(error));
      assert.match(error.message, message);
      assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /canary|s&cret|eyJ/);
      return true;
    });
  }
});

test('does not send tokens unencrypted, whatever the discovery says', async (t) => {
  for (const [place, issuer, request] of [
    ['tokenEndpoint', '$URL', discovery],
    ['redirect', '$URL/old', 'GET /old/.well-known/openid-configuration'],
  ] as const) {
    const tokens = { 'refresh-token': 'refresh-0', 'idp-issuer-url': issuer };
    const { server, token } = await provided(t, tokens);
    server[place] = 'http://oidc.invalid/token';
    await assert.rejects(token, /does not start with https/);
    assert.deepEqual(server.requests, [request]);
  }
});

test('keeps a token until it expires if it cannot be renewed', async (t) => {
  const start = Math.floor(new FakeClock().now() / 1000);
  const first = jwt(start + 60);
  const { clock, server, token } = await provided(t, {
    'id-token': first,
    'refresh-token': 'refresh-0',
  });
  server.answer = {};
  await clock.advance(55_000);
  assert.equal(await token(), first);
  await clock.advance(5_000);
  await assert.rejects(token, /no id_token/);
});
