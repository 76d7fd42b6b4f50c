import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { kubeconfigOf } from '../../../src/apiserver/http/kubeconfig.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import type { ClusterConnectionOptions } from '../../../src/client/cluster-connection.ts';
import type { ClusterConfig } from '../../../src/client/kube-config/cluster-config.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import { isConnectionRefused } from '../../../src/client/transport/connection-error.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { configMap, sendJson, sendStatus, serveTls } from './server.ts';

const AT = { namespace: 'default', name: 'settings' };

/** A server that accepts one token and records all requests. */
async function guardedServer(t: TestContext, token: string) {
  const seen: (string | undefined)[] = [];
  const open = new Set<ServerResponse>();
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    seen.push(request.headers.authorization);
    if (request.headers.authorization !== `Bearer ${guarded.accepted}`) {
      sendStatus(response, 401, 'Unauthorized');
    } else if (request.url?.includes('watch=')) {
      open.add(response.writeHead(200, { 'content-type': 'application/json' }));
      response.flushHeaders();
      response.on('close', () => open.delete(response));
    } else {
      sendJson(response, configMap(token));
    }
  };
  const { url, port, server, authority } = await serveTls(t, answer);
  const config: ClusterConfig = {
    source: 'test',
    server: url,
    ca: { kind: 'data', pem: authority.certificatePem },
    insecureSkipTlsVerify: false,
    credentials: { kind: 'token', token },
    namespace: 'default',
  };
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const guarded = { config, port, seen, open, accepted: token, stop };
  return guarded;
}

/** A connection whose configuration becomes `now` on the next reload. */
function connected(t: TestContext, config: ClusterConfig, options: ClusterConnectionOptions = {}) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const kubeconfig = { now: config, readings: 0 };
  const reload = async () => {
    kubeconfig.readings++;
    return kubeconfig.now;
  };
  const connection = connectCluster(config, { clock, log, reload, ...options });
  t.after(() => connection.close());
  const found = async () => (await connection.client.get(CONFIG_MAPS, AT)).metadata.name;
  return { clock, lines, kubeconfig, connection, found };
}

test('finds a server that moved to another address, CA and token with the next call', async (t) => {
  const [before, after] = [await guardedServer(t, 'before'), await guardedServer(t, 'after')];
  const { lines, kubeconfig, connection, found } = connected(t, before.config);
  assert.equal(await found(), 'before');
  await before.stop();
  await assert.rejects(found(), isConnectionRefused);
  kubeconfig.now = after.config;
  await assert.rejects(found(), isConnectionRefused, 'it was read a moment ago');
  const later = connected(t, before.config);
  later.kubeconfig.now = after.config;
  assert.equal(await later.found(), 'after');
  assert.equal(later.connection.server, after.config.server);
  assert.equal(connection.server, before.config.server);
  const shown = (all: typeof lines) =>
    all.filter(({ level }) => level === 0 || level === 'error').map(({ message }) => message);
  assert.deepEqual(shown(later.lines), ['Kubeconfig changed; reconnecting']);
  assert.deepEqual(shown(lines), [], 'an unchanged kubeconfig is not logged');
});

test('reads the kubeconfig again if the CA does not match or the token is rejected', async (t) => {
  const server = await guardedServer(t, 'good');
  const other = await guardedServer(t, 'other');
  for (const [wrong, error] of [
    [{ ca: other.config.ca }, /x509: certificate signed by unknown authority/],
    [{ credentials: { kind: 'token', token: 'old' } }, /Unauthorized/],
    [{ credentials: { kind: 'tokenFile', path: '/missing' } }, /Cannot read the token file/],
  ] as const) {
    const { clock, kubeconfig, found } = connected(t, {
      ...server.config,
      ...wrong,
    } as ClusterConfig);
    await assert.rejects(found(), error);
    kubeconfig.now = server.config;
    await clock.advance(2000);
    assert.equal(await found(), 'good');
  }
});

test('never uses the CA of one version with the token of another', async (t) => {
  const [before, after] = [await guardedServer(t, 'before'), await guardedServer(t, 'after')];
  const { kubeconfig, found } = connected(t, before.config);
  await found();
  before.accepted = 'revoked';
  kubeconfig.now = after.config;
  assert.deepEqual(
    await Promise.all(Array.from({ length: 8 }, found)),
    Array.from({ length: 8 }, () => 'after'),
  );
  assert.deepEqual(new Set(before.seen), new Set(['Bearer before']));
  assert.deepEqual(new Set(after.seen), new Set(['Bearer after']));
});

test('reads the kubeconfig at most once in two seconds, for any number of failing calls', async (t) => {
  const server = await guardedServer(t, 'good');
  const config: ClusterConfig = { ...server.config, credentials: { kind: 'token', token: 'bad' } };
  const { clock, kubeconfig, found } = connected(t, config);
  for (let second = 0; second < 10; second++) {
    await Promise.allSettled(Array.from({ length: 10 }, found));
    await clock.advance(1000);
  }
  assert.equal(kubeconfig.readings, 5);
  assert.equal(server.seen.length, 100, 'no request is retried if the kubeconfig is unchanged');
});

