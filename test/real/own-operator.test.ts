import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { freePorts } from '../../hack/envtest/real-control-plane.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { CLUSTER_ROLE_BINDINGS, DEPLOYMENTS, LEASES } from '../../src/api/builtin.ts';
import { SERVICE_ACCOUNTS } from '../../src/api/builtin.ts';
import type { Condition } from '../../src/api/conditions.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { crdController, killAll, Program } from '../support/program.ts';
import { applyObjects, grant, serviceAccountToken } from '../support/roles.ts';
import type { Manifest } from '../support/roles.ts';
import { until } from '../support/until.ts';

const HOOK = join(import.meta.dirname, '../../hack/import-from-source.ts');
const DNS_RECORDS = join(import.meta.dirname, '../../examples/06-library/dns-records');

/** Short times, so that a takeover takes at most 5 s. */
const LEASE_FLAGS = ['lease-duration=4s', 'renew-deadline=3s', 'retry-period=1s'];

interface Reconciled extends KubernetesObject {
  spec?: object;
  status?: { conditions?: Condition[] };
}

describe('An operator on the library with two replicas', { timeout: 180_000 }, () => {
  let plane: ControlPlane;
  let folder: string;
  const operators: Operator[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'own-operator-'));
    plane = await startControlPlane({ cluster: {}, serviceAccounts: true });
  });
  after(async () => {
    for (const operator of operators) await operator.kill();
    await plane?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Installs the manifests that a command prints. */
  const install = async (name: string, main: string, command?: readonly string[]) => {
    const printed = command ? crdController(command) : run(main, ['manifests']);
    const { code, stdout, stderr } = await printed.ended();
    assert.equal(code, 0, stderr);
    const manifests = parseAllDocuments(stdout).map((each) => each.toJS() as Manifest);
    await applyObjects(plane.client, manifests);
    const operator = new Operator(plane, name, main, folder);
    operators.push(operator);
    await operator.authenticate();
    return operator;
  };

  describe('that init created', () => {
    const WEBSITES = resourceOf('acme.org', 'v1alpha1', 'Website', 'websites');
    const AT = { namespace: 'default', name: 'website-sample' };
    let operator: Operator;
    let deployment: string;

    before(async () => {
      const project = join(folder, 'website');
      const created = crdController(['init', 'Website', '--group=acme.org', `--dir=${project}`]);
      assert.equal((await created.ended()).code, 0, created.output);
      const main = join(project, 'src/main.ts');
      operator = await install('website-controller', main);
      const sample = readFileSync(join(project, 'samples/website.yaml'), 'utf8');
      await plane.client.create(WEBSITES, parse(sample));
    });

    const available = (replicas: number) =>
      until(`${replicas} replicas are available`, async () => {
        const { status } = await plane.client.get(WEBSITES, AT);
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        return ready?.message === `${replicas} of ${replicas} replicas are available` || undefined;
      });
    const scale = (replicas: number) =>
      plane.client.patch(WEBSITES, AT, { type: 'merge', body: { spec: { replicas } } });

    it('passes its checks, and reconciles with the flags of its Deployment', async () => {
      const { code, stdout } = await operator.run('check', '--leader-elect').ended();
      assert.equal(code, 0, stdout);
      await operator.start('--leader-elect-step-down');
      await operator.start('--leader-elect-step-down');
      await available(2);
      deployment = (await plane.client.get(DEPLOYMENTS, AT)).metadata.uid;
    });

    it('serves metrics to clients that have the role for them', async () => {
      const { client } = plane;
      const account = { namespace: operator.namespace, name: 'scraper' };
      await client.create(SERVICE_ACCOUNTS, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: account,
      });
      const token = await serviceAccountToken(client, account);
      const { metrics } = await operator.leader();
      assert.match(await scrape(metrics), /^401/);
      assert.match(await scrape(metrics, token), /^403/);
      await client.create(CLUSTER_ROLE_BINDINGS, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'scraper' },
        roleRef: {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: 'ClusterRole',
          name: 'website-controller-metrics-reader',
        },
        subjects: [{ kind: 'ServiceAccount', ...account }],
      });
      const text = await until('the role is effective', async () => {
        // Decisions are cached, as in kube-rbac-proxy.
        const other = await serviceAccountToken(client, account);
        const answer = await scrape(metrics, other);
        return answer.startsWith('200') ? answer : undefined;
      });
      assert.match(text, /^leader_election_master_status\{name="website-controller"\} 1$/m);
      assert.match(text, /^controller_runtime_reconcile_total\{controller="website",.*\} [1-9]/m);
    });

    it('shows why an object was synced, and what the process does', async () => {
      const { debug } = await operator.leader();
      const why = await fetch(`http://${debug}/debug/why?key=${AT.namespace}/${AT.name}`);
      assert.match(await why.text(), /"(Website|owned Deployment) default\/website-sample [a-z]+/);
      const { code, stdout } = await operator.run('top', '--once', `--address=${debug}`).ended();
      assert.equal(code, 0);
      assert.match(stdout, /^website-controller .*\n/);
      assert.match(stdout, /^leader for /m);
    });

    it('is taken over when the leader is killed, and creates nothing twice', async () => {
      const killed = await operator.leader();
      killed.program.child.kill('SIGKILL');
      await killed.program.ended();
      await scale(3);
      await available(3);
      const { metadata } = await plane.client.get(DEPLOYMENTS, AT);
      assert.equal(metadata.uid, deployment);
    });

    // Before the restart: a kube-apiserver rejects requests until it has read the roles.
    it('sent no request that its role forbids', () => operator.assertPermitted());

    it('stands by while the API server is down, and leads again after its restart', async (context) => {
      const { processes } = plane;
      if (!processes) return context.skip('the API server is in this process');
      const { program } = await operator.leader();
      await processes.crash('kube-apiserver');
      await program.printed(/"Stopped the controllers; standing by"/);
      await processes.restart('kube-apiserver');
      await scale(1);
      await available(1);
      assert.equal(program.child.exitCode, null);
    });

    it('check names a missing permission', async () => {
      const { client } = plane;
      await client.delete(CLUSTER_ROLE_BINDINGS, { name: 'website-controller-website' });
      const stdout = await until('the role is not effective', async () => {
        const checked = await operator.run('check', '--leader-elect').ended();
        return checked.code === 1 ? checked.stdout : undefined;
      });
      assert.match(
        stdout,
        /permissions of website +FAILED +cannot list, watch websites of acme\.org/,
      );
      assert.match(stdout, /permissions of events +ok/);
      await operator.kill();
    });
  });

  describe('that calls an external service', () => {
    const RECORDS = resourceOf('example.com', 'v1', 'DnsRecord', 'dnsrecords');
    const AT = { namespace: 'default', name: 'www' };
    let service: RecordServer;
    let operator: Operator;

    before(async () => {
      const crds = join(DNS_RECORDS, 'crds');
      const flags = ['generate', 'manifests', crds, '--name=dns-record-operator'];
      operator = await install('dns-record-operator', join(DNS_RECORDS, 'main.ts'), flags);
      // The generated role permits reading and the status. The finalizer needs more.
      await grant(plane.client, 'dns-record-operator-finalizer', {
        user: `system:serviceaccount:${operator.namespace}:${operator.name}`,
        rules: [{ apiGroups: ['example.com'], resources: ['dnsrecords'], verbs: ['patch'] }],
      });
      service = new RecordServer();
      const flag = `--service=${await service.listen()}`;
      await operator.start(flag);
      await operator.start(flag);
    });
    after(() => service?.close());

    it('creates its record once', async () => {
      await plane.client.create(RECORDS, {
        apiVersion: 'example.com/v1',
        kind: 'DnsRecord',
        metadata: AT,
        spec: { hostname: 'www.example.com', values: ['192.0.2.1'] },
      });
      await until('the record is stored', async () => service.records.size === 1 || undefined);
    });

    it('deletes its record once, also if the service fails and the leader is killed', async () => {
      service.isBroken = true;
      await plane.client.delete(RECORDS, AT);
      await until('the service was called', async () => service.failed > 0 || undefined);
      const killed = await operator.leader();
      killed.program.child.kill('SIGKILL');
      const { failed } = service;
      await until('the other replica calls', async () => service.failed > failed || undefined);
      service.isBroken = false;
      await until('the object is deleted', async () => {
        try {
          await plane.client.get(RECORDS, AT);
        } catch (error) {
          return isApiError(error, 'notFound') || undefined;
        }
        return undefined;
      });
      assert.deepEqual(service.writes, ['PUT', 'DELETE']);
      assert.equal(service.records.size, 0);
      operator.assertPermitted();
    });
  });
});

