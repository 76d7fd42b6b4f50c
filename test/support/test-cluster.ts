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
import { daemon } from '../../src/cli/daemon.ts';
import type { DaemonConfig } from '../../src/cli/daemon.ts';
import type { LeadershipDeps } from '../../src/cli/leadership.ts';
import type { Client } from '../../src/client/client.ts';
import type { Clock } from '../../src/util/clock.ts';
import { recordingLogger } from './recording-logger.ts';
import type { LogLine } from './recording-logger.ts';
import { WireRules } from './wire-rules.ts';

export const NAME = 'test-count';

/** What changes in every story. */
const ALWAYS: readonly Resource[] = [PODS, EVENTS];

/** What a daemon of a story runs on, unless the story says otherwise. */
export const DAEMON_CONFIG: DaemonConfig = {
  controllers: ['count'],
  namespaces: [],
  concurrentSyncs: new Map(),
  podCountEvents: true,
  resyncPeriodMs: 0,
  leaderElection: undefined,
  gracefulShutdownTimeoutMs: 30_000,
  healthProbeBindAddress: undefined,
  metricsBindAddress: undefined,
};

/**
 * Where a story takes place: an API server, the controllers of a cluster, and daemons that come and
 * go. Stories are told in these words and hold wherever it is.
 */
export abstract class TestCluster {
  abstract readonly client: Client;
  /** What every request of a daemon must comply with; checked when the world ends. */
  readonly wire = new WireRules();
  /** Where the story's objects live. */
  abstract readonly namespace: string;
  /** Hours may pass in no time. */
  abstract readonly isVirtual: boolean;
  /** What daemons log, all of it. */
  readonly lines: LogLine[] = [];
  readonly #ends: (() => Promise<void>)[] = [];
  /** Kinds that the story is about. */
  readonly #kinds = new Set<Resource>(ALWAYS);

  /** Lets `ms` milliseconds pass. */
  abstract pass(ms: number): Promise<void>;
  /** Milliseconds since some time. */
  abstract elapsedMs(): number;

  /** Milliseconds since the epoch. */
  now(): number {
    return this.clock.now();
  }

  /** How long nothing must happen for all to be quiet. */
  protected abstract readonly quietMs: number;
  protected abstract readonly clock: Clock;
  /** Of daemons that are given no other. */
  protected abstract readonly daemonClient: Client;
  protected abstract readonly random: () => number;

  /** Stops everything that was started, the latest first; rejects if a request broke a rule. */
  async end(): Promise<void> {
    for (const stop of this.#ends.splice(0).toReversed()) await stop();
    this.wire.assertKept();
  }

  get at(): ObjectName {
    return { namespace: this.namespace, name: NAME };
  }

  /**
   * Starts a daemon; the returned function stops it as SIGTERM would and resolves once it has ended.
   */
  startDaemon(
    config: Partial<DaemonConfig> = {},
    client: Client = this.daemonClient,
    leadership?: LeadershipDeps,
  ) {
    const { log } = recordingLogger(this.lines);
    const deps = { client, clock: this.clock, log, random: this.random, host: 'test', leadership };
    const whole = daemon({ ...deps, freeze: true }, { ...DAEMON_CONFIG, ...config });
    return this.start((signal) => whole.run(signal));
  }

  /** Installs the CRD that crds/ has of `resource`, whose objects have children of other kinds. */
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

  /** `Reason message` of each event of the component, sorted. */
  async events(component: string = 'count-controller'): Promise<string[]> {
    const { items } = await this.client.list(EVENTS, { namespace: this.namespace });
    return items
      .filter(({ source }) => source?.component === component)
      .map(describeEvent)
      .toSorted();
  }

  /** What daemons logged as errors; each failed sync by itself, also if it had no line of its own. */
  errors(): string[] {
    return this.lines.flatMap(({ level, message, fields, error = fields['err'] }) => {
      const isOfSync = message.startsWith('Error syncing');
      const isFailure = isOfSync ? !('times' in fields) : level === 'error';
      return isFailure ? [`${message}: ${error instanceof Error ? error.message : ''}`] : [];
    });
  }

  /** Lets time pass, a little at a time, until `condition` holds. */
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

  /** Lets time pass until nothing in the namespace changes any more. */
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

  /** Runs something until the returned function is called, or the world ends. */
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

/** What crds/ has of `resource`, read once; a copy. */
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
