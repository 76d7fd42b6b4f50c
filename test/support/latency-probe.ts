import assert from 'node:assert/strict';
import { DEPLOYMENTS, NAMESPACES, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { DeepReadonly, KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { apiVersionOf } from '../../src/api/resource.ts';
import { InformerSet } from '../../src/cache/informer-set.ts';
import type { Client } from '../../src/client/client.ts';
import { until } from './until.ts';

/** Time between the creation of two objects during a measurement, in milliseconds. */
const CREATE_EVERY_MS = 150;

/** The kinds of our controllers. */
const KINDS = new Set([COUNTS, WEB_APPS, FOOS, ATS].map(({ kind }) => kind));

/** Result of a measurement. */
export interface Latencies {
  /** Longest time from the creation of an object to that of its first child, in milliseconds. */
  readonly longestMs: number;
  /** Number of created objects. */
  readonly created: number;
}

/**
 * Creates objects of every kind in a namespace and measures over the API how long they wait for their first
 * child. Records all children and their deletions.
 */
export class LatencyProbe {
  /** Uids of children by owner and name. */
  readonly children = new Map<string, Set<string>>();
  /** Deleted children. */
  readonly deleted: string[] = [];
  readonly namespace: string;
  readonly #client: Client;
  readonly #informers: InformerSet;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  /** Time of the first child by the uid of its owner. */
  readonly #firstChildMs = new Map<string, number>();
  #created = 0;

  static async open(client: Client, namespace: string): Promise<LatencyProbe> {
    await client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    const probe = new LatencyProbe(client, namespace);
    await probe.#informers.synced;
    return probe;
  }

  private constructor(client: Client, namespace: string) {
    this.#client = client;
    this.namespace = namespace;
    this.#informers = new InformerSet(client);
    for (const resource of [PODS, DEPLOYMENTS, SERVICES]) {
      this.#informers.for<KubernetesObject>(resource, { namespace }).addHandler({
        onAdd: (child) => this.#onObject(child),
        onUpdate: (_, child) => this.#onObject(child),
        onDelete: (child) => {
          const name = nameOf(child);
          if (name !== undefined) this.deleted.push(name);
        },
      });
    }
    this.#watching = this.#informers.run(this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  /** Creates an object of every kind and waits until all are ready. */
  async createInitial(): Promise<void> {
    const past = new Date(0).toISOString();
    const objects = await Promise.all([
      this.#create(COUNTS, 'count', { name: 'nginx', count: 3 }),
      this.#create(WEB_APPS, 'site', { version: '1', replicas: 2, image: 'nginx:1' }),
      this.#create(FOOS, 'foo', { deploymentName: 'foo', replicas: 1 }),
      this.#create(ATS, 'past', { schedule: past, command: 'echo YAY' }),
    ]);
    for (const object of objects) await this.#untilReady(object);
  }

  /**
   * Creates an object of every kind, with an At that is due in a second.
   *
   * @returns the time until the first child by kind, in milliseconds
   */
  async createAll(name: string): Promise<Record<string, number>> {
    const inMs = 1000;
    const schedule = new Date(Date.now() + inMs).toISOString();
    const [count, webApp, foo, at] = await Promise.all([
      this.#wait(COUNTS, `count-${name}`, { name: 'nginx', count: 2 }),
      this.#wait(WEB_APPS, `site-${name}`, { version: '1', replicas: 1, image: 'nginx:1' }),
      this.#wait(FOOS, `foo-${name}`, { deploymentName: `foo-${name}`, replicas: 1 }),
      this.#wait(ATS, `soon-${name}`, { schedule, command: 'echo YAY' }, inMs),
    ]);
    return { count, webApp, foo, at };
  }

  /** Creates Counts continuously during `work` and measures the time until their first child. */
  async measureDuring(work: () => Promise<void>): Promise<Latencies> {
    const waits: Promise<number>[] = [];
    const over = new AbortController();
    const creating = (async () => {
      while (!over.signal.aborted) {
        waits.push(this.#wait(COUNTS, `count-${++this.#created}`, { name: 'nginx', count: 1 }));
        await new Promise((resolve) => setTimeout(resolve, CREATE_EVERY_MS));
      }
    })();
    try {
      await work();
    } finally {
      over.abort();
      await creating;
    }
    const all = await Promise.all(waits);
    return { longestMs: Math.max(...all), created: all.length };
  }

  /** @param dueInMs time before which no child is expected, which is not part of the result */
  async #wait(resource: Resource, name: string, spec: object, dueInMs = 0): Promise<number> {
    const beforeMs = performance.now();
    const { metadata } = await this.#create(resource, name, spec);
    const firstChildMs = await until(`${name} has a child`, () =>
      Promise.resolve(this.#firstChildMs.get(metadata.uid)),
    );
    return Math.round(firstChildMs - beforeMs - dueInMs);
  }

  #create(resource: Resource, name: string, spec: object): Promise<KubernetesObject> {
    const object = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { namespace: this.namespace, name },
      spec,
    };
    return this.#client.create(resource, object);
  }

  async #untilReady({ kind, metadata }: KubernetesObject): Promise<void> {
    const resource = [COUNTS, WEB_APPS, FOOS, ATS].find((each) => each.kind === kind);
    assert.ok(resource, kind);
    await until(`${metadata.name} is ready`, async () => {
      const { status } = (await this.#client.get<KubernetesObject>(resource, metadata)) as {
        readonly status?: { readonly conditions?: readonly { type: string; status: string }[] };
      };
      const { conditions = [] } = status ?? {};
      return (
        conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True') || undefined
      );
    });
  }

  #onObject(child: DeepReadonly<KubernetesObject>): void {
    const name = nameOf(child);
    const owner = controllerOf(child);
    if (name === undefined || !owner) return;
    const uids = this.children.get(name) ?? new Set();
    this.children.set(name, uids.add(child.metadata.uid));
    if (!this.#firstChildMs.has(owner.uid)) this.#firstChildMs.set(owner.uid, performance.now());
  }
}

/** Returns owner and name of a child, or undefined if its owner is not of our kinds. */
function nameOf(child: DeepReadonly<KubernetesObject>): string | undefined {
  const owner = controllerOf(child);
  if (!owner || !KINDS.has(owner.kind)) return undefined;
  return `${owner.kind} ${owner.name} ${owner.uid}: ${child.kind} ${child.metadata.name}`;
}
