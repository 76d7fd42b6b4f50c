import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { isApiError } from '../../../src/api/api-error.ts';
import type { ClusterConfig, CredentialSource } from '../../../src/client/cluster-config.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import type { CredentialsOptions } from '../../../src/client/credentials.ts';
import { credentialsOf } from '../../../src/client/credentials.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { CONFIG_MAPS, configMap, sendJson, sendStatus, serve, serveTls } from './server.ts';

const AT = { namespace: 'default', name: 'settings' };

async function directory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'credentials-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

function configOf(credentials: CredentialSource, more: Partial<ClusterConfig> = {}): ClusterConfig {
  return {
    source: 'test',
    server: 'https://127.0.0.1:1',
    insecureSkipTlsVerify: false,
    credentials,
    namespace: 'default',
    ...more,
  };
}

function open(credentials: CredentialSource, options: CredentialsOptions = {}) {
  return credentialsOf(configOf(credentials), options);
}

test('tokens and passwords are headers that nothing can renew', async () => {
  const token = open({ kind: 'token', token: 'abc' });
  assert.deepEqual(await token.headers(), { authorization: 'Bearer abc' });
  assert.equal(token.invalidate(await token.headers()), false);
  const basic = open({ kind: 'basic', username: 'käthe', password: 'a:b' });
  assert.deepEqual(await basic.headers(), {
    authorization: `Basic ${Buffer.from('käthe:a:b').toString('base64')}`,
  });
  assert.deepEqual(await open({ kind: 'none' }).headers(), {});
});

test('a token file is read again every minute, and trimmed', async (t) => {
  const clock = new FakeClock();
  const path = join(await directory(t), 'token');
  await writeFile(path, ' one\n');
  const credentials = open({ kind: 'tokenFile', path }, { clock });
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer one' });
  await writeFile(path, 'two\n');
  await clock.advance(59_999);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer one' });
  await clock.advance(1);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer two' });
});

test('while a token file cannot be read, the last good token serves, and the log says so', async (t) => {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const path = join(await directory(t), 'token');
  await writeFile(path, 'one');
  const credentials = open({ kind: 'tokenFile', path }, { clock, log });
  await credentials.headers();
  for (const spoil of [() => writeFile(path, '\n'), () => rm(path)]) {
    await spoil();
    await clock.advance(60_000);
    assert.deepEqual(await credentials.headers(), { authorization: 'Bearer one' });
  }
  assert.equal(lines.filter(({ level }) => level === 'error').length, 2);
  await writeFile(path, 'two');
  await clock.advance(10_000);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer two' });
});

test('a token file that never had a token is a clear error', async (t) => {
  const path = join(await directory(t), 'token');
  const credentials = open({ kind: 'tokenFile', path });
  const unauthorized = (error: unknown) =>
    isApiError(error, 'unauthorized') &&
    error.message.includes(`Cannot read the token file ${path}`);
  await assert.rejects(credentials.headers(), unauthorized);
  await writeFile(path, '');
  await assert.rejects(credentials.headers(), unauthorized);
});

test('a token refused by the server is read anew and the call made once more', async (t) => {
  const path = join(await directory(t), 'token');
  await writeFile(path, 'stale');
  let calls = 0;
  const { url } = await serve(t, (request, response) => {
    calls++;
    if (request.headers.authorization === 'Bearer fresh') sendJson(response, configMap('settings'));
    else sendStatus(response, 401, 'Unauthorized');
  });
  const connection = connectCluster(configOf({ kind: 'tokenFile', path }, { server: url }));
  t.after(() => connection.close());
  await assert.rejects(connection.client.get(CONFIG_MAPS, AT), (error) =>
    isApiError(error, 'unauthorized'),
  );
  assert.equal(calls, 2);
  await writeFile(path, 'fresh');
  await connection.client.get(CONFIG_MAPS, AT);
  assert.equal(calls, 4, 'refused once with what was cached, then accepted');
});

test('a refusal of an old token leaves a newer one alone', async (t) => {
  const path = join(await directory(t), 'token');
  await writeFile(path, 'one');
  const credentials = open({ kind: 'tokenFile', path }, { clock: new FakeClock() });
  const old = await credentials.headers();
  credentials.invalidate(old);
  await writeFile(path, 'two');
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer two' });
  credentials.invalidate(old);
  await writeFile(path, 'three');
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer two' });
});

test('certificate files are read again after five minutes, and the old ones kept if they cannot be', async (t) => {
  const folder = await directory(t);
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const files = { ca: 'ca.crt', certificate: 'tls.crt', key: 'tls.key' };
  const pathOf = (name: keyof typeof files) => join(folder, files[name]);
  const write = (name: keyof typeof files, text: string) => writeFile(pathOf(name), text);
  for (const name of ['ca', 'certificate', 'key'] as const) await write(name, `${name} 1`);
  const credentials = credentialsOf(
    configOf(
      {
        kind: 'clientCertificate',
        certificate: { kind: 'file', path: pathOf('certificate') },
        key: { kind: 'file', path: pathOf('key') },
      },
      { ca: { kind: 'file', path: pathOf('ca') } },
    ),
    { clock, log },
  );
  const first = await credentials.tls();
  assert.deepEqual(first, { ca: 'ca 1', certificate: 'certificate 1', key: 'key 1' });
  await clock.advance(300_000);
  assert.equal(await credentials.tls(), first, 'nothing changed: the same object');
  await write('ca', 'ca 2');
  assert.equal(await credentials.tls(), first, 'not yet');
  await clock.advance(300_000);
  const second = await credentials.tls();
  assert.deepEqual(second, { ...first, ca: 'ca 2' });
  await rm(pathOf('key'));
  await write('certificate', 'certificate 3');
  await clock.advance(300_000);
  assert.equal(await credentials.tls(), second);
  assert.match(String(lines[0]?.message), /Failed to read TLS files/);
});

test('a certificate file that is not there is a clear error', async () => {
  const path = '/nowhere/tls.crt';
  const credentials = credentialsOf(configOf({ kind: 'none' }, { ca: { kind: 'file', path } }));
  await assert.rejects(credentials.tls(), /Cannot read \/nowhere\/tls\.crt: ENOENT/);
});

test('a client certificate from a configuration is presented to the server', async (t) => {
  const { url, authority } = await serveTls(
    t,
    (request, response) =>
      sendJson(
        response,
        configMap((request.socket as TLSSocket).getPeerCertificate().subject.CN as string),
      ),
    { requestCert: true, rejectUnauthorized: true },
  );
  const issued = await authority.issue({ commonName: 'alice', usages: 'client' });
  const connection = connectCluster(
    configOf(
      {
        kind: 'clientCertificate',
        certificate: { kind: 'data', pem: issued.certificatePem },
        key: { kind: 'data', pem: issued.privateKeyPem },
      },
      { server: url, ca: { kind: 'data', pem: authority.certificatePem } },
    ),
  );
  t.after(() => connection.close());
  assert.equal((await connection.client.get(CONFIG_MAPS, AT)).metadata.name, 'alice');
});
