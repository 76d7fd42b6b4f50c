import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { freePorts } from '../../hack/envtest/real-control-plane.ts';
import { CONFIG_MAPS, ENDPOINT_SLICES, NAMESPACES } from '../../src/api/builtin.ts';
import type { ConfigMap } from '../../src/api/builtin.ts';
import { createRegistry } from '../../src/metrics/registry.ts';
import { webhookMetrics } from '../../src/metrics/webhook-metrics.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { Validator } from '../../src/webhook/declaration.ts';
import { Webhooks } from '../../src/webhook/webhooks.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { killAll, Program } from '../support/program.ts';
import { applyObjects } from '../support/roles.ts';
import type { Manifest } from '../support/roles.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { ServedWebhooks } from '../support/served-webhooks.ts';
import { needsReal, skipBefore } from '../support/skip.ts';
import { until } from '../support/until.ts';

/**
 * Two processes of the tutorial's operator behind its Service, called by a kube-apiserver under load, while one is
 * killed and started again, and one hangs. The Service has their addresses, as kubelet and the endpoints controller would set them.
 */

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLE = join(ROOT, 'examples/06-library/cronjob');
const NAME = 'cronjob-operator';
const NAMESPACE = `${NAME}-system`;
const CRON_JOBS = {
  group: 'batch.tutorial.kubebuilder.io',
  version: 'v2',
  kind: 'CronJob',
  plural: 'cronjobs',
  namespaced: true,
};
/** Endpoints cannot be loopback addresses. */
const ADDRESS = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
/** Requests that wait for a response at the same time. */
const CONCURRENCY = 4;
/** Time after which a kube-apiserver fails a call of an admission webhook. */
const TIMEOUT_SECONDS = 2;
/** Time between two readiness probes, in milliseconds. */
const PROBE_MS = 100;
/** Time after which a readiness probe fails, in milliseconds, as kubelet's default. */
const PROBE_TIMEOUT_MS = 1000;
/** Time in which a kube-apiserver observes a change of endpoints, and answers the requests before, in milliseconds. */
const WATCH_MS = 2000;

const skip = needsReal('a kube-apiserver') || (ADDRESS === undefined && 'no network address');

