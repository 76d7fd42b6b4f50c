import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { inspect } from 'node:util';
import { isApiError } from '../../../../src/api/api-error.ts';
import type {
  ClusterConfig,
  ExecSource,
} from '../../../../src/client/kube-config/cluster-config.ts';
import { connectCluster } from '../../../../src/client/cluster-connection.ts';
import type { CredentialsOptions } from '../../../../src/client/kube-config/credentials.ts';
import { credentialsOf } from '../../../../src/client/kube-config/credentials.ts';
import { noRestClientMetrics } from '../../../../src/metrics/no-metrics.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';
import { CONFIG_MAPS } from '../../../../src/api/builtin.ts';
import { configMap, sendJson, sendStatus, serve, serveTls } from '../server.ts';

const AT = { namespace: 'default', name: 'settings' };
const API_VERSION = 'client.authentication.k8s.io/v1';

/** A plugin that records each run, then runs `script`. */
async function plugin(t: TestContext, script: string, more: Partial<ExecSource> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'plugin-'));
  t.after(() => rm(folder, { recursive: true }));
  const runs = join(folder, 'runs');
  const file = join(folder, 'plugin.mjs');
  const preamble = `
    import { appendFileSync, readFileSync } from 'node:fs';
    const runs = ${JSON.stringify(runs)};
    appendFileSync(runs, process.pid + '\\n');
    const run = readFileSync(runs, 'utf8').split('\\n').length - 1;
    const print = (status, kind = 'ExecCredential', apiVersion = '${API_VERSION}') =>
      console.log(JSON.stringify({ apiVersion, kind, status }));`;
  await writeFile(file, `${preamble}\n${script}`);
  const source: ExecSource = {
    command: process.execPath,
    args: [file],
    environment: {},
    apiVersion: API_VERSION,
    provideClusterInfo: false,
    ...more,
  };
  const ids = async () =>
    (await readFile(runs, 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number);
  return { source, ids, runs: async () => (await ids()).length };
}

function configOf(source: ExecSource, more: Partial<ClusterConfig> = {}): ClusterConfig {
  return {
    source: 'test',
    server: 'https://127.0.0.1:1',
    insecureSkipTlsVerify: false,
    credentials: { kind: 'exec', ...source },
    namespace: 'default',
    ...more,
  };
}

function open(source: ExecSource, options: CredentialsOptions = {}, more?: Partial<ClusterConfig>) {
  return credentialsOf(configOf(source, more), options);
}

test('runs the plugin once for concurrent callers and caches the token', async (t) => {
  const { source, runs } = await plugin(t, `print({ token: 'token ' + run })`);
  const credentials = open(source);
  const all = await Promise.all(Array.from({ length: 5 }, async () => credentials.headers()));
  assert.deepEqual(
    new Set(all.map((headers) => headers['authorization'])),
    new Set(['Bearer token 1']),
  );
  await credentials.headers();
  assert.equal(await runs(), 1);
});

test('renews a credential 30 s before it expires', async (t) => {
  const clock = new FakeClock();
  const expiry = (seconds: number) => new Date(clock.now() + seconds * 1000).toISOString();
  const { source } = await plugin(
    t,
    `print({ token: 'token ' + run, expirationTimestamp: run === 1 ? '${expiry(600)}' : '${expiry(590)}' })`,
  );
  const credentials = open(source, { clock });
  assert.equal((await credentials.headers())['authorization'], 'Bearer token 1');
  await clock.advance(569_999);
  assert.equal((await credentials.headers())['authorization'], 'Bearer token 1');
  await clock.advance(1);
  assert.equal((await credentials.headers())['authorization'], 'Bearer token 2');
});

test('renews a credential with a lifetime below one minute at half its lifetime', async (t) => {
  const clock = new FakeClock();
  const expiry = new Date(clock.now() + 20_000).toISOString();
  const { source, runs } = await plugin(
    t,
    `print({ token: 'token ' + run, expirationTimestamp: '${expiry}' })`,
  );
  const credentials = open(source, { clock });
  await credentials.headers();
  await clock.advance(9_999);
  await credentials.headers();
  assert.equal(await runs(), 1);
  await clock.advance(1);
  await credentials.headers();
  assert.equal(await runs(), 2);
});

