/**
 * Sends secrets of every kind through the real client and into the log, at every verbosity and in both
 * formats. None may appear there.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { ATS } from '../../../../src/api/generated/at.ts';
import { PODS, SECRETS } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { createLogging } from '../../../../src/cli/logs/logging.ts';
import type { LoggingOptions } from '../../../../src/cli/logs/logging.ts';
import { connectCluster } from '../../../../src/client/cluster-connection.ts';
import type { ClusterConfig } from '../../../../src/client/kube-config/cluster-config.ts';
import { credentialsOf } from '../../../../src/client/kube-config/credentials.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { loadClusterConfig } from '../../../../src/client/kube-config/kube-config.ts';
import type { HttpHandler, HttpRequest } from '../../../../src/util/http.ts';
import type { Logger } from '../../../../src/util/logger.ts';

/** Parts of every secret in this test, and texts that bodies may contain from -v=8. */
const CANARY = 'c4n4ry';
const COMMAND = 'c0mm4nd';

const encoded = Buffer.from(`${CANARY}-data-of-a-secret`).toString('base64');
const PEM = `-----BEGIN PRIVATE KEY-----\n${CANARY}AAAA\n-----END PRIVATE KEY-----\n`;
const encodedPem = Buffer.from(PEM).toString('base64');

/** Forbidden texts, plain and base64-encoded. */
const FORBIDDEN = [CANARY, encoded, encoded.slice(0, 10), encodedPem.slice(60)];

const folder = mkdtempSync(join(tmpdir(), 'canaries-'));
after(() => rmSync(folder, { recursive: true }));

const LEVELS = Array.from({ length: 11 }, (_, verbosity) => verbosity);

/** Runs `act` with a logger of every verbosity and format, and checks each line. */
async function watchLines(
  act: (log: Logger) => Promise<void> | void,
  levels: readonly number[] = LEVELS,
): Promise<void> {
  for (const verbosity of levels) {
    for (const format of ['text', 'json'] as const) await watchLog({ format, verbosity }, act);
  }
}

async function watchLog(
  options: Pick<LoggingOptions, 'format' | 'verbosity'>,
  act: (log: Logger) => Promise<void> | void,
): Promise<void> {
  const lines: string[] = [];
  const { log } = createLogging(
    { ...options, vmodule: [], skipHeaders: false, addDirHeader: false },
    { write: (line) => lines.push(line), now: Date.now, pid: 7 },
  );
  await act(log);
  for (const line of lines) {
    for (const secret of FORBIDDEN) assert.ok(!line.includes(secret), line);
    if (options.verbosity < 8) assert.ok(!line.includes(COMMAND), line);
  }
  assert.ok(lines.length > 0 || options.verbosity < 6);
}

/** Logs the error that must be thrown. */
async function refused(log: Logger, doing: () => Promise<unknown>): Promise<void> {
  try {
    await doing();
  } catch (error) {
    log.error(error, 'Failed', { error, again: String(error) });
    return;
  }
  assert.fail('it succeeded');
}

const annotations = {
  'kubectl.kubernetes.io/last-applied-configuration': `{"spec":{"env":"${CANARY}"}}`,
};
const env = [{ name: 'DATABASE', value: CANARY }];
const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'a', namespace: 'default', annotations },
  data: { key: encoded },
  stringData: { other: CANARY },
};
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'default', annotations },
  spec: { containers: [{ name: 'a', image: 'b', env }] },
};
const at = {
  apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
  kind: 'At',
  metadata: { name: 'a', namespace: 'default' },
  spec: { schedule: '2030-01-01T00:00:00Z', command: COMMAND },
};

const bearer = {
  headers: async () => ({ authorization: `Bearer ${CANARY}` }),
  invalidate: () => false,
};

function clientOf(handler: HttpHandler, log: Logger): HttpClient {
  return new HttpClient({ handler, server: 'https://10.0.0.1:6443', log, credentials: bearer });
}

const name = { namespace: 'default', name: 'a' };

test('requests and responses', async () => {
  await watchLines(async (log) => {
    const client = clientOf(new ApiServer().handler, log);
    await client.create(SECRETS, secret);
    await client.get(SECRETS, name);
    await client.list(SECRETS, { namespace: 'default' });
    await client.patch(SECRETS, name, { type: 'merge', body: { data: { more: encoded } } });
    await client.create(PODS, pod);
    await client.list(PODS);
    const replace = {
      op: 'replace' as const,
      path: '/spec/containers/0/env/0/value',
      value: `${CANARY}2`,
    };
    const annotate = {
      op: 'add' as const,
      path: '/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration',
      value: CANARY,
    };
    await refused(log, () => client.patch(PODS, name, { type: 'json', body: [annotate, replace] }));
    await refused(log, () => client.create(ATS, at));
    await client.delete(SECRETS, name);
    const watching = new AbortController();
    const events = await client.watch(SECRETS, { signal: watching.signal });
    watching.abort();
    await events[Symbol.asyncIterator]().next();
  });
});

