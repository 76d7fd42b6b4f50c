import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { CustomResourceDefinition, Event, Pod } from '../../src/api/builtin.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS } from '../../src/api/builtin.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { groupResourceOf } from '../../src/api/resource.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { ObjectName } from '../../src/api/object-key.ts';
import type { Draft } from '../../src/api/object.ts';
import { managerOptions } from '../../src/cli/commands/run.ts';
import type { ManagerConfig, ProcessOptions } from '../../src/cli/commands/run.ts';
import type { Client } from '../../src/client/client.ts';
import type { GivenElection } from '../../src/manager/coordination.ts';
import type { Manager } from '../../src/manager/manager.ts';
import { controllerManager } from '../../src/manager/run-controllers.ts';
import type { Clock } from '../../src/util/clock.ts';
import { recordingLogger } from './recording-logger.ts';
import type { LogLine } from './recording-logger.ts';
import { WireRules } from './wire-rules.ts';
import { BUILDERS, PROGRAM } from './own-program.ts';

export const NAME = 'test-count';

/** Name of the object in every story. */
const ALWAYS: readonly Resource[] = [PODS, EVENTS];

/** Default configuration of the daemons in stories. */
export const DAEMON_CONFIG: ManagerConfig = {
  controllers: ['count'],
  namespaces: [],
  concurrentSyncs: new Map(),
  flags: { 'pod-count-events': true },
  labelSelector: '',
  features: { WatchListClient: true },
  eventApiVersion: 'v1',
  resyncPeriodMs: 0,
  leaderElection: undefined,
  gracefulShutdownTimeoutMs: 30_000,
  healthProbeBindAddress: undefined,
  metricsBindAddress: undefined,
  serving: {
    isMetricsSecure: true,
    certificate: undefined,
    minVersion: 'TLSv1.2',
    ciphers: undefined,
    http2: false,
  },
};

/** Returns the program of this package as its command `run` builds it. */
export function newDaemon(
  options: Omit<ProcessOptions, 'builders'>,
  config: Partial<ManagerConfig> = {},
): Manager {
  const whole = { ...DAEMON_CONFIG, ...config };
  return controllerManager(managerOptions(PROGRAM, whole, { ...options, builders: BUILDERS }));
}

/**
 * A cluster for end-to-end tests: an API server, cluster controllers, and daemons that tests start and stop.
 * The tests run unchanged on every implementation.
 */
export abstract class TestCluster {
  abstract readonly client: Client;
  /** Rules for the requests of daemons, checked at the end. */
  readonly wire = new WireRules();
  /** Namespace of the test. */
  abstract readonly namespace: string;
  /** Whether time is virtual. */
  abstract readonly isVirtual: boolean;
  /** All log lines of daemons. */
  readonly lines: LogLine[] = [];
  readonly #ends: (() => Promise<void>)[] = [];
  /** Resources of the test. */
  readonly #kinds = new Set<Resource>(ALWAYS);

  /** Advances or waits `ms` milliseconds. */
  abstract pass(ms: number): Promise<void>;
  /** Milliseconds since an arbitrary origin. */
  abstract elapsedMs(): number;

  /** Milliseconds since the epoch. */
  now(): number {
    return this.clock.now();
  }

  /** Time without changes after which the cluster is settled, in milliseconds. */
  protected abstract readonly quietMs: number;
  protected abstract readonly clock: Clock;
  /** Default client of daemons. */
  protected abstract readonly daemonClient: Client;
  protected abstract readonly random: () => number;

  /** Stops everything in reverse order. Rejects if a request violated a rule. */
  async end(): Promise<void> {
    for (const stop of this.#ends.splice(0).toReversed()) await stop();
    this.wire.assertKept();
  }

  get at(): ObjectName {
    return { namespace: this.namespace, name: NAME };
  }

  /** Starts a daemon. Returns a function that stops it like SIGTERM and resolves after its end. */
  startDaemon(
    config: Partial<ManagerConfig> = {},
    client: Client = this.daemonClient,
    leaderElection?: GivenElection,
  ) {
    const { log } = recordingLogger(this.lines);
    const { clock, random } = this;
    const whole = newDaemon(
      { client, clock, log, random, host: 'test', leaderElection, freeze: true },
      config,
    );
    return this.start((signal) => whole.run(signal));
  }

  /** Installs the CRD of `resource`, whose objects own objects of other kinds. */
  async installCrd(resource: Resource = COUNTS, ...children: readonly Resource[]): Promise<void> {
    for (const kind of [resource, ...children]) this.#kinds.add(kind);
    await this.client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(resource));
  }