describe('Replicas of a webhook under load', { skip, timeout: 90_000 }, () => {
  let plane: ControlPlane;
  let folder: string;
  let replicas: Replica[] = [];
  const stop = new AbortController();
  const running: Promise<void>[] = [];
  /** Failed requests, with the time of each. */
  const failures: Failure[] = [];
  let admitted = 0;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'webhook-replicas-'));
    plane = await startControlPlane({ apiServerFlags: ['--enable-aggregator-routing=true'] });
    const generate = ['generate', 'manifests', `${EXAMPLE}/crds`, `${EXAMPLE}/webhooks.ts`];
    const printed = run(join(ROOT, 'src/cli/main.ts'), [...generate, `--name=${NAME}`]);
    const { code, stdout, stderr } = await printed.ended();
    assert.equal(code, 0, stderr);
    const manifests = parseAllDocuments(stdout).map((each) => each.toJS() as Manifest);
    for (const { webhooks = [] } of manifests as readonly WebhookConfiguration[]) {
      for (const webhook of webhooks) webhook.timeoutSeconds = TIMEOUT_SECONDS;
    }
    await applyObjects(plane.client, manifests);
    const kubeconfig = parse(readFileSync(plane.kubeconfigPath, 'utf8'));
    kubeconfig.contexts[0].context.namespace = NAMESPACE;
    writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig), { mode: 0o600 });
    replicas = await Promise.all([start('a'), start('b')]);
    running.push(probeForever());
    await until('both replicas are ready', async () => replicas.every(isReady) || undefined);
    await until('the webhooks are called', () =>
      create().then(
        () => true,
        () => undefined,
      ),
    );
    for (let at = 0; at < CONCURRENCY; at++) running.push(createForever());
  });

  after(async () => {
    stop.abort();
    await Promise.all(running);
    await killAll(replicas.map(({ program }) => program));
    await plane?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(name: string): Promise<Replica> {
    const [webhook = 0, health = 0] = await freePorts(2);
    const flags = [
      ...['lease-duration=4s', 'renew-deadline=3s', 'retry-period=1s'].map(
        (flag) => `--leader-elect-${flag}`,
      ),
      '--leader-elect',
      '--metrics-bind-address=0',
      `--webhook-bind-address=${ADDRESS}:${webhook}`,
      `--health-probe-bind-address=127.0.0.1:${health}`,
    ];
    const environment = { KUBECONFIG: join(folder, 'kubeconfig'), POD_NAME: name };
    const program = run(join(EXAMPLE, 'main.ts'), flags, environment);
    const slice = `${NAME}-webhook-${name}`;
    return { name, program, health, webhook, slice, ready: undefined };
  }

  /** Sets the endpoints of replicas that are ready. */
  async function probeForever(): Promise<void> {
    while (!stop.signal.aborted) {
      for (const replica of replicas) {
        const url = `http://127.0.0.1:${replica.health}/readyz`;
        const ready = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).then(
          ({ ok }) => ok,
          () => false,
        );
        if (replica.ready === ready) continue;
        await publish(replica, ready);
        replica.ready = ready;
      }
      await systemClock.sleep(PROBE_MS);
    }
  }

  async function publish({ slice, webhook }: Replica, ready: boolean): Promise<void> {
    const at = { namespace: NAMESPACE, name: slice };
    const body = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...at, labels: { 'kubernetes.io/service-name': `${NAME}-webhook` } },
      addressType: 'IPv4' as const,
      endpoints: [{ addresses: [ADDRESS ?? ''], conditions: { ready } }],
      ports: [{ name: 'https', port: webhook, protocol: 'TCP' as const }],
    };
    await plane.client.patch(
      ENDPOINT_SLICES,
      at,
      { type: 'apply', body, force: true },
      { fieldManager: 'kubelet' },
    );
  }

  async function create(): Promise<void> {
    const object = parse(readFileSync(join(EXAMPLE, 'sample-v2.yaml'), 'utf8'));
    const metadata = { namespace: 'default', generateName: 'load-' };
    await plane.client.create(CRON_JOBS, { ...object, metadata }, { dryRun: true });
  }

  async function createForever(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await create();
        admitted++;
      } catch (error) {
        failures.push({ atMs: performance.now(), message: String(error) });
      }
      await systemClock.sleep(5);
    }
  }

  const admit = (count: number) => {
    const enough = admitted + count;
    return until('requests', async () => admitted >= enough || undefined);
  };

  it('fail only requests to a killed one, until its endpoint is removed', async () => {
    await admit(10);
    assert.equal(failures.length, 0, failures[0]?.message);
    const [killed] = replicas;
    assert.ok(killed);
    killed.program.child.kill('SIGKILL');
    await until('its endpoint is removed', async () => killed.ready === false || undefined);
    const removedMs = performance.now();
    await admit(20);
    for (const { atMs, message } of failures) {
      assert.ok(atMs < removedMs + WATCH_MS, `${atMs - removedMs} ms later: ${message}`);
      assert.match(message, /failed calling webhook|conversion webhook .+ failed/);
      assert.doesNotMatch(message, /denied the request|deadline exceeded|Client\.Timeout/);
    }
  });

  it('fail no request when another one starts', async () => {
    const before = failures.length;
    const started = await start('c');
    replicas.splice(0, 1, started);
    await until('it is ready', async () => started.ready || undefined);
    await admit(20);
    assert.deepEqual(failures.slice(before), []);
  });

  // Older servers send further requests to the replica that hangs.
  it(
    'fail only requests that one has received when it hangs, at their timeouts',
    skipBefore(37),
    async () => {
      const before = failures.length;
      const [, hung] = replicas;
      assert.ok(hung);
      hung.program.child.kill('SIGSTOP');
      await until('its endpoint is removed', async () => hung.ready === false || undefined);
      // One that converts objects waits for 30 s.
      await admit(20);
      const failed = failures.slice(before).map(({ message }) => message);
      assert.ok(failed.length <= CONCURRENCY, failed.join('\n'));
      for (const message of failed) assert.match(message, /context deadline exceeded|within 30 s/);
    },
  );

  it('time out before the API server does, and delay no other request', async (context) => {
    stop.abort();
    await Promise.all(running);
    const aborted: string[] = [];
    const ended: string[] = [];
    let called = 0;
    let waiting = 0;
    const wait: Validator<ConfigMap> = (_, { name, signal }) =>
      new Promise((resolve) => {
        waiting++;
        signal.addEventListener('abort', () => resolve(void aborted.push(name)), { once: true });
      });
    const matching = (review: string) => ({ objectSelector: { matchLabels: { review } } });
    const webhooks = new Webhooks()
      .validates(CONFIG_MAPS, () => void called++, { name: 'fast', ...matching('fast') })
      .validates(CONFIG_MAPS, wait, { name: 'slow', timeoutSeconds: 2, ...matching('slow') })
      .validates(CONFIG_MAPS, wait, {
        name: 'ignored',
        timeoutSeconds: 2,
        failurePolicy: 'Ignore',
        ...matching('ignored'),
      });
    const { log, lines } = recordingLogger([], 0);
    const registry = createRegistry();
    const metrics = webhookMetrics(registry);
    const served = await ServedWebhooks.start(webhooks, { log, metrics });
    context.after(() => served.close());
    await applyObjects(plane.client, served.objects() as readonly Manifest[]);
    const metadata = { name: 'reviewed' };
    await plane.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    const review = async (name: string) => {
      const labels = { review: name };
      const at = { namespace: metadata.name, generateName: name, name, labels };
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: at };
      try {
        await plane.client.create(CONFIG_MAPS, object, { dryRun: true });
      } finally {
        ended.push(name);
      }
    };
    await until('the webhooks are called', () =>
      review('fast').then(() => called > 0 || undefined),
    );
    ended.length = 0;
    const slow = Promise.allSettled([review('slow'), review('ignored')]);
    await until('they wait', async () => waiting === 2 || undefined);
    const fast = await Promise.all(Array.from({ length: 20 }, () => review('fast')));
    const [rejected, ignored] = await slow;
    const error = String(rejected.status === 'rejected' && rejected.reason);
    // The API server's text for status 504, not that of its own timeout.
    assert.match(error, /unable to return a response in the time allotted/);
    assert.equal(ignored.status, 'fulfilled');
    assert.deepEqual(
      ended.slice(0, 20),
      Array.from(fast, () => 'fast'),
    );
    assert.deepEqual(aborted.toSorted(), ['ignored', 'slow']);
    assert.deepEqual(
      lines.map(({ message, fields }) => `${message} ${String(fields['name'])}`).toSorted(),
      ['Webhook function timed out ignored', 'Webhook function timed out slow'],
    );
    const text = await registry.metrics();
    for (const name of aborted) {
      const total = `requests_total{webhook="/validate--v1-configmap-${name}",code="504"} 1`;
      assert.ok(text.includes(total), text);
    }
  });
});

interface WebhookConfiguration extends Manifest {
  readonly webhooks?: readonly { timeoutSeconds?: number }[];
}

interface Failure {
  readonly atMs: number;
  readonly message: string;
}

interface Replica {
  readonly name: string;
  readonly program: Program;
  readonly webhook: number;
  readonly health: number;
  /** Name of its EndpointSlice. */
  readonly slice: string;
  ready: boolean | undefined;
}

function isReady({ ready }: Replica): boolean {
  return ready === true;
}

/** Runs a program that imports the library as its users do. */
function run(main: string, args: readonly string[], environment = {}): Program {
  const hook = join(ROOT, 'hack/import-from-source.ts');
  return new Program(process.execPath, ['--import', hook, main, ...args], {
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...environment,
  });
}