/** Returns the same response for every request. */
const answering =
  (
    status: number,
    headers: Readonly<Record<string, string>>,
    text: (request: HttpRequest) => string,
  ): HttpHandler =>
  async (request) => ({
    status,
    headers,
    body: (async function* () {
      yield Buffer.from(text(request));
    })(),
  });

test('error responses of servers and proxies', async () => {
  const json = { 'content-type': 'application/json' };
  const plain = { 'content-type': 'text/plain' };
  const echo = ({ headers }: HttpRequest) => headers['authorization'] ?? '';
  const status = (message: string) =>
    JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 401, message });
  const handlers = [
    answering(401, json, (request) => status(`invalid: ${echo(request)}`)),
    answering(401, json, () => status(`no token ${CANARY} is known`)),
    answering(401, plain, (request) => `Who is ${echo(request)}?`),
    answering(401, plain, () => `${CANARY} is unknown`),
    answering(403, json, () => status(`token ${CANARY}: forbidden`)),
    answering(302, { ...plain, location: `https://login/?code=${CANARY}#${CANARY}` }, () => ''),
    answering(500, { ...json, 'set-cookie': `session=${CANARY}`, 'x-api-key': CANARY }, () => '{}'),
    answering(200, json, () => `{"kind":"TokenReview","spec":{"token":"${CANARY}"}}`),
    answering(200, json, () => `{"kind":"Secret","data":{"a":"${CANARY}"`),
    answering(200, plain, () => `password: "${CANARY}"`),
  ];
  await watchLines(
    async (log) => {
      for (const handler of handlers) {
        const client = clientOf(handler, log);
        await refused(log, () => client.get(PODS, name));
      }
    },
    [0, 4, 6, 7, 8, 10],
  );
});

test('transport errors and proxy addresses', async () => {
  const config: ClusterConfig = {
    source: 'test',
    server: 'https://127.0.0.1:1',
    insecureSkipTlsVerify: false,
    credentials: { kind: 'token', token: CANARY },
    namespace: 'default',
  };
  const hosts = ['127.0.0.1:1', '127.0.0.1:1/', 'nowhere.invalid:1'];
  await watchLines(
    async (log) => {
      log.info('Connecting', { config, source: { environment: { SECRET: CANARY } } });
      const impersonation = { user: 'jane', groups: [], extra: new Map([['scopes', [CANARY]]]) };
      for (const host of hosts) {
        for (const user of [`me:${CANARY}`, CANARY, `me:p@${CANARY}`, `me:${CANARY}%2F`]) {
          const proxyUrl = `http://${user}@${host}`;
          log.v(1).info('Proxy', { proxyUrl, url: new URL(proxyUrl) });
        }
      }
      const proxyUrl = `http://me:${CANARY}@127.0.0.1:1`;
      const connection = connectCluster({ ...config, proxyUrl, impersonation }, { log });
      try {
        await refused(log, () => connection.client.get(PODS, name));
      } finally {
        await connection.close();
      }
      const unparsable = Object.assign(new TypeError('Invalid URL'), {
        input: `http://${CANARY}:`,
      });
      const cause = new Error(`connect to https://me:${CANARY}@host failed`, { cause: unparsable });
      log.error(new Error('fetch failed', { cause }), 'Failed', { cause });
    },
    [0, 6, 10],
  );
});

