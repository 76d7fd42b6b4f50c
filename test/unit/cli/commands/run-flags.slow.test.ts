import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CONFIG_MAPS, EVENTS, LEASES } from '../../../../src/api/builtin.ts';
import type { ObjectKey } from '../../../../src/api/object-key.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { run } from '../../../../src/cli/commands/run.ts';
import { normaliseArguments } from '../../../../src/cli/flags/arguments.ts';
import { flagForms, parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import type { ProgramOptions } from '../../../../src/cli/program/program.ts';
import { runConfig } from '../../../../src/cli/program/run-config.ts';
import { runOptions } from '../../../../src/cli/program/run-options.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Controller } from '../../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../../src/manager/run-controllers.ts';
import { done } from '../../../../src/workqueue/outcome.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';
import { until } from '../../../support/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'recording-'));
after(() => rmSync(folder, { recursive: true }));
const RECORDING = join(folder, 'recording.ndjson');

const MAP = { namespace: 'kube-public', name: 'a' };

/** A program that runs with flags. */
class Running {
  readonly server = new ApiServer();
  readonly client = new HttpClient({ handler: this.server.handler, server: 'https://test' });
  readonly #folder = mkdtempSync(join(tmpdir(), 'run-flags-'));
  readonly #recording = recordingLogger();
  readonly #stop = new AbortController();
  readonly kits: ControllerKit[] = [];
  readonly #program: ProgramOptions;
  #ended: Promise<number> | undefined;

  constructor() {
    const build = (name: string) => ({
      resource: CONFIG_MAPS,
      build: (kit: ControllerKit) => {
        this.kits.push(kit);
        const recorder = kit.events.recorder(name);
        const maps = kit.informers.for(CONFIG_MAPS);
        const sync = async (key: ObjectKey) => {
          const map = maps.lister.get(key);
          if (map) recorder.normal(map, 'Seen', 'Seen');
          return done();
        };
        return [new Controller(kit, { name, kind: 'ConfigMap', sync }).for(maps)];
      },
    });
    const controllers = { one: build('one'), other: build('other') };
    this.#program = { name: 'flagged', version: '1.2.3', controllers };
  }

  async start(...argv: readonly string[]): Promise<void> {
    const kubeconfig = join(this.#folder, 'kubeconfig');
    const listening = await this.server.listen();
    writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
    const metadata = { ...MAP, labels: { team: 'a' } };
    await this.client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
    this.server.requests.reset();
    const options = runOptions(this.#program);
    const { flags } = normaliseArguments(
      [`--kubeconfig=${kubeconfig}`, ...argv],
      flagForms(options),
    );
    const { values } = parseFlags(options, flags, { variables: {}, prefix: '' });
    this.#ended = run(this.#program, runConfig(values, this.#program), {
      log: this.#recording.log,
      signal: this.#stop.signal,
      environment: { POD_NAME: 'pod-1' },
      logLevel: undefined,
      debugRoutes: undefined,
    });
    await until('an event is written', async () => (await this.events())[0]);
  }

  get flags(): string[] {
    return Object.keys(runOptions(this.#program));
  }

  async stop(): Promise<number | undefined> {
    this.#stop.abort();
    return this.#ended;
  }

  async end(): Promise<void> {
    await this.stop();
    await this.server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async events() {
    const { items } = await this.client.list(EVENTS);
    return items.filter(({ reason }) => reason === 'Seen');
  }

  lease() {
    return this.client.get(LEASES, { namespace: 'kube-public', name: 'lock' });
  }

  get kit(): ControllerKit {
    assert.ok(this.kits[0]);
    return this.kits[0];
  }

  /** Paths of the program's requests. */
  paths(method: string): string[] {
    return this.server.requests.recent.flatMap((request) =>
      request.method === method && request.userAgent.startsWith('flagged/') ? request.path : [],
    );
  }

  /** Paths of the lists and watches of the cache. */
  cachePaths(): string[] {
    return this.paths('GET').filter((path) => path.includes('/configmaps?'));
  }

  /** Returns the status of a path at the address of a flag, which listens at a port of its choice. */
  async status(host: string, path: string): Promise<number> {
    return (await this.#get(host, path)).status;
  }

  async metrics(): Promise<string> {
    return (await this.#get('127.0.0.4', '/metrics')).text();
  }

  #get(host: string, path: string): Promise<Response> {
    const addresses = this.#recording.lines
      .filter(({ message }) => message === 'Listening')
      .map(({ fields }) => String(fields['address']));
    const address = addresses.find((each) => each.startsWith(`${host}:`));
    assert.ok(address, `${host} is not among ${addresses.join()}`);
    return fetch(`http://${address}${path}`);
  }
}

/** Flags, what they do in the running program, and the expected result. */
const EFFECTS: readonly (readonly [
  flags: string,
  observe: (running: Running) => unknown,
  expected: unknown,
])[] = [
  ['--controllers=one', ({ kits }) => kits.length, 1],
  ['--concurrent-one-syncs=7', ({ kit }) => kit.concurrency, 7],
  ['--resync-period=1h', ({ kit }) => kit.resyncPeriodMs, 3_600_000],
  ['--graceful-shutdown-timeout=8s', ({ kit }) => kit.drainTimeoutMs, 6000],
  [
    '--namespaces=kube-public',
    (running) => running.cachePaths().every((path) => path.includes('/kube-public/')),
    true,
  ],
  [
    '--watch-label-selector=team=a',
    (running) => running.cachePaths().every((path) => path.includes('labelSelector=team%3Da')),
    true,
  ],
  [
    '--feature-gates=WatchListClient=false',
    (running) => running.cachePaths().some((path) => path.includes('sendInitialEvents=true')),
    false,
  ],
  [
    '--event-api-version=events.k8s.io/v1',
    (running) => running.paths('POST').some((path) => path.startsWith('/apis/events.k8s.io/v1/')),
    true,
  ],
  [
    '--leader-elect --leader-elect-resource-name=lock --leader-elect-resource-namespace=kube-public --leader-elect-lease-duration=20s',
    async (running) => (await running.lease()).spec?.leaseDurationSeconds,
    20,
  ],
  [
    '--leader-elect-retry-period=100ms --leader-elect-renew-deadline=5s',
    (running) =>
      within(1500, () => running.paths('PUT').filter((path) => path.includes('/leases/lock'))[3]),
    true,
  ],
  [
    '--kube-api-qps=50 --kube-api-burst=2',
    async (running) => {
      const gets = Array.from({ length: 14 }, () => running.kit.client.get(CONFIG_MAPS, MAP));
      await Promise.all(gets);
      const waited = /^rest_client_rate_limiter_duration_seconds_sum\{.*\} ([\d.]+)$/m;
      return Number(waited.exec(await running.metrics())?.[1]) > 0.1;
    },
    true,
  ],
  [
    '--kube-api-request-timeout=2s',
    async ({ kit, server }) => {
      server.faults.delayNext({ method: 'GET', resource: 'configmaps', name: MAP.name }, 60_000);
      const startMs = performance.now();
      await assert.rejects(kit.client.get(CONFIG_MAPS, MAP));
      return performance.now() - startMs < 20_000;
    },
    true,
  ],
  [
    '--debug-bind-address=127.0.0.1:0',
    (running) => running.status('127.0.0.1', '/debug/queues'),
    200,
  ],
  [
    '--enable-profiling --profiler-address=127.0.0.2:0',
    (running) => running.status('127.0.0.2', '/debug/pprof/heap'),
    200,
  ],
  [
    '--health-probe-bind-address=127.0.0.3:0',
    (running) => running.status('127.0.0.3', '/livez'),
    200,
  ],
  [
    '--metrics-bind-address=127.0.0.4:0 --metrics-secure=false',
    (running) => running.status('127.0.0.4', '/metrics'),
    200,
  ],
  [
    `--record=${RECORDING} --record-redact=configmaps`,
    () =>
      until('the object is recorded', async () =>
        readFileSync(RECORDING, 'utf8')
          .split('\n')
          .find((line) => line.startsWith('{"kind":"set"')),
      ).then((line) => /"name":"a".*"hash"/.test(line)),
    true,
  ],
  // The last one, because it stops the program.
  [
    '--leader-elect-release-on-cancel=false',
    async (running) => {
      assert.equal(await running.stop(), 0);
      return (await running.lease()).spec?.holderIdentity !== '';
    },
    true,
  ],
];

/**
 * Flags that other tests observe: those of the log and of the connection, those that end the program or that exclude
 * another flag, and those of TLS.
 */
const OTHERS =
  `add-dir-header as as-group concurrent-other-syncs config context dry-run enable-http2 help
  kube-api-content-type kubeconfig leader-elect-resource-lock leader-elect-step-down log-json-split-stream
  logging-format master metrics-cert-key metrics-cert-name metrics-cert-path once record-max-size shards skip-headers
  tls-cipher-suites tls-min-version tracing v version vmodule`.split(/\s+/);

function within(ms: number, look: () => unknown): Promise<boolean> {
  const startMs = performance.now();
  return until('the condition', async () => look()).then(() => performance.now() - startMs < ms);
}

describe('A program', () => {
  const running = new Running();
  before(() => running.start(...EFFECTS.flatMap(([flags]) => flags.split(' '))));
  after(() => running.end());

  for (const [flags, observe, expected] of EFFECTS) {
    it(`does what ${flags} says`, async () => {
      assert.deepEqual(await observe(running), expected);
    });
  }

  it('writes its Pod into events', async () => {
    assert.match(JSON.stringify(await running.events()), /pod-1/);
  });

  it('has no other flags', () => {
    const all = EFFECTS.map(([flags]) => flags).join(' ');
    const observed = new Set(Array.from(all.matchAll(/--([-a-z0-9]+)/g), ([, name = '']) => name));
    assert.deepEqual(running.flags.filter((name) => !observed.has(name)).toSorted(), OTHERS);
  });
});