  async applyCount(spec: Partial<Count['spec']> = {}, name: string = NAME): Promise<void> {
    await this.client.create(COUNTS, countDraft(this.namespace, spec, name));
  }

  async patchCount(spec: Partial<Count['spec']>): Promise<void> {
    await this.client.patch(COUNTS, this.at, { type: 'merge', body: { spec } });
  }

  count(): Promise<Count> {
    return this.client.get(COUNTS, this.at);
  }

  async pods(): Promise<Pod[]> {
    return (await this.client.list(PODS, { namespace: this.namespace })).items;
  }

  pod(ordinal: number): Promise<Pod> {
    return this.client.get(PODS, this.podAt(ordinal));
  }

  podAt(ordinal: number): ObjectName {
    return { namespace: this.namespace, name: `${NAME}-${ordinal}` };
  }

  async podNames(): Promise<string[]> {
    return (await this.pods()).map(({ metadata }) => metadata.name).toSorted();
  }

  /** Returns the events of a component as `Reason message`, sorted. */
  async events(component: string = 'count-controller'): Promise<string[]> {
    const { items } = await this.client.list(EVENTS, { namespace: this.namespace });
    return items
      .filter(({ source }) => source?.component === component)
      .map(describeEvent)
      .toSorted();
  }

  /** Returns the errors that daemons logged, including each failed sync whose line was suppressed. */
  errors(): string[] {
    return this.lines.flatMap(({ level, message, fields, error = fields['err'] }) => {
      const isOfSync = message.startsWith('Error syncing');
      const isFailure = isOfSync ? !('times' in fields) : level === 'error';
      return isFailure ? [`${message}: ${error instanceof Error ? error.message : ''}`] : [];
    });
  }

  /** Advances time in small steps until `condition` is true. */
  async until(
    what: string,
    condition: () => Promise<boolean>,
    { withinMs = 60_000, stepMs = 20 } = {},
  ): Promise<void> {
    const deadline = this.elapsedMs() + withinMs;
    while (!(await condition())) {
      if (this.elapsedMs() >= deadline) {
        throw new Error(`Not within ${withinMs} ms: ${what}\n${this.errors().join('\n')}`);
      }
      await this.pass(stepMs);
    }
  }

  async untilReady(count: number): Promise<void> {
    await this.until(`${count} Pods ready`, async () => {
      const { metadata, status } = await this.count();
      return (
        status?.observedGeneration === metadata.generation &&
        status?.readyReplicas === count &&
        (status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ??
          false) &&
        (await this.pods()).length === count
      );
    });
  }

  /** Advances time until nothing in the namespace changes. */
  async settle(): Promise<void> {
    const versions = async (resource: Resource) => {
      const { items } = await this.client.list(resource, { namespace: this.namespace });
      return items.map(({ metadata }) => metadata.resourceVersion).join();
    };
    const state = async () => (await Promise.all([...this.#kinds].map(versions))).join(' ');
    for (let before: string | undefined, now = await state(); now !== before; now = await state()) {
      before = now;
      await this.pass(this.quietMs);
    }
  }

  /** Runs a component until the returned function is called or the test ends. */
  protected start(run: (signal: AbortSignal) => Promise<void>): () => Promise<void> {
    const stop = new AbortController();
    const life = { ended: false };
    const running = run(stop.signal).finally(() => (life.ended = true));
    const end = async () => {
      stop.abort();
      const deadline = this.elapsedMs() + 60_000;
      while (!life.ended && this.elapsedMs() < deadline) await this.pass(20);
      await running;
    };
    this.#ends.push(end);
    return end;
  }

  protected onEnd(end: () => Promise<void>): void {
    this.#ends.push(end);
  }
}

export function countCrd(): Draft<CustomResourceDefinition> {
  return crdOf(COUNTS);
}

const crds = new Map<string, Draft<CustomResourceDefinition>>();

/** Returns a copy of the CRD of `resource` in crds/. */
export function crdOf(resource: Resource): Draft<CustomResourceDefinition> {
  const name = groupResourceOf(resource);
  let crd = crds.get(name);
  if (!crd) {
    const file = join(import.meta.dirname, `../../crds/${name}.yaml`);
    crd = parse(readFileSync(file, 'utf8')) as Draft<CustomResourceDefinition>;
    crds.set(name, crd);
  }
  return structuredClone(crd);
}

export function countDraft(
  namespace: string,
  spec: Partial<Count['spec']> = {},
  name: string = NAME,
): Draft<Count> {
  return {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: { name, namespace },
    spec: { name: 'nginx', count: 3, ...spec },
  };
}

function describeEvent(event: Event): string {
  return `${event.reason} ${event.message}`;
}