describe('credentials:', () => {
  const credentialsError = async (log: Logger, config: Pick<ClusterConfig, 'credentials'>) => {
    const whole = {
      source: 'test',
      server: 'https://127.0.0.1:1',
      insecureSkipTlsVerify: false,
      namespace: 'default',
      ...config,
    };
    const credentials = credentialsOf(whole, { log });
    await refused(log, async () => {
      await credentials.headers();
      await credentials.tls();
      throw new Error('it was good');
    });
  };

  test('output of a credential plugin', async () => {
    const apiVersion = 'client.authentication.k8s.io/v1';
    const outputs = [
      CANARY,
      `{"kind":"ExecCredential","token":"${CANARY}"}`,
      `{"kind":"ExecCredential","apiVersion":"${CANARY}"}`,
      `{"kind":"ExecCredential","apiVersion":"${apiVersion}","status":{"clientKeyData":"${CANARY}"}}`,
      `{"kind":"ExecCredential","apiVersion":"${apiVersion}","status":{"token":"${CANARY}"}}`,
    ];
    for (const output of outputs) {
      for (const code of [0, 1]) {
        const source = {
          command: '/bin/sh',
          args: ['-c', `printf '%s' "$OUTPUT"; exit ${code}`],
          environment: { OUTPUT: output },
          apiVersion,
          provideClusterInfo: true,
        } as const;
        await watchLines(
          (log) => credentialsError(log, { credentials: { kind: 'exec', ...source } }),
          [10],
        );
      }
    }
  });

  test('invalid keys and tokens', async () => {
    const file = join(folder, 'key');
    writeFileSync(file, PEM);
    const data = { kind: 'data', pem: PEM } as const;
    const sources = [
      data,
      { kind: 'file', path: file },
      { kind: 'data', pem: encodedPem },
    ] as const;
    await watchLines(
      async (log) => {
        for (const key of sources) {
          log.info('Read', { key, pem: PEM, encodedPem });
          await credentialsError(log, {
            credentials: { kind: 'clientCertificate', certificate: data, key },
          });
        }
        await credentialsError(log, {
          credentials: { kind: 'basic', username: 'me', password: CANARY },
        });
      },
      [0, 10],
    );
  });

  test('invalid and logged kubeconfigs', async () => {
    const whole = (cluster: string, user: string) =>
      `apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- {name: a, context: {cluster: a, user: a}}\nclusters:\n- name: a\n  cluster:\n    ${cluster}\nusers:\n- name: a\n  user:\n    ${user}\n`;
    const server = 'server: https://127.0.0.1:1';
    const wrong = [
      `a: b: token: ${CANARY}`,
      `token: "${CANARY}`,
      `- ${CANARY}`,
      `&${CANARY} *x`,
      whole(server, `token: [${CANARY}]`),
      whole(server, `tokenFile: {a: ${CANARY}}`),
      whole(server, `{username: me, password: {a: ${CANARY}}}`),
      whole(server, `client-key-data: "${CANARY}!"`),
      whole(server, `{client-certificate-data: ${encodedPem}, client-key-data: "${CANARY} %"}`),
      whole(server, `exec: {command: [${CANARY}], args: ${CANARY}}`),
      whole(server, `exec: {apiVersion: v0, command: a, env: [{name: A, value: ${CANARY}}]}`),
      whole(server, `auth-provider: {name: gcp, config: {access-token: ${CANARY}}}`),
      whole(`server: https://me:${CANARY}@127.0.0.1:1`, 'token: a'),
      whole(`server: "https://me:${CANARY}/p@ss"`, 'token: a'),
      whole(`{server: "https://127.0.0.1:1", proxy-url: "ftp://me:${CANARY}@x"}`, 'token: a'),
      whole(`{server: "https://127.0.0.1:1", proxy-url: "http://me:${CANARY}/@x"}`, 'token: a'),
      whole(`{server: "https://127.0.0.1:1", certificate-authority-data: [${CANARY}]}`, 'token: a'),
    ];
    const good = [
      `token: ${CANARY}`,
      `{username: me, password: ${CANARY}}`,
      `{client-certificate-data: ${encodedPem}, client-key-data: ${encodedPem}}`,
      `exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: a, env: [{name: A, value: ${CANARY}}]}`,
    ].map((user) => whole(server, user));
    const file = join(folder, 'kubeconfig');
    const load = (text: string, log: Logger) => {
      writeFileSync(file, text, { mode: 0o600 });
      const onWarning = (warning: string) => log.info('Unsafe configuration', { warning });
      return loadClusterConfig({ kubeconfig: file, environment: {}, onWarning });
    };
    await watchLines(
      async (log) => {
        for (const text of wrong) await refused(log, () => load(text, log));
        for (const text of good) {
          const config = await load(text, log);
          log.info('Loaded', { config, users: [config], kubeconfigData: text });
          if (!text.includes('exec')) log.info('Loaded', { text });
        }
        for (const master of [`https://me:${CANARY}@127.0.0.1:1`, `me:${CANARY}@127.0.0.1`]) {
          const options = { kubeconfig: file, master, environment: {} };
          await refused(log, () => loadClusterConfig(options));
          log.v(1).info('Flags', { master });
        }
      },
      [0, 10],
    );
  });
});

test('objects in log fields', async () => {
  const { kind: _kind, ...listed } = secret;
  const draft = { ...secret, metadata: { generateName: 'a-' } };
  const values = [
    secret,
    listed,
    draft,
    { ...secret, metadata: {} },
    { items: [listed, draft] },
    { kind: 'SecretList', metadata: { resourceVersion: '1' }, items: [listed] },
    pod.spec,
    { pod },
    { spec: { template: { spec: pod.spec } } },
    { env: { A: CANARY }, environment: { A: CANARY } },
    { object: { stringData: secret.stringData, annotations } },
    new Map([['env', env]]),
    { headers: ['authorization', `Bearer ${CANARY}`, 'cookie', [`a=${CANARY}`]].slice(0, 2) },
    { headers: { 'Proxy-Authorization': `Basic ${CANARY}`, 'set-cookie': [CANARY] } },
    new Error(`x-token: Bearer ${CANARY}`),
    `curl -H "Authorization: Bearer ${CANARY}" https://me:${CANARY}@host?access_token=${CANARY}`,
    // Cut after the canary, before the text that marks it as a secret.
    `${`https://me:${CANARY}`.padStart(10_240, 'x ')}@host`,
  ];
  await watchLines((log) => {
    for (const value of values) {
      log.info('Value', { value });
      log
        .with({ value })
        .named('a')
        .error(value, 'Value', { values: [value] });
    }
  });
});
