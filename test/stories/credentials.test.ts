import assert from 'node:assert/strict';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { PODS, ROLE_BINDINGS, SECRETS, SERVICE_ACCOUNTS } from '../../src/api/builtin.ts';
import type { Client } from '../../src/client/client.ts';
import type { ClusterConfig } from '../../src/client/kube-config/cluster-config.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import { credentialsOf } from '../../src/client/kube-config/credentials.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import type { HttpHandler, HttpResponse } from '../../src/util/http.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { needsReal } from '../support/skip.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { Simulation } from '../support/simulation.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

const TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';
const MINUTE_MS = 60_000;

const CONFIG: ClusterConfig = {
  source: 'in-cluster',
  server: 'https://simulated',
  insecureSkipTlsVerify: false,
  credentials: { kind: 'tokenFile', path: TOKEN_FILE },
  namespace: 'default',
};

/** A simulation whose server requires a token that the daemon reads from a file. */
class AuthenticatedSimulation extends Simulation {
  /** Content of the token file; undefined if the file does not exist. */
  file: string | undefined = 'first';
  /** Tokens that the server accepts. */
  accepted: readonly string[] = ['first'];
  /** The daemon's requests since the list was cleared, as `accepted GET /api/...`. */
  readonly requests: string[] = [];

  override startDaemon(): () => Promise<void> {
    const { clock } = this;
    const { log } = recordingLogger(this.lines);
    const credentials = credentialsOf(CONFIG, { clock, log, readFile: () => this.#read() });
    const { server } = CONFIG;
    const handler = this.#guarded(this.server.handler);
    return super.startDaemon({}, new HttpClient({ handler, server, clock, log, credentials }));
  }

  /** Returns the number of requests that match. */
  requested(what: RegExp): number {
    return this.requests.filter((request) => what.test(request)).length;
  }

  async #read(): Promise<string> {
    if (this.file === undefined) throw new Error(`ENOENT: no such file, ${TOKEN_FILE}`);
    return this.file;
  }

  #guarded(handler: HttpHandler): HttpHandler {
    return async (request) => {
      const { method, path, headers } = request;
      const token = headers['authorization']?.replace(/^Bearer /, '') ?? '';
      const isAccepted = this.accepted.includes(token);
      this.requests.push(`${isAccepted ? 'accepted' : 'rejected'} ${method} ${path}`);
      return isAccepted ? handler(request) : unauthorized();
    };
  }
}

describe('A daemon whose token file is renewed by another process', () => {
  let simulation: AuthenticatedSimulation;

  beforeEach(async () => {
    simulation = new AuthenticatedSimulation();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.startDaemon();
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.pass(MINUTE_MS);
    simulation.requests.length = 0;
  });
  afterEach(() => simulation.end());

  it('uses a new token within a minute, without a rejected request and without a new watch', async () => {
    simulation.file = 'second';
    simulation.accepted = ['first', 'second'];
    await simulation.pass(MINUTE_MS);
    simulation.accepted = ['second'];
    await simulation.patchCount({ count: 5 });
    await simulation.untilReady(5);
    assert.equal(simulation.requested(/^rejected/), 0);
    assert.equal(simulation.requested(/GET .*(watch=|limit=)/), 0, 'no watch and no list was sent');
    assert.deepEqual(simulation.errors(), []);
  });

  it('repeats a request once after an old token is rejected, without a failed sync', async () => {
    await simulation.patchCount({ count: 4 });
    await simulation.untilReady(4);
    simulation.requests.length = 0;
    simulation.file = 'second';
    simulation.accepted = ['second'];
    await simulation.patchCount({ count: 5 });
    await simulation.untilReady(5);
    // More than one, because several requests are in flight when the token is replaced.
    assert.ok(simulation.requested(/^rejected/) <= 3, simulation.requests.join('\n'));
    assert.ok(simulation.requested(/^rejected/) >= 1);
    assert.equal(simulation.requested(/GET .*(watch=|limit=)/), 0);
    assert.deepEqual(simulation.errors(), []);
  });

  it('continues with the last valid token while the file is absent or empty, and logs it', async () => {
    for (const file of [undefined, '', '\n']) {
      simulation.file = file;
      simulation.lines.length = 0;
      await simulation.pass(2 * MINUTE_MS);
      const { spec } = await simulation.count();
      await simulation.patchCount({ count: spec.count + 1 });
      await simulation.untilReady(spec.count + 1);
      for (const line of simulation.errors()) assert.match(line, /^Failed to read the token file/);
      assert.ok(simulation.errors().length >= 1);
    }
    assert.equal(simulation.requested(/^rejected/), 0);
  });

  it('retries with increasing delays while its token is rejected, and recovers', async () => {
    simulation.accepted = ['other'];
    simulation.server.faults.dropWatches();
    await simulation.patchCount({ count: 5 });
    await simulation.pass(10 * MINUTE_MS);
    const asked = simulation.requests.length;
    simulation.requests.length = 0;
    await simulation.pass(10 * MINUTE_MS);
    // Two informers each send a watch and a list twice, and wait for at least half a minute.
    const most = 2 * (2 + 2) * 20;
    assert.ok(simulation.requests.length <= most, `${simulation.requests.length} in ten minutes`);
    assert.ok(asked <= 1.5 * most, `${asked} in the first ten minutes`);
    assert.ok(
      simulation.requests.length >= most / 4,
      `${simulation.requests.length}requests: it continues to retry`,
    );
    assert.equal(simulation.requested(/^accepted/), 0);

    simulation.file = 'other';
    await simulation.until('5 Pods', async () => (await simulation.pods()).length === 5, {
      withinMs: 2 * MINUTE_MS,
    });
    await simulation.untilReady(5);
    const again = simulation.errors().length;
    await simulation.pass(10 * MINUTE_MS);
    assert.equal(simulation.errors().length, again);
  });
});

