import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { isApiError } from '../../../../src/api/api-error.ts';
import type {
  ClusterConfig,
  CredentialSource,
} from '../../../../src/client/kube-config/cluster-config.ts';
import { connectCluster } from '../../../../src/client/cluster-connection.ts';
import type { CredentialsOptions } from '../../../../src/client/kube-config/credentials.ts';
import { credentialsOf } from '../../../../src/client/kube-config/credentials.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';
import { CONFIG_MAPS } from '../../../../src/api/builtin.ts';
import { configMap, sendJson, sendStatus, serve, serveTls } from '../server.ts';

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

test('returns tokens and passwords as headers that cannot be renewed', async () => {
  const token = open({ kind: 'token', token: 'abc' });
  assert.deepEqual(await token.headers(), { authorization: 'Bearer abc' });
  assert.equal(token.invalidate(await token.headers()), false);
  const basic = open({ kind: 'basic', username: 'käthe', password: 'a:b' });
  assert.deepEqual(await basic.headers(), {
    authorization: `Basic ${Buffer.from('käthe:a:b').toString('base64')}`,
  });
  assert.deepEqual(await open({ kind: 'none' }).headers(), {});
});

test('reads a token file again every minute and trims the token', async (t) => {
  const clock = new FakeClock();
  await clock.advance(3_600_000);
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

test('uses the last token and logs an error while the token file cannot be read', async (t) => {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const path = join(await directory(t), 'token');
  await writeFile(path, 'one');
  const credentials = open({ kind: 'tokenFile', path }, { clock, log });
  await credentials.headers();
  for (const corrupt of [() => writeFile(path, '\n'), () => rm(path)]) {
    await corrupt();
    await clock.advance(60_000);
    assert.deepEqual(await credentials.headers(), { authorization: 'Bearer one' });
  }
  assert.equal(lines.filter(({ level }) => level === 'error').length, 2);
  await writeFile(path, 'two');
  await clock.advance(10_000);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer two' });
});

test('reports a token file that never contained a token', async (t) => {
  const path = join(await directory(t), 'token');
  const credentials = open({ kind: 'tokenFile', path });
  const unauthorized = (error: unknown) =>
    isApiError(error, 'unauthorized') &&
    error.message.includes(`Cannot read the token file ${path}`);
  await assert.rejects(async () => credentials.headers(), unauthorized);
  await writeFile(path, '');
  await assert.rejects(async () => credentials.headers(), unauthorized);
});

test('reads the token file again and retries once if the server rejects the token', async (t) => {
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
  assert.equal(calls, 4, 'rejected once with the cached token, then accepted');
});

test('keeps a newer token if the server rejects an old one', async (t) => {
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

/** The PEM texts of a certificate, its key and their CA; tests can replace them. */
async function identity(commonName: string) {
  const authority = await createCertificateAuthority({ commonName: 'ca' });
  const issued = await authority.issue({ commonName, usages: 'client' });
  return {
    'ca.crt': authority.certificatePem,
    'tls.crt': issued.certificatePem,
    'tls.key': issued.privateKeyPem,
  };
}

type PemFile = keyof Awaited<ReturnType<typeof identity>>;

function pemCredentials(files: Record<PemFile, string | undefined>, options: CredentialsOptions) {
  const file = (path: PemFile) => ({ kind: 'file', path }) as const;
  return credentialsOf(
    configOf(
      { kind: 'clientCertificate', certificate: file('tls.crt'), key: file('tls.key') },
      { ca: file('ca.crt') },
    ),
    {
      ...options,
      readFile: async (path) => {
        const text = files[path as PemFile];
        if (text === undefined) throw new Error('ENOENT');
        return text;
      },
    },
  );
}

test('reads certificate files again after five minutes and logs which changed', async () => {
  const [first, second] = await Promise.all([identity('first'), identity('second')]);
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const files = { ...first };
  const credentials = pemCredentials(files, { clock, log });
  const material = await credentials.tls();
  assert.deepEqual(material, {
    ca: first['ca.crt'],
    certificate: first['tls.crt'],
    key: first['tls.key'],
  });
  await clock.advance(300_000);
  assert.equal(await credentials.tls(), material, 'nothing changed: the same object');
  Object.assign(files, { ...second, 'ca.crt': first['ca.crt'] });
  assert.equal(await credentials.tls(), material, 'not yet');
  await clock.advance(300_000);
  assert.deepEqual(await credentials.tls(), {
    ca: first['ca.crt'],
    certificate: second['tls.crt'],
    key: second['tls.key'],
  });
  assert.deepEqual(
    lines.map(({ message, fields }) => [message, fields['files']]),
    [['TLS files changed', ['tls.crt', 'tls.key']]],
  );
});

test('reads certificate files again at once after the server rejected the client, and only files', async () => {
  const [first, second] = await Promise.all([identity('first'), identity('second')]);
  const files = { ...first };
  const credentials = pemCredentials(files, { clock: new FakeClock() });
  await credentials.tls();
  Object.assign(files, second);
  assert.equal(credentials.invalidate(await credentials.headers()), true);
  assert.equal((await credentials.tls()).certificate, second['tls.crt']);
  const data = (pem: string) => ({ kind: 'data', pem }) as const;
  const source = { certificate: data(first['tls.crt']), key: data(first['tls.key']) };
  assert.equal(open({ kind: 'clientCertificate', ...source }).invalidate({}), false);
});

test('keeps all certificates while a file is incomplete or does not match the others', async () => {
  const [first, second] = await Promise.all([identity('first'), identity('second')]);
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const files: Record<PemFile, string | undefined> = { ...first };
  const credentials = pemCredentials(files, { clock, log });
  const material = await credentials.tls();
  const ca = first['ca.crt'];
  const corruptions: [Partial<typeof files>, RegExp][] = [
    [{ 'tls.key': undefined, 'tls.crt': second['tls.crt'] }, /Cannot read tls\.key: ENOENT/],
    [
      { 'tls.crt': second['tls.crt'] },
      /No usable certificate and key in tls\.crt and tls\.key: the key does not match the certificate/,
    ],
    [{ 'tls.crt': '' }, /No usable certificate and key.*: the file contains no certificate/],
    [{ 'tls.key': '' }, /No usable certificate and key/],
    // With an empty CA, TLS would trust the CAs that Node trusts.
    [
      { 'ca.crt': '' },
      /No usable certificate authority in ca\.crt: the file contains no certificate\. Expected PEM/,
    ],
    [{ 'ca.crt': ca.slice(0, -40) }, /ca\.crt: a certificate is incomplete/],
    [{ 'ca.crt': `${ca}-----BEGIN CERTIFICATE-----\nMII` }, /ca\.crt: a certificate is incomplete/],
    [{ 'ca.crt': ca.replace(/MII.{20}/, 'canary') }, /No usable certificate authority in ca\.crt/],
  ];
  await clock.advance(300_000);
  for (const [corrupt, pattern] of corruptions) {
    Object.assign(files, first, corrupt);
    assert.equal(await credentials.tls(), material);
    const { message, error } = lines.at(-1) ?? {};
    assert.equal(message, 'Failed to read TLS files, using the previous ones');
    assert.match(String(error), pattern);
    assert.doesNotMatch(String(error), /canary|PRIVATE/);
    await clock.advance(10_000);
  }
  assert.equal(lines.length, corruptions.length);
  Object.assign(files, second);
  assert.equal((await credentials.tls()).ca, second['ca.crt'], 'ten seconds later');
  for (const [corrupt, pattern] of corruptions) {
    const never = pemCredentials({ ...first, ...corrupt }, { clock });
    await assert.rejects(
      async () => never.tls(),
      (error) => isApiError(error, 'unauthorized') && pattern.test(error.message),
    );
  }
});

test('trusts the new CA of a server once the file contains it, and the old CA no more', async (t) => {
  const [before, after] = await Promise.all([
    serveTls(t, (_request, response) => sendJson(response, configMap('before'))),
    serveTls(t, (_request, response) => sendJson(response, configMap('after'))),
  ]);
  let running = before;
  const balancer = createServer((socket) => {
    const upstream = createConnection(running.port, '127.0.0.1');
    socket
      .on('error', () => undefined)
      .pipe(upstream.on('error', () => undefined))
      .pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  t.after(() => balancer.close());

  const { port } = balancer.address() as AddressInfo;
  const files = { 'ca.crt': before.authority.certificatePem };
  const clock = new FakeClock();
  const connection = connectCluster(
    configOf(
      { kind: 'none' },
      { server: `https://127.0.0.1:${port}`, ca: { kind: 'file', path: 'ca.crt' } },
    ),
    { clock, readFile: async (path) => files[path as 'ca.crt'] },
  );
  t.after(() => connection.close());
  const found = async () => (await connection.client.get(CONFIG_MAPS, AT)).metadata.name;
  const untrusted = /x509: certificate signed by unknown authority/;
  const lose = () => [before, after].forEach(({ server }) => server.closeAllConnections());

  assert.equal(await found(), 'before');
  running = after;
  lose();
  await assert.rejects(found(), untrusted);
  files['ca.crt'] = after.authority.certificatePem;
  assert.equal(await found(), 'after', 'without waiting for the next read');
  await connection.client.watch(CONFIG_MAPS, { namespace: 'default' });
  running = before;
  lose();
  await assert.rejects(found(), untrusted);
  await assert.rejects(connection.client.watch(CONFIG_MAPS, { namespace: 'default' }), untrusted);
});

test('reports a certificate file that does not exist', async () => {
  const path = '/nowhere/tls.crt';
  const credentials = credentialsOf(configOf({ kind: 'none' }, { ca: { kind: 'file', path } }));
  await assert.rejects(async () => credentials.tls(), /Cannot read \/nowhere\/tls\.crt: ENOENT/);
});

test('presents the client certificate of the configuration', async (t) => {
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

test('presents a replaced client certificate on the next connection', async (t) => {
  const { url, authority } = await serveTls(
    t,
    (request, response) =>
      sendJson(
        response,
        configMap(String((request.socket as TLSSocket).getPeerCertificate().subject.CN)),
      ),
    { requestCert: true, rejectUnauthorized: true },
  );
  const [alice, bob] = await Promise.all(
    ['alice', 'bob'].map((commonName) => authority.issue({ commonName, usages: 'client' })),
  );
  assert.ok(alice && bob);
  let now = alice;
  const file = (path: string) => ({ kind: 'file', path }) as const;
  const clock = new FakeClock();
  const connection = connectCluster(
    configOf(
      { kind: 'clientCertificate', certificate: file('tls.crt'), key: file('tls.key') },
      { server: url, ca: { kind: 'data', pem: authority.certificatePem } },
    ),
    {
      clock,
      readFile: async (path) => (path === 'tls.crt' ? now.certificatePem : now.privateKeyPem),
    },
  );
  t.after(() => connection.close());
  const name = async () => (await connection.client.get(CONFIG_MAPS, AT)).metadata.name;
  assert.equal(await name(), 'alice');
  now = bob;
  await clock.advance(299_000);
  assert.equal(await name(), 'alice');
  await clock.advance(1000);
  assert.equal(await name(), 'bob');
});
