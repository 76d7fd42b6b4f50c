import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CUSTOM_RESOURCE_DEFINITIONS,
} from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Resource } from '../../src/api/resource.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { ApiUser } from '../../src/apiserver/auth/access.ts';
import { check } from '../../src/cli/commands/check.ts';
import { parseFlags } from '../../src/cli/flags/flag-parser.ts';
import { temporaryKubeconfig } from '../../src/cli/embedded/kubeconfig-file.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import type { Client } from '../../src/client/client.ts';
import { silentLogger } from '../../src/util/logger.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { manifestsOf, rulesOf } from '../support/roles.ts';
import type { PolicyRule } from '../support/roles.ts';
import { until } from '../support/until.ts';
import { crdOf } from '../support/test-cluster.ts';
import { CHECK_OPTIONS, PROGRAM, environmentOf } from '../support/own-program.ts';

/** A server with two users and their roles. */
interface TestServer {
  readonly kubeconfigPath: string;
  readonly client: Client;
  close(): Promise<void>;
}

const INSTALLED = [
  'rbac/controllers/count.yaml',
  'rbac/events/events.yaml',
  'rbac/identity/leader-election.yaml',
].flatMap((file) => rulesOf(manifestsOf(file)));

const USERS: Readonly<Record<string, PolicyRule[]>> = {
  'check-installed': INSTALLED,
  'check-poor': INSTALLED.flatMap((rule) => {
    const verbs = rule.verbs.filter((verb) => verb !== 'delete');
    const apiGroups = rule.apiGroups?.filter((group) => group !== 'events.k8s.io') ?? [];
    return verbs.length > 0 ? [{ ...rule, apiGroups, verbs }] : [];
  }),
};

/** Roles are not created in a cluster that the user provides. */
const skip = process.env['CONTROL_PLANE']?.includes('/') && 'needs a cluster of its own';

describe('The check command, for users with complete and incomplete roles', { skip }, () => {
  let testServer: TestServer;

  before(async () => {
    testServer = await (process.env['CONTROL_PLANE'] === undefined ? embedded() : given());
  });
  after(() => testServer.close());

  /** Runs the check as `user`, by default as an administrator. */
  async function run(user?: string, ...flags: readonly string[]) {
    const lines: string[] = [];
    const { values } = parseFlags(
      CHECK_OPTIONS,
      [
        `--kubeconfig=${testServer.kubeconfigPath}`,
        '--controllers=count',
        ...(user === undefined ? [] : [`--as=${user}`]),
        ...flags,
      ],
      environmentOf(),
    );
    const code = await check(PROGRAM, values, {
      environment: {},
      log: silentLogger,
      print: (text) => lines.push(text),
      signal: new AbortController().signal,
    });
    return { code, lines, text: lines.join('\n') };
  }

  it('names a missing CRD, and the command that installs it', async () => {
    const { code, lines, text } = await run();
    assert.equal(code, 1);
    assert.match(text, /^CRD counts\.demo\.mark8s\.io +FAILED +not installed$/m);
    assert.match(text, /^ {4}Install it: crd-controller manifests --only=crds \| kubectl apply /m);
    assert.equal(lines.at(-1), '1 of 6 checks failed.');
    await testServer.client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(COUNTS));
  });

  it('succeeds for a user with the roles of the installation', async () => {
    const election = ['--leader-elect=true', '--leader-elect-resource-namespace=default'];
    await until('Counts are served', () => served(testServer.client));
    const { code, lines, text } = await run('check-installed', ...election);
    assert.equal(code, 0, text);
    assert.match(text, /^API server +ok +https:.* responded in \d+ms; user "check-installed"$/m);
    assert.match(text, /^version +ok +v1\.\d+\.\d+\S*; tested with 1\.\d+ to 1\.\d+$/m);
    assert.match(text, /^clock +ok/m);
    assert.match(text, /^CRD counts\.demo\.mark8s\.io +ok +serves v1$/m);
    assert.match(text, /^permissions of count +ok +(\d+) of \1 granted$/m);
    assert.match(text, /^Lease default\/crd-controller +ok +\S/m);
    assert.equal(lines.at(-1), 'All checks passed.');
    assert.match((await run()).text, /^CRD counts\.demo\.mark8s\.io +ok +Established, serves v1$/m);
  });

  it('requires the permissions for the API group of events that the flags select', async () => {
    for (const [flags, granted] of [
      [[], /^permissions of events +ok +2 of 2 granted$/m],
      [
        ['--event-api-version=events.k8s.io/v1'],
        /^permissions of events +FAILED +cannot create, patch events of events\.k8s\.io in all namespaces$/m,
      ],
    ] as const) {
      assert.match((await run('check-poor', ...flags)).text, granted);
    }
  });

  it('names a missing verb with its rule, and the command that verifies it', async () => {
    const { code, text } = await run('check-poor');
    assert.equal(code, 1);
    assert.match(text, /^permissions of count +FAILED +cannot delete pods in all namespaces$/m);
    assert.match(
      text,
      /^ {4}Add this rule to a ClusterRole of the user: \{apiGroups: \[""\], resources: \["pods"\], verbs: \["delete"\]\}$/m,
    );
    assert.match(
      text,
      /^ {4}Verify: kubectl auth can-i delete pods --all-namespaces --as=check-poor$/m,
    );
    const { text: json } = await run('check-poor', '--output=json');
    const { ok, checks } = JSON.parse(json) as { ok: boolean; checks: { result: string }[] };
    assert.equal(ok, false);
    assert.equal(checks.filter(({ result }) => result === 'failed').length, 1);
  });

  it('requires access to the review APIs for endpoints that other hosts can reach', async () => {
    const missing = /^permissions of endpoints +FAILED +cannot create tokenreviews of /m;
    for (const [flags, isGuarded] of [
      [['--enable-profiling'], false],
      [['--profiler-address=:6060'], false],
      [['--enable-profiling', '--profiler-address=:6060'], true],
      [['--debug-bind-address=:6060'], true],
    ] as const) {
      const { text } = await run('check-installed', ...flags);
      assert.equal(missing.test(text), isGuarded, `${flags.join(' ')}: ${text}`);
    }
  });

  it('reports an unavailable server at once', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const { code, lines } = await run(undefined, `--master=https://127.0.0.1:${port}`);
    assert.equal(code, 1);
    assert.match(
      lines[1] ?? '',
      /^API server +FAILED +Cannot reach .*connection refused.*Check that the server runs/,
    );
    assert.equal(lines.at(-1), '1 of 1 check failed.');
  });

  it('waits for a response as long as the flag says', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const flags = [`--master=http://127.0.0.1:${port}`, '--kube-api-request-timeout=50ms'];
    assert.match((await run(undefined, ...flags)).text, /not done within 0\.05 s/);
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
});

