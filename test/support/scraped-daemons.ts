import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { DEPLOYMENTS } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { ManagerConfig } from '../../src/cli/commands/run.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { WriteFence } from '../../src/client/write-fence.ts';
import { DEFAULT_CONCURRENCY } from '../../src/manager/controller-options.ts';
import { collectProcessMetrics } from '../../src/metrics/process-metrics.ts';
import { buildMetrics, createRegistry, expose } from '../../src/metrics/registry.ts';
import { metricsOf } from '../../src/metrics/metrics.ts';
import type { Registry } from '../../src/metrics/registry.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import type { Runnable } from '../../src/util/runnable.ts';
import { parseExposition } from './exposition.ts';
import type { Sample } from './exposition.ts';
import { recordingLogger } from './recording-logger.ts';
import { Simulation } from './simulation.ts';
import { newDaemon } from './test-cluster.ts';
import { CONTROLLERS } from './own-program.ts';
import { isAbruptStop } from '../../src/util/runnable.ts';

/** Labels that Prometheus adds to the samples of a target. */
export interface TargetLabels {
  readonly job: string;
  readonly namespace: string;
  readonly pod: string;
  readonly instance: string;
}

/** A scrape of one target. */
export interface Scrape {
  readonly target: TargetLabels;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  /** Text format of Prometheus, or undefined if the target did not respond. */
  readonly text: string | undefined;
}

export interface ScrapedOptions {
  readonly config?: Partial<ManagerConfig>;
  /** Middleware between the daemon and the server. */
  readonly around?: (handler: HttpHandler) => HttpHandler;
  /** @default no limit */
  readonly qps?: number;
  /**
   * Timeout of a request in milliseconds, 0 for none.
   * @default 30_000
   */
  readonly requestTimeoutMs?: number;
  /**
   * Namespace of the scrape target.
   * @default 'crd-controller-system'
   */
  readonly namespace?: string;
  /**
   * Namespace of its Lease.
   * @default 'default'
   */
  readonly leaseNamespace?: string;
}

/** The default scrape interval of Prometheus, in milliseconds. */
const SCRAPE_INTERVAL_MS = 30_000;

/** Time until an ended container is restarted, in milliseconds. */
const RESTART_MS = 10_000;

/** User agent of the scrapes. */
export const DAEMON = 'crd-controller';

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** The example manifests of all controllers. */
const OBJECTS: readonly (readonly [Resource, string])[] = [
  [COUNTS, '01-count/count.yaml'],
  [WEB_APPS, '02-webapp/webapp.yaml'],
  [ATS, '03-at/at.yaml'],
  [FOOS, '04-foo/foo.yaml'],
  [DEPLOYMENTS, '05-pod-count/web.yaml'],
];

/**
 * A simulation in which daemons run all controllers with leader election and the metrics of the program, and
 * are scraped as by Prometheus.
 */
export class ScrapedDaemons extends Simulation {
  readonly scrapes: Scrape[] = [];
  readonly #targets: { readonly labels: TargetLabels; expose(): Promise<string | undefined> }[] =
    [];

  async installAll(): Promise<void> {
    for (const kind of [COUNTS, WEB_APPS, ATS, FOOS]) await this.installCrd(kind);
  }

  /** Applies the examples of all controllers. */
  async applyExamples(): Promise<void> {
    for (const [resource, file] of OBJECTS) {
      const draft = parse(readFileSync(join(EXAMPLES, file), 'utf8')) as Draft<KubernetesObject>;
      const { namespace } = this;
      await this.client.create(resource, { ...draft, metadata: { ...draft.metadata, namespace } });
    }
  }

  /**
   * Starts a daemon as a scrape target. Restarts it after a failure, as a kubelet does. Returns a function
   * that stops it.
   */
  startScraped(pod: string, options: ScrapedOptions = {}): () => Promise<void> {
    const namespace = options.namespace ?? 'crd-controller-system';
    const labels = { job: 'crd-controller', namespace, pod, instance: `${pod}:8080` };
    let registry: Registry | undefined;
    const ask = async () => (registry ? (await expose(registry)).text : undefined);
    this.#targets.push({ labels, expose: ask });
    return this.start(async (signal) => {
      for (let life = 1; !signal.aborted; life++) {
        registry = createRegistry();
        collectProcessMetrics(registry);
        try {
          await this.#daemon(`${pod}-${life}`, registry, options).run(signal);
        } catch (error) {
          if (!isAbruptStop(error, 'leadershipLost')) throw error;
        } finally {
          registry = undefined;
        }
        await this.clock.sleep(RESTART_MS, signal);
      }
    });
  }

