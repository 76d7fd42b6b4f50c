import assert from 'node:assert/strict';
import { isApiError } from '../../src/api/api-error.ts';
import { DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import type { At } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { TestCluster } from './test-cluster.ts';

const OWN: readonly Resource[] = [COUNTS, WEB_APPS, FOOS, ATS];
const CHILDREN: readonly Resource[] = [PODS, DEPLOYMENTS, REPLICA_SETS, SERVICES];
const PAST = '2025-01-01T00:00:00Z';

/**
 * A cache that lost its server twice in a minute, as in an upgrade on a busy machine, may be a minute
 * away from its next attempt: the ladder of its retries goes up to 30 s, each up to twice as long.
 */
const PATIENCE = { withinMs: 150_000 };

type Judged = KubernetesObject & {
  readonly status?: {
    readonly phase?: string;
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
};

/** Objects of every kind of ours, in every state that lasts. */
export class EveryKind {
  readonly #world: TestCluster;

  constructor(world: TestCluster) {
    this.#world = world;
  }

  async install(): Promise<void> {
    for (const resource of OWN) await this.#world.installCrd(resource, ...CHILDREN);
  }

  /** @param prefix of the names: each call makes objects of their own */
  async create(prefix: string): Promise<void> {
    const create = (resource: Resource, name: string, spec: object) => {
      const { group, version, kind } = resource;
      const metadata = { namespace: this.#world.namespace, name: `${prefix}-${name}` };
      const draft = { apiVersion: `${group}/${version}`, kind, metadata, spec };
      return this.#world.client.create(resource, draft);
    };
    await create(COUNTS, 'count', { name: 'nginx', count: 2 });
    await create(WEB_APPS, 'webapp', { version: '1.27', replicas: 2 });
    await create(FOOS, 'foo', { deploymentName: `${prefix}-site`, replicas: 2 });
    await create(ATS, 'done', { schedule: PAST, command: 'echo YAY' });
    await create(ATS, 'failed', { schedule: PAST, command: 'false' });
    await create(ATS, 'running', { schedule: PAST, command: 'sleep 86400' });
    await create(ATS, 'waiting', { schedule: '2036-01-01T00:00:00Z', command: 'echo YAY' });
    await create(ATS, 'malformed', { schedule: PAST, command: '"' });
  }

  /** Resolves when each of them is as it will stay. */
  async untilSettled(): Promise<void> {
    const areSettled = async () => {
      const lists = await Promise.all(OWN.map((resource) => this.#list(resource)));
      return (lists.flat() as readonly Judged[]).every(isSettled);
    };
    await this.#world.until('all objects are as they can be', areSettled, PATIENCE);
    await this.#world.settle();
  }

  /**
   * What there is, by name: what it is (its uid), and what was last written to it (its
   * resourceVersion); of events, how often they were told.
   */
  async state(): Promise<Map<string, string>> {
    const state = new Map<string, string>();
    for (const resource of [...OWN, ...CHILDREN]) {
      for (const { metadata } of await this.#list(resource)) {
        const { name, uid, resourceVersion } = metadata;
        state.set(`${resource.kind} ${name}`, `${uid} ${resourceVersion}`);
      }
    }
    for (const event of await this.#list(EVENTS)) {
      const { involvedObject, reason, message, count, metadata } = event;
      if (involvedObject.kind === 'Lease') continue;
      const key = `Event ${involvedObject.kind} ${involvedObject.name} ${reason} ${message}`;
      assert.ok(!state.has(key), `told twice: ${key}`);
      state.set(key, `${metadata.uid} ${count}`);
    }
    return state;
  }

  /** Resolves when nothing is left of them, nor of what they had. */
  async removeAll(): Promise<void> {
    for (const resource of OWN) {
      for (const { metadata } of await this.#list(resource)) {
        await this.#world.client.delete(resource, metadata);
      }
    }
    let left: readonly string[] = [];
    const isGone = async () => {
      const own = await Promise.all(OWN.map((resource) => this.#list(resource)));
      const all = [...own.flat(), ...(await this.children())];
      left = all.map(({ kind, metadata: { name, finalizers = [], deletionTimestamp = '' } }) =>
        [kind, name, deletionTimestamp, ...finalizers].join(' '),
      );
      return left.length === 0;
    };
    try {
      await this.#world.until('all is gone', isGone, PATIENCE);
    } catch (cause) {
      throw new Error(`There is still: ${left.join(', ')}`, { cause });
    }
  }

  /** What the objects have. */
  async children(): Promise<readonly KubernetesObject[]> {
    const lists = await Promise.all(CHILDREN.map((resource) => this.#list(resource)));
    return lists.flat();
  }

  /** What the At of this prefix that runs for long is run by. */
  async images(prefix: string): Promise<string[]> {
    const pods = await this.#world.pods();
    return pods
      .filter(({ metadata }) => metadata.name.startsWith(`${prefix}-running`))
      .flatMap(({ spec }) => spec?.containers.map(({ image }) => image ?? '') ?? []);
  }

  /** Of a kind that nobody has installed there are none. */
  async #list<T extends KubernetesObject>(resource: Resource<T>): Promise<readonly T[]> {
    const { namespace } = this.#world;
    try {
      return (await this.#world.client.list(resource, { namespace })).items;
    } catch (error) {
      if (isApiError(error, 'notFound')) return [];
      throw error;
    }
  }
}

function isSettled({ kind, metadata, status }: Judged): boolean {
  if (kind === 'At') return isAtSettled(metadata.name, status as At['status']);
  return (
    status?.observedGeneration === metadata.generation &&
    (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')
  );
}

/** Its name says what becomes of it. */
function isAtSettled(name: string, status: At['status']): boolean {
  const phase = status?.phase;
  if (name.endsWith('-running')) return phase === 'RUNNING';
  if (name.endsWith('-waiting')) return phase === 'PENDING';
  if (name.endsWith('-malformed')) return status?.conditions !== undefined;
  return phase === 'DONE';
}
