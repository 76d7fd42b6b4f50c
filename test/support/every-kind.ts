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

/** If a cache lost its server twice in a minute, its next retry may take 60 s: a backoff of 30 s plus jitter. */
const TIMEOUT = { withinMs: 150_000 };

type ObjectWithConditions = KubernetesObject & {
  readonly status?: {
    readonly phase?: string;
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
};

/** Objects of all our kinds in all their stable states. */
export class EveryKind {
  readonly #cluster: TestCluster;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  async install(): Promise<void> {
    for (const resource of OWN) await this.#cluster.installCrd(resource, ...CHILDREN);
  }

  /** @param prefix prefix of the names, different for each call */
  async create(prefix: string): Promise<void> {
    const create = (resource: Resource, name: string, spec: object) => {
      const { group, version, kind } = resource;
      const metadata = { namespace: this.#cluster.namespace, name: `${prefix}-${name}` };
      const draft = { apiVersion: `${group}/${version}`, kind, metadata, spec };
      return this.#cluster.client.create(resource, draft);
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

  /** Resolves when all objects are in their stable state. */
  async untilSettled(): Promise<void> {
    const areSettled = async () => {
      const lists = await Promise.all(OWN.map((resource) => this.#list(resource)));
      return (lists.flat() as readonly ObjectWithConditions[]).every(isSettled);
    };
    await this.#cluster.until('all objects are in their stable state', areSettled, TIMEOUT);
    await this.#cluster.settle();
  }

  /** Returns uid and resourceVersion of all objects by name, and the count of events. */
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
      assert.ok(!state.has(key), `listed twice: ${key}`);
      state.set(key, `${metadata.uid} ${count}`);
    }
    return state;
  }

  /** Deletes the objects and waits until they and their owned objects are gone. */
  async removeAll(): Promise<void> {
    for (const resource of OWN) {
      for (const { metadata } of await this.#list(resource)) {
        await this.#cluster.client.delete(resource, metadata);
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
      await this.#cluster.until('all objects are deleted', isGone, TIMEOUT);
    } catch (cause) {
      throw new Error(`There is still: ${left.join(', ')}`, { cause });
    }
  }

  /** The owned objects. */
  async children(): Promise<readonly KubernetesObject[]> {
    const lists = await Promise.all(CHILDREN.map((resource) => this.#list(resource)));
    // The server's own Service.
    return lists.flat().filter(({ metadata }) => metadata.name !== 'kubernetes');
  }

  /** The Pod of the At with the long-running command. */
  async images(prefix: string): Promise<string[]> {
    const pods = await this.#cluster.pods();
    return pods
      .filter(({ metadata }) => metadata.name.startsWith(`${prefix}-running`))
      .flatMap(({ spec }) => spec?.containers.map(({ image }) => image ?? '') ?? []);
  }

  /** Returns an empty list for a kind that is not installed. */
  async #list<T extends KubernetesObject>(resource: Resource<T>): Promise<readonly T[]> {
    const { namespace } = this.#cluster;
    try {
      return (await this.#cluster.client.list(resource, { namespace })).items;
    } catch (error) {
      if (isApiError(error, 'notFound')) return [];
      throw error;
    }
  }
}

function isSettled({ kind, metadata, status }: ObjectWithConditions): boolean {
  if (kind === 'At') return isAtSettled(metadata.name, status as At['status']);
  return (
    status?.observedGeneration === metadata.generation &&
    (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')
  );
}

/** The name states the result. */
function isAtSettled(name: string, status: At['status']): boolean {
  const phase = status?.phase;
  if (name.endsWith('-running')) return phase === 'RUNNING';
  if (name.endsWith('-waiting')) return phase === 'PENDING';
  if (name.endsWith('-malformed')) return status?.conditions !== undefined;
  return phase === 'DONE';
}