async function served(client: Client): Promise<true | undefined> {
  try {
    await client.list(COUNTS, { limit: 1 });
    return true;
  } catch (error) {
    if (isApiError(error, 'notFound')) return undefined;
    throw error;
  }
}

async function embedded(): Promise<TestServer> {
  const users = Object.entries(USERS).map(([name, rules]): ApiUser => ({
    token: name,
    name,
    rules,
  }));
  const server = new ApiServer({ users });
  const listening = await server.listen();
  const file = await temporaryKubeconfig(listening.kubeconfig());
  const config = await loadClusterConfig({ kubeconfig: file.path });
  const connection = connectCluster(config);
  return {
    kubeconfigPath: file.path,
    client: connection.client,
    async close() {
      await connection.close();
      await server.close();
      await file.remove();
    },
  };
}

/** Returns a kube-apiserver whose authorizer has the same roles. */
async function given(): Promise<TestServer> {
  const plane = await startControlPlane();
  for (const [user, rules] of Object.entries(USERS)) {
    const metadata = { name: user };
    const role = { ...of(CLUSTER_ROLES), metadata, rules };
    const binding = {
      ...of(CLUSTER_ROLE_BINDINGS),
      metadata,
      roleRef: { apiGroup: CLUSTER_ROLES.group, kind: CLUSTER_ROLES.kind, name: user },
      subjects: [{ apiGroup: CLUSTER_ROLES.group, kind: 'User', name: user }],
    };
    await plane.client.create(CLUSTER_ROLES, role);
    await plane.client.create(CLUSTER_ROLE_BINDINGS, binding);
  }
  return {
    kubeconfigPath: plane.kubeconfigPath,
    client: plane.client,
    async close() {
      for (const name of Object.keys(USERS)) {
        await plane.client.delete(CLUSTER_ROLE_BINDINGS, { name });
        await plane.client.delete(CLUSTER_ROLES, { name });
      }
      await plane.close();
    },
  };
}

function of({ group, version, kind }: Resource) {
  return { apiVersion: `${group}/${version}`, kind };
}
