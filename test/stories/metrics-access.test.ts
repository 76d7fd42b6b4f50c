import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import type { PolicyRule } from '../../src/api/policy-rule.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { servingCertificate } from '../../src/cli/program/endpoints.ts';
import { ChangeableLogLevel } from '../../src/cli/logs/log-level.ts';
import type { Client } from '../../src/client/client.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { metricsOf } from '../../src/metrics/metrics.ts';
import { createRegistry, expose } from '../../src/metrics/registry.ts';
import { systemClock } from '../../src/util/clock.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { manifestsOf } from '../support/roles.ts';
import type { Manifest } from '../support/roles.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { newDaemon } from '../support/test-cluster.ts';

const SYSTEM = 'crd-controller-system';
const AUTH_ROLE = manifestsOf('rbac/metrics/auth-role.yaml');
const READER = manifestsOf('rbac/metrics/reader.yaml');

/** Permissions that no manifest grants: to read all debug pages, and to change the verbosity. */
const DEBUGGER: readonly PolicyRule[] = [{ nonResourceURLs: ['/debug/*'], verbs: ['get', 'put'] }];

/** Users of the cluster with a token for each. */
interface Cluster {
  /** A client with the ServiceAccount that hack/deploy creates for the daemon. */
  readonly reviewer: Pick<Client, 'raw'>;
  readonly tokens: Readonly<Record<'prometheus' | 'nosy' | 'debugger', string>>;
  close(): Promise<void>;
}

/** Returns a cluster in this process. Its users have the rules in the manifests. */
function embeddedCluster(): Cluster {
  const rulesIn = (manifests: readonly Manifest[]): readonly PolicyRule[] =>
    manifests.flatMap(({ rules = [] }) => rules);
  const account = (name: string, rules: readonly PolicyRule[], namespace = 'monitoring') => ({
    name: `system:serviceaccount:${namespace}:${name}`,
    token: `token-of-${name}`,
    rules,
  });
  const users = [
    account('crd-controller', rulesIn(AUTH_ROLE), SYSTEM),
    account('prometheus', rulesIn(READER)),
    account('nosy', []),
    account('debugger', DEBUGGER),
  ];
  const server = new ApiServer({ authenticate: true, users });
  const credentials = {
    headers: () => Promise.resolve({ authorization: 'Bearer token-of-crd-controller' }),
    invalidate: () => false,
  };
  const reviewer = new HttpClient({ handler: server.handler, server: 'https://here', credentials });
  return {
    reviewer,
    tokens: {
      prometheus: 'token-of-prometheus',
      nosy: 'token-of-nosy',
      debugger: 'token-of-debugger',
    },
    close: () => server.close(),
  };
}

/** Returns a real cluster with ServiceAccounts, and roles as applied. */
async function realCluster(): Promise<Cluster> {
  const plane = await startControlPlane();
  const { client, config } = plane;
  const post = (path: string, body: object) => client.raw({ method: 'POST', path, body });
  const rbac = (plural: string, body: object) =>
    post(`/apis/rbac.authorization.k8s.io/v1/${plural}`, body);
  const bind = (role: string, name: string) =>
    rbac('clusterrolebindings', {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'monitoring' }],
    });
  const account = async (name: string, namespace = 'monitoring') => {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await post(accounts, { metadata: { name } });
    const { status } = (await post(`${accounts}/${name}/token`, { spec: {} })) as {
      status: { token: string };
    };
    return status.token;
  };
  for (const name of [SYSTEM, 'monitoring']) {
    await post('/api/v1/namespaces', { metadata: { name } });
  }
  for (const manifest of [...AUTH_ROLE, ...READER]) {
    await rbac(`${manifest.kind.toLowerCase()}s`, manifest);
  }
  await rbac('clusterroles', { metadata: { name: 'debugger' }, rules: DEBUGGER });
  await bind('crd-controller-metrics-reader', 'prometheus');
  await bind('debugger', 'debugger');
  const token = await account('crd-controller', SYSTEM);
  const connection = connectCluster({ ...config, credentials: { kind: 'token', token } });
  // The authorizer of a server applies new roles with a short delay.
  const isBound = async (name: string, path: string) => {
    const user = `system:serviceaccount:monitoring:${name}`;
    const spec = { user, nonResourceAttributes: { path, verb: 'get' } };
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const { status } = (await connection.client.raw({
      method: 'POST',
      path: reviews,
      body: { spec },
    })) as { status: { allowed: boolean } };
    return status.allowed;
  };
  const deadlineMs = performance.now() + 30_000;
  const settled = async () => {
    try {
      return (await isBound('prometheus', '/metrics')) && (await isBound('debugger', '/debug/x'));
    } catch (error) {
      if (isApiError(error, 'forbidden')) return false;
      throw error;
    }
  };
  while (!(await settled())) assert.ok(performance.now() < deadlineMs, 'roles without permissions');
  return {
    reviewer: connection.client,
    tokens: {
      prometheus: await account('prometheus'),
      nosy: await account('nosy'),
      debugger: await account('debugger'),
    },
    close: async () => {
      await connection.close();
      await plane.close();
    },
  };
}

/** Roles are cluster-scoped, so none are created in a cluster that the user provides. */
const isOurs = [undefined, 'embedded', 'real', 'cluster'].includes(process.env['CONTROL_PLANE']);