  #daemon(identity: string, registry: Registry, options: ScrapedOptions): Runnable {
    const { config, around = (handler) => handler, qps, requestTimeoutMs = 30_000 } = options;
    const { leaseNamespace = 'default' } = options;
    const { clock, random } = this;
    const whole = {
      controllers: CONTROLLERS,
      leaderElection: LEADER_ELECTION,
      ...config,
    };
    const metrics = metricsOf(registry);
    buildMetrics(registry, { version: '0.0.0' });
    const handler = around(this.server.handler);
    const limit = qps === undefined ? undefined : { qps, burst: qps };
    const limited = limit ? this.wire.limited(handler, limit, clock) : handler;
    const fence = new WriteFence();
    const common = { server: 'https://simulated', clock, metrics: metrics.restClient };
    const client = new HttpClient({
      ...common,
      handler: whole.leaderElection ? fence.wrap(limited) : limited,
      userAgent: DAEMON,
      requestTimeoutMs,
      ...limit,
    });
    const leases = new HttpClient({
      ...common,
      handler,
      userAgent: `${DAEMON}/leader-election`,
      requestTimeoutMs: 5000,
    });
    return newDaemon(
      {
        client,
        clock,
        log: recordingLogger(this.lines).log,
        metrics,
        expose: () => expose(registry),
        random,
        host: identity,
        leaderElection: { client: leases, fence, identity, namespace: leaseNamespace },
        freeze: true,
      },
      whole,
    );
  }

  /** Removes a target from service discovery. */
  forget(pod: string): void {
    const at = this.#targets.findIndex(({ labels }) => labels.pod === pod);
    if (at >= 0) this.#targets.splice(at, 1);
  }

  /** Advances time by `ms` milliseconds and scrapes all targets at their interval. */
  async passScraped(ms: number): Promise<void> {
    for (const untilMs = this.elapsedMs() + ms; this.elapsedMs() < untilMs;) {
      await this.pass(SCRAPE_INTERVAL_MS);
      await this.scrape();
    }
  }

  /** Scrapes all targets. Rejects if a duration exceeds the age of the simulation. */
  async scrape(): Promise<void> {
    for (const target of this.#targets) {
      const text = await target.expose();
      this.scrapes.push({ target: target.labels, atMs: this.now(), text });
      if (text !== undefined) assertSeconds(parseExposition(text), this.elapsedMs() / 1000);
    }
  }
}

/** Metrics that use the clock of the machine, or are points in time or future times. */
const NO_DURATION = /^(nodejs|process)_|_timestamp_seconds$|_ttl_seconds$|_start_time_seconds$/;

/** Detects durations that are not in seconds, which are a thousand times too long. */
function assertSeconds(samples: readonly Sample[], elapsedSeconds: number): void {
  const counts = new Map(samples.map((sample) => [idOf(sample), sample.value]));
  for (const sample of samples) {
    const { name, value } = sample;
    if (NO_DURATION.test(name) || !/_seconds(_sum)?$/.test(name)) continue;
    const times = counts.get(idOf({ ...sample, name: name.replace(/_sum$/, '_count') })) ?? 1;
    // The sum over all keys in progress.
    const keys = name === 'workqueue_unfinished_work_seconds' ? DEFAULT_CONCURRENCY : 1;
    const longest = elapsedSeconds * (name.endsWith('_sum') ? times : keys);
    assert.ok(value <= longest, `${idOf(sample)} is ${value}: more than ${longest} seconds`);
  }
}

function idOf({ name, labels }: Sample): string {
  return `${name}${JSON.stringify(labels)}`;
}

const LEADER_ELECTION = {
  name: 'crd-controller',
  namespace: undefined,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};