/** A process of an operator, with the addresses of its metrics and debug pages. */
interface Replica {
  readonly name: string;
  readonly program: Program;
  readonly metrics: string;
  readonly debug: string;
}

/** Two replicas of an installed program, with the token of its ServiceAccount. */
class Operator {
  readonly name: string;
  readonly namespace: string;
  readonly #plane: ControlPlane;
  readonly #main: string;
  readonly #kubeconfig: string;
  readonly #replicas: Replica[] = [];

  constructor(plane: ControlPlane, name: string, main: string, folder: string) {
    this.name = name;
    this.namespace = `${name}-system`;
    this.#plane = plane;
    this.#main = main;
    this.#kubeconfig = join(folder, `${name}.kubeconfig`);
  }

  /** Writes the kubeconfig of the ServiceAccount. */
  async authenticate(): Promise<void> {
    const { namespace, name } = this;
    const kubeconfig = parse(readFileSync(this.#plane.kubeconfigPath, 'utf8'));
    const token = await serviceAccountToken(this.#plane.client, { namespace, name });
    kubeconfig.users[0].user = { token };
    kubeconfig.contexts[0].context.namespace = namespace;
    writeFileSync(this.#kubeconfig, JSON.stringify(kubeconfig), { mode: 0o600 });
  }

  /** Runs a command of the program. */
  run(...args: readonly string[]): Program {
    return run(this.#main, args, { KUBECONFIG: this.#kubeconfig });
  }

  /** Starts a replica with the flags of the Deployment, with short times of the Lease. */
  async start(...flags: readonly string[]): Promise<void> {
    const { name: deployment, namespace } = this;
    const at = { namespace, name: deployment };
    const { spec } = await this.#plane.client.get(DEPLOYMENTS, at);
    const args = spec?.template.spec?.containers[0]?.args ?? [];
    // All replicas run on this machine, where each port exists once.
    const ports = await freePorts(3);
    const addresses = new Map(
      ['health-probe', 'metrics', 'debug'].map((each, index) => [
        `--${each}-bind-address`,
        `127.0.0.1:${ports[index]}`,
      ]),
    );
    // The debug pages are off by default.
    const own = [...args, '--debug-bind-address=0'].map((arg) => {
      const [flag = ''] = arg.split('=');
      const address = addresses.get(flag);
      return address === undefined ? arg : `${flag}=${address}`;
    });
    const name = `replica-${this.#replicas.length}`;
    const terms = LEASE_FLAGS.map((flag) => `--leader-elect-${flag}`);
    const environment = { KUBECONFIG: this.#kubeconfig, POD_NAME: name };
    const program = run(this.#main, [...own, ...terms, ...flags], environment);
    const address = (flag: string) => addresses.get(`--${flag}-bind-address`) ?? '';
    this.#replicas.push({ name, program, metrics: address('metrics'), debug: address('debug') });
    await program.printed(/"Listening"/);
  }

  /** Waits for a running leader. */
  leader(): Promise<Replica> {
    const { namespace, name } = this;
    return until('a replica leads', async () => {
      const { spec } = await this.#plane.client.get(LEASES, { namespace, name });
      return this.#replicas.find(
        (each) => spec?.holderIdentity?.startsWith(`${each.name}_`) && isRunning(each.program),
      );
    });
  }

  assertPermitted(): void {
    const lines = this.#replicas.flatMap(({ program }) => program.stderr.split('\n'));
    assert.deepEqual(
      lines.filter((line) => /forbidden|permission is missing/.test(line)),
      [],
    );
  }

  kill(): Promise<void> {
    return killAll(this.#replicas.map(({ program }) => program));
  }
}

/** An external service with records. */
class RecordServer {
  readonly records = new Map<string, string>();
  /** Methods of the requests that changed a record. */
  readonly writes: string[] = [];
  isBroken = false;
  /** Number of requests that failed. */
  failed = 0;
  readonly #server = createServer(({ method = '', url = '' }, response) => {
    response.statusCode = this.isBroken ? 503 : 200;
    if (this.isBroken) this.failed += 1;
    else response.statusCode = this.#answer(method, url);
    response.end(this.records.get(url));
  });

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(method: string, url: string): number {
    if (method === 'GET') return this.records.has(url) ? 200 : 404;
    this.writes.push(method);
    if (method === 'PUT') this.records.set(url, '{}');
    else this.records.delete(url);
    return 200;
  }
}

function isRunning({ child }: Program): boolean {
  return child.exitCode === null && child.signalCode === null && !child.killed;
}

/** Runs a program that imports the library as its users do. */
function run(main: string, args: readonly string[], environment = {}): Program {
  return new Program(process.execPath, ['--import', HOOK, main, ...args], {
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...environment,
  });
}

function resourceOf(
  group: string,
  version: string,
  kind: string,
  plural: string,
): Resource<Reconciled> {
  return { group, version, kind, plural, namespaced: true };
}

/** Returns the status code and the text of /metrics. */
async function scrape(address: string, token?: string): Promise<string> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const [response] = await once(
    request(`https://${address}/metrics`, { headers, rejectUnauthorized: false }).end(),
    'response',
  );
  return `${response.statusCode}\n${(await Array.fromAsync(response)).join('')}`;
}