test('ends a running watch, and sends the next one to the new server', async (t) => {
  const [before, after] = [await guardedServer(t, 'before'), await guardedServer(t, 'after')];
  const { kubeconfig, connection, found } = connected(t, before.config);
  const watch = await connection.client.watch(CONFIG_MAPS, { namespace: 'default' });
  assert.equal(before.open.size, 1);
  before.accepted = 'revoked';
  kubeconfig.now = after.config;
  assert.equal(await found(), 'after');
  await assert.rejects(
    async () => {
      for await (const event of watch) assert.fail(JSON.stringify(event));
    },
    (error) => isApiError(error, 'unreachable'),
  );
  await connection.client.watch(CONFIG_MAPS, { namespace: 'default' });
  assert.equal(after.open.size, 1);
});

test('does not retry a request at the new server if the old one may have processed it', async (t) => {
  const [before, after] = [await guardedServer(t, 'before'), await guardedServer(t, 'after')];
  const { kubeconfig, connection } = connected(t, before.config, {
    wrapTransport: (handler) => async (request) => {
      const answer = await handler(request);
      if (request.method !== 'POST') return answer;
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    },
  });
  kubeconfig.now = after.config;
  const { metadata: _, ...draft } = configMap('new');
  await assert.rejects(
    connection.client.create(CONFIG_MAPS, { ...draft, metadata: AT }),
    /the connection broke/,
  );
  assert.equal(before.seen.length, 1);
  assert.equal(after.seen.length, 0);
  assert.equal(connection.server, after.config.server, 'the next request uses the new server');
});

test('uses the previous kubeconfig while it cannot be read, and logs this once', async (t) => {
  const server = await guardedServer(t, 'good');
  const { clock, lines, found } = connected(t, server.config, {
    reload: async () => {
      throw new Error('malformed');
    },
  });
  server.accepted = 'other';
  for (let attempt = 0; attempt < 5; attempt++) {
    await assert.rejects(found(), /Unauthorized/);
    await clock.advance(2000);
  }
  assert.equal(lines.filter(({ level }) => level === 'error').length, 1);
  server.accepted = 'good';
  assert.equal(await found(), 'good');
});

/** Writes a kubeconfig for a server. */
async function fileFor(t: TestContext, config: ClusterConfig) {
  const folder = await mkdtemp(join(tmpdir(), 'reload-'));
  t.after(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, 'config');
  const write = async (of: ClusterConfig, changes: object = {}) => {
    assert.ok(of.ca?.kind === 'data' && of.credentials.kind === 'token');
    const document = kubeconfigOf({
      url: of.server,
      caPem: of.ca.pem,
      token: of.credentials.token,
    });
    await writeFile(kubeconfig, JSON.stringify({ ...document, ...changes }), { mode: 0o600 });
  };
  await write(config);
  return { write, load: () => loadClusterConfig({ kubeconfig, environment: {} }) };
}

test('reads the configuration of loadClusterConfig again, in the same context', async (t) => {
  const [before, after] = [await guardedServer(t, 'before'), await guardedServer(t, 'after')];
  const file = await fileFor(t, before.config);
  const connection = connectCluster(await file.load());
  t.after(() => connection.close());
  before.accepted = 'revoked';
  const other = { name: 'other', context: { cluster: 'production', user: 'admin' } };
  await file.write(after.config, {
    'current-context': 'other',
    contexts: [
      other,
      { name: 'crd-controller', context: { cluster: 'crd-controller', user: 'crd-controller' } },
    ],
  });
  assert.equal((await connection.client.get(CONFIG_MAPS, AT)).metadata.name, 'after');
});

test('does not reload a changed copy of a configuration', async (t) => {
  const server = await guardedServer(t, 'admin');
  const file = await fileFor(t, server.config);
  const config = {
    ...(await file.load()),
    credentials: { kind: 'token', token: 'guest' },
  } as const;
  const connection = connectCluster(config);
  t.after(() => connection.close());
  await assert.rejects(connection.client.get(CONFIG_MAPS, AT), /Unauthorized/);
  assert.deepEqual(server.seen, ['Bearer guest']);
});

test('a client with other options shares the connection, also after the server moved', async (t) => {
  const [before, after] = [await guardedServer(t, 'before'), await guardedServer(t, 'after')];
  const { kubeconfig, connection } = connected(t, before.config);
  const agents: (string | undefined)[] = [];
  const client = connection.client.withOptions({
    userAgent: 'other',
    wrapTransport: (handler) => (request) => {
      agents.push(request.headers['user-agent']);
      return handler(request);
    },
  });
  const found = async () => (await client.get(CONFIG_MAPS, AT)).metadata.name;
  assert.equal(await found(), 'before');
  assert.equal(client.namespace, 'default');
  await before.stop();
  kubeconfig.now = after.config;
  assert.equal(await found(), 'after');
  assert.deepEqual(agents, ['other', 'other', 'other']);
});