describe('A daemon with protected metrics', { skip: !isOurs }, () => {
  const { log, lines } = recordingLogger();
  const level = new ChangeableLogLevel(2, () => log);
  let cluster: Cluster;
  let stop: () => Promise<void>;
  let ports: readonly number[];

  before(async () => {
    const isEmbedded = (process.env['CONTROL_PLANE'] ?? 'embedded') === 'embedded';
    cluster = isEmbedded ? embeddedCluster() : await realCluster();
    const registry = createRegistry();
    const serving = {
      isMetricsSecure: true,
      certificate: undefined,
      minVersion: 'TLSv1.2',
      ciphers: undefined,
      http2: false,
    } as const;
    const certificate = await servingCertificate(serving, {
      clock: systemClock,
      log,
      host: 'pod-a',
    });
    const whole = newDaemon(
      {
        client: new HttpClient({
          handler: () => Promise.reject(new Error('unexpected request')),
          server: 'https://nowhere',
        }),
        clock: systemClock,
        log,
        metrics: metricsOf(registry),
        expose: () => expose(registry),
        random: Math.random,
        host: 'pod-a',
        secure: { reviewer: cluster.reviewer, certificate },
        logLevel: level,
      },
      {
        controllers: [],
        metricsBindAddress: '127.0.0.1:0',
        // On all interfaces, if the environment allows it.
        debugBindAddress: '0.0.0.0:0',
        profilerAddress: '0.0.0.0:0',
        serving,
      },
    );
    const stopping = new AbortController();
    const running = whole.run(stopping.signal);
    stop = async () => {
      stopping.abort();
      await running;
    };
    const addresses = () =>
      lines
        .filter(({ message }) => message === 'Listening')
        .map(({ fields }) => String(fields['address']))
        .toSorted();
    while (addresses().length < 2) await new Promise((resolve) => setImmediate(resolve));
    ports = addresses().map((address) => Number(address.split(':').at(-1)));
  });
  after(async () => {
    await stop();
    await cluster.close();
  });

  const ask = async (
    port: number | undefined,
    path: string,
    token: string | undefined,
    body?: string,
  ) => {
    const asking = request({
      port,
      host: '127.0.0.1',
      path,
      method: body === undefined ? 'GET' : 'PUT',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      rejectUnauthorized: false,
    });
    asking.end(body);
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
    return { status: response.statusCode, text };
  };
  // 0.0.0.0 comes before 127.0.0.1.
  const scrape = (token: string | undefined) => ask(ports[1], '/metrics', token);
  const debug = (path: string, token: string | undefined, body?: string) =>
    ask(ports[0], path, token, body);

  it('answers 200 to users with access to /metrics, 403 to others, and 401 without authentication', async () => {
    const { tokens } = cluster;
    const { status, text } = await scrape(tokens.prometheus);
    assert.equal(status, 200);
    assert.match(text, /^# TYPE workqueue_depth gauge$/m);
    assert.deepEqual(await scrape(tokens.nosy), {
      status: 403,
      text: 'User "system:serviceaccount:monitoring:nosy" cannot get path "/metrics"\n',
    });
    for (const token of [undefined, '', 'nobodys', `${tokens.prometheus}x`]) {
      assert.deepEqual(await scrape(token), { status: 401, text: 'Unauthorized\n' });
    }
  });

  it('does not serve metrics without TLS', async () => {
    await assert.rejects(fetch(`http://127.0.0.1:${ports[1]}/metrics`));
  });

  it('protects debug pages that other hosts can reach in the same way', async () => {
    const { tokens } = cluster;
    assert.equal((await debug('/debug/queues', undefined)).status, 401);
    assert.equal((await debug('/debug/queues', tokens.prometheus)).status, 403);
    assert.equal((await debug('/debug/queues', tokens.debugger)).status, 200);
    assert.equal((await debug('/metrics', tokens.debugger)).status, 403);
    assert.equal((await debug('/debug/flags/v', tokens.prometheus, '9')).status, 403);
    assert.equal(level.verbosity, 2);
    assert.deepEqual(await debug('/debug/flags/v', tokens.debugger, '4'), {
      status: 200,
      text: 'successfully set klog.logging.verbosity to 4',
    });
    assert.equal(level.verbosity, 4);
    assert.deepEqual(await debug('/debug/flags/v', tokens.debugger, 'four'), {
      status: 400,
      text: 'failed set klog.logging.verbosity four: strconv.ParseInt: parsing "four": invalid syntax',
    });
  });

  it('protects profiles, and serves no heap snapshots there', async () => {
    const { tokens } = cluster;
    assert.equal((await debug('/debug/pprof/heap', undefined)).status, 401);
    assert.equal((await debug('/debug/pprof/heap', tokens.prometheus)).status, 403);
    const { status, text } = await debug('/debug/pprof/heap', tokens.debugger);
    assert.equal(status, 200, text);
    assert.ok('head' in JSON.parse(text));
    const snapshot = await debug('/debug/heapsnapshot', tokens.debugger);
    assert.equal(snapshot.status, 403);
    assert.match(snapshot.text, /secrets/);
  });

  it('logs no token', () => {
    const all = JSON.stringify(lines);
    for (const token of Object.values(cluster.tokens)) assert.ok(!all.includes(token));
  });
});