test('uses a credential until it expires if it cannot be renewed, and does not log standard error', async (t) => {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const folder = await mkdtemp(join(tmpdir(), 'plugin-'));
  t.after(() => rm(folder, { recursive: true }));
  const runs = join(folder, 'runs');
  const expirationTimestamp = new Date(clock.now() + 600_000).toISOString();
  const printed = JSON.stringify({
    apiVersion: API_VERSION,
    kind: 'ExecCredential',
    status: { token: 'secret', expirationTimestamp },
  });
  // A shell starts faster than Node.
  const script = `test -e "$1" && echo canary >&2; echo x >>"$1"; test "$(cat "$1")" = x && echo '${printed}'`;
  const credentials = open(
    {
      command: '/bin/sh',
      args: ['-c', script, 'plugin', runs],
      environment: { PATH: '/usr/bin:/bin' },
      apiVersion: API_VERSION,
      provideClusterInfo: false,
    },
    { clock, log },
  );
  const countRuns = async () => (await readFile(runs, 'utf8')).length / 2;
  await credentials.headers();
  await clock.advance(575_000);
  for (const attempt of [2, 3, 4]) {
    for (const headers of await Promise.all([credentials.headers(), credentials.headers()])) {
      assert.equal(headers['authorization'], 'Bearer secret');
    }
    await credentials.headers();
    assert.equal(await countRuns(), attempt, 'one attempt in ten seconds');
    await clock.advance(attempt < 4 ? 10_000 : 5000);
  }
  await assert.rejects(async () => credentials.headers(), /exit code 1/, 'it has expired');
  assert.equal(lines.length, 3);
  for (const { message, error } of lines) {
    assert.equal(message, 'Failed to renew a credential, using it until it expires');
    assert.doesNotMatch(inspect(error, { depth: 9 }), /canary|secret/);
  }
});

test('runs the plugin again and retries the call if the server rejects the token', async (t) => {
  const { source, runs } = await plugin(t, `print({ token: 'token-' + run })`);
  const { url } = await serve(t, (request, response) => {
    if (request.headers.authorization === 'Bearer token-2')
      sendJson(response, configMap('settings'));
    else sendStatus(response, 401, 'Unauthorized');
  });
  const connection = connectCluster(configOf(source, { server: url }));
  t.after(() => connection.close());
  await Promise.all(Array.from({ length: 4 }, () => connection.client.get(CONFIG_MAPS, AT)));
  assert.equal(await runs(), 2, 'four rejections of one token cause one renewal');
});

test('keeps a newer token if the server rejects an old one', async (t) => {
  const { source } = await plugin(t, `print({ token: 'token-' + run })`);
  const credentials = open(source);
  const old = await credentials.headers();
  credentials.invalidate(old);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer token-2' });
  credentials.invalidate(old);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer token-2' });
});

test('presents the client certificate of the plugin', async (t) => {
  const { url, authority } = await serveTls(
    t,
    (request, response) =>
      sendJson(
        response,
        configMap(String((request.socket as TLSSocket).getPeerCertificate().subject.CN)),
      ),
    { requestCert: true, rejectUnauthorized: true },
  );
  const issued = await authority.issue({ commonName: 'alice', usages: 'client' });
  const status = {
    clientCertificateData: issued.certificatePem,
    clientKeyData: issued.privateKeyPem,
  };
  const { source } = await plugin(t, `print(${JSON.stringify(status)})`);
  const connection = connectCluster(
    configOf(source, { server: url, ca: { kind: 'data', pem: authority.certificatePem } }),
  );
  t.after(() => connection.close());
  assert.equal((await connection.client.get(CONFIG_MAPS, AT)).metadata.name, 'alice');
});