function unauthorized(): HttpResponse {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'Unauthorized',
    reason: 'Unauthorized',
    code: 401,
  };
  return {
    status: 401,
    headers: { 'content-type': 'application/json' },
    body: (async function* () {
      yield Buffer.from(JSON.stringify(body));
    })(),
  };
}

const skip = needsReal('tokens and authorities');

describe(
  'A daemon with the files of a ServiceAccount, and a real kube-apiserver',
  { skip, timeout: 240_000 },
  () => {
    let plane: ControlPlane;
    let folder: string;
    /** The daemon's kind of connection, with separate credentials. */
    let client: ClusterConnection;
    let cluster: TlsCluster;

    const fileOf = (name: 'ca.crt' | 'token') => join(folder, name);
    const write = async (name: 'ca.crt' | 'token', text: string) => {
      // Atomic replacement, as by kubelet: a reader gets the old or the new content, never a part.
      await writeFile(`${fileOf(name)}.new`, text);
      await rename(`${fileOf(name)}.new`, fileOf(name));
    };

    before(async () => {
      plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
      folder = await mkdtemp(join(tmpdir(), 'serviceaccount-'));
      assert.ok(plane.config.ca?.kind === 'data');
      await write('ca.crt', plane.config.ca.pem);
      client = connectCluster({ ...plane.config, ca: { kind: 'file', path: fileOf('ca.crt') } });
      cluster = await TlsCluster.create({ ...plane, client: client.client });
      await cluster.installCrd();
    });
    after(async () => {
      await cluster.end();
      await client.close();
      await plane.close();
      await rm(folder, { recursive: true });
    });

    /** Returns a token that is valid while the Secret of that name exists. */
    const newToken = async (secret: string): Promise<string> => {
      const { namespace } = cluster;
      const { metadata } = await client.client.create(SECRETS, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace, name: secret },
      });
      const { name, uid } = metadata;
      const answer = (await client.client.raw({
        method: 'POST',
        path: `/api/v1/namespaces/${namespace}/serviceaccounts/daemon/token`,
        body: {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name, uid } },
        },
      })) as { status: { token: string } };
      return answer.status.token;
    };

    it('continues when its token is replaced and the old one is rejected, and when the server has a new CA', async () => {
      const { namespace } = cluster;
      await grant(client.client, namespace);
      await write('token', await newToken('first'));
      const statuses: number[] = [];
      const watches: string[] = [];
      const connection = connectCluster(
        {
          ...plane.config,
          ca: { kind: 'file', path: fileOf('ca.crt') },
          credentials: { kind: 'tokenFile', path: fileOf('token') },
        },
        {
          wrapTransport: (handler) => async (request) => {
            if (request.longRunning) watches.push(request.path);
            const response = await handler(request);
            statuses.push(response.status);
            return response;
          },
        },
      );
      const rejected = () => statuses.filter((status) => status === 401).length;
      const stop = cluster.startDaemon({ namespaces: [namespace] }, connection.client);
      await cluster.applyCount();
      await cluster.untilReady(3);

      const old = await readFile(fileOf('token'), 'utf8');
      await write('token', await newToken('second'));
      await client.client.delete(SECRETS, { namespace, name: 'first' });
      const untrusting = connectCluster({
        ...plane.config,
        credentials: { kind: 'token', token: old },
      });
      await cluster.until('the old token is rejected', async () => {
        try {
          await untrusting.client.list(PODS, { namespace });
          return false;
        } catch (error) {
          return isApiError(error, 'unauthorized');
        }
      });
      await untrusting.close();
      const watchesBefore = watches.length;
      await cluster.patchCount({ count: 5 });
      await cluster.untilReady(5);
      assert.ok(rejected() >= 1 && rejected() <= 3, `${rejected()} rejected requests`);
      assert.equal(watches.length, watchesBefore, 'the watches continue');
      assert.deepEqual(cluster.errors(), []);

      const ca = await plane.processes?.replaceAuthority();
      assert.ok(ca);
      await plane.processes?.crash('kube-apiserver');
      await plane.processes?.restart('kube-apiserver');
      await cluster.until('the daemon does not trust the server', async () =>
        cluster.lines.some(({ error, fields }) =>
          /x509/.test(`${String(error)} ${JSON.stringify(fields)}`),
        ),
      );
      const from = cluster.elapsedMs();
      await write('ca.crt', ca);
      await cluster.until('clients with the new CA trust the server', async () => {
        try {
          await cluster.patchCount({ count: 4 });
          return true;
        } catch (error) {
          if (isApiError(error, 'unreachable')) return false;
          throw error;
        }
      });
      // The kubelet simulation does not trust the server any more, so that terminating Pods stay.
      await cluster.until('the daemon trusts the server', async () => {
        const kept = (await cluster.pods()).filter(({ metadata }) => !metadata.deletionTimestamp);
        return kept.length === 4;
      });
      // Shorter than the period of the file reload: delays between attempts are at most one minute.
      assert.ok(cluster.elapsedMs() - from < 90_000, `${cluster.elapsedMs() - from} ms`);
      await stop();
      await connection.close();
    });
  },
);

/** Grants a ServiceAccount all permissions; the story does not depend on RBAC. */
async function grant(client: Client, namespace: string): Promise<void> {
  const metadata = { namespace, name: 'daemon' };
  await client.create(SERVICE_ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  const { group, kind } = ROLE_BINDINGS;
  const binding = {
    apiVersion: `${group}/v1`,
    kind,
    metadata,
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', ...metadata }],
  };
  await client.create(ROLE_BINDINGS, binding);
}