test('passes environment and cluster information to the plugin, but no input', async (t) => {
  const script = `
    const { spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
    const input = readFileSync(0, 'utf8');
    print({ token: JSON.stringify([spec, process.env.OWN, input, process.argv.slice(2)]) });`;
  const { certificatePem: pem } = await createCertificateAuthority({ commonName: 'ca' });
  const cluster: Partial<ClusterConfig> = {
    server: 'https://cluster.example',
    tlsServerName: 'inner',
    ca: { kind: 'data', pem },
  };
  const inputOf = async (more: Partial<ExecSource>) => {
    const { source } = await plugin(t, script, { environment: { OWN: 'value' }, ...more });
    const args = [...source.args, 'a b', '$(echo no shell)'];
    const { authorization = '' } = await open({ ...source, args }, {}, cluster).headers();
    return JSON.parse(authorization.slice('Bearer '.length)) as unknown;
  };
  const args = ['a b', '$(echo no shell)'];
  assert.deepEqual(await inputOf({}), [{ interactive: false }, 'value', '', args]);
  assert.deepEqual(
    await inputOf({ provideClusterInfo: true, clusterSettings: { audience: 'x' } }),
    [
      {
        interactive: false,
        cluster: {
          server: 'https://cluster.example',
          'tls-server-name': 'inner',
          'certificate-authority-data': Buffer.from(pem).toString('base64'),
          config: { audience: 'x' },
        },
      },
      'value',
      '',
      args,
    ],
  );
});

test('reports the failure of a plugin without quoting its output', async (t) => {
  const statuses: unknown[] = [];
  const metrics = {
    ...noRestClientMetrics,
    execPluginCalled: ({ code, status }: { code: number; status: string }) =>
      statuses.push([code, status]),
  };
  const cases: [script: string, message: RegExp][] = [
    [`console.log('canary'); process.exitCode = 3`, /failed: exit code 3\. See its standard error/],
    [`process.kill(process.pid, 'SIGTERM')`, /failed: ended by SIGTERM/],
    [`console.log('canary')`, /printed another kind of object/],
    [`console.log('{canary')`, /printed neither JSON nor YAML \(8 bytes\)/],
    [
      `print({ token: 'canary' }, 'Other')`,
      /printed another kind of object.*Expected an ExecCredential/,
    ],
    [
      `print({ token: 'canary' }, 'ExecCredential', 'client.authentication.k8s.io/v1beta1')`,
      /another version/,
    ],
    [`print({ clientKeyData: 'canary' })`, /printed only half of a key pair/],
    [`print({})`, /printed no credentials/],
    [`print({ token: 'canary', expirationTimestamp: 'soon' })`, /an invalid expirationTimestamp/],
    [
      `process.stdout.write('canary'.repeat(300_000))`,
      /could not be run: it printed more than 1048576 bytes/,
    ],
  ];
  for (const [script, message] of cases) {
    const { source } = await plugin(t, script);
    await assert.rejects(
      async () => open(source, { metrics }).headers(),
      (error) => {
        assert.ok(isApiError(error, 'unauthorized'), String(error));
        assert.match(error.message, message);
        assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /canary/);
        return true;
      },
    );
  }
  assert.deepEqual(statuses.slice(0, 3), [
    [3, 'plugin_execution_error'],
    [1, 'plugin_execution_error'],
    [0, 'no_error'],
  ]);
});

test('reports a plugin that is not installed with its install hint', async () => {
  const source: ExecSource = {
    command: 'no-such-plugin',
    args: [],
    environment: { PATH: '/nowhere' },
    apiVersion: API_VERSION,
    provideClusterInfo: false,
    installHint: 'Install it with: get-plugin',
  };
  await assert.rejects(
    async () => open(source).headers(),
    /no-such-plugin was not found\. Install it with: get-plugin$/,
  );
  const { installHint: _hint, ...unhinted } = source;
  await assert.rejects(
    async () => open(unhinted).headers(),
    /was not found\. Install it, or check the PATH/,
  );
});

test('kills a plugin that does not end within one minute', async (t) => {
  const clock = new FakeClock();
  const { source, ids } = await plugin(t, `setInterval(() => {}, 1000)`);
  const outcome = assert.rejects(
    async () => open(source, { clock }).headers(),
    /timed out: not done within 60 s\. It cannot read input/,
  );
  while (clock.untilNext !== 60_000) await settle(1);
  while ((await ids()).length === 0) await settle(1);
  await clock.advance(60_000);
  await outcome;
  const [id = 0] = await ids();
  while (isAlive(id)) await settle(1);
});

test('runs a failed plugin again on the next call', async (t) => {
  const { source } = await plugin(t, `run === 1 ? process.exit(1) : print({ token: 'abc' })`);
  const credentials = open(source);
  await assert.rejects(async () => credentials.headers(), /exit code 1/);
  assert.deepEqual(await credentials.headers(), { authorization: 'Bearer abc' });
});

function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}
