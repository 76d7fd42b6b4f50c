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

/** How often somebody orders while it is measured how long orders wait. */
const ORDER_EVERY_MS = 150;

/** The kinds that our controllers are for. */
const KINDS = new Set([COUNTS, WEB_APPS, FOOS, ATS].map(({ kind }) => kind));

/** How long objects waited for their first child, in milliseconds. */
export interface Waits {
  readonly longestMs: number;
  readonly orders: number;
}

/**
 * A namespace in which objects of every kind are ordered, and somebody who looks, over the API
 * alone, when their children come and what becomes of them.
 */
export class Shop {
  /** By owner and name of a child: the uids that it had. */
  readonly children = new Map<string, Set<string>>();
  /** Children that went. */
  readonly deleted: string[] = [];
  readonly namespace: string;
  readonly #client: Client;
  readonly #informers: InformerSet;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  /** By uid of the owner: when its first child was seen. */
  readonly #servedMs = new Map<string, number>();
  #orders = 0;

  static async open(client: Client, namespace: string): Promise<Shop> {
    await client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    const shop = new Shop(client, namespace);
    await shop.#informers.synced;
    return shop;
  }

  private constructor(client: Client, namespace: string) {
    this.#client = client;
    this.namespace = namespace;
    this.#informers = new InformerSet(client);
    for (const resource of [PODS, DEPLOYMENTS, SERVICES]) {
      this.#informers.for<KubernetesObject>(resource, { namespace }).addHandler({
        onAdd: (child) => this.#came(child),
        onUpdate: (_, child) => this.#came(child),
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

  /** Orders one of every kind, and waits until each has all it should have. */
  async stock(): Promise<void> {
    const past = new Date(0).toISOString();
    const objects = await Promise.all([
      this.#order(COUNTS, 'count', { name: 'nginx', count: 3 }),
      this.#order(WEB_APPS, 'site', { version: '1', replicas: 2, image: 'nginx:1' }),
      this.#order(FOOS, 'foo', { deploymentName: 'foo', replicas: 1 }),
      this.#order(ATS, 'past', { schedule: past, command: 'echo YAY' }),
    ]);
    for (const object of objects) await this.#untilReady(object);
  }

  /**
   * Orders one of every kind, among them an At that is due in a second.
   *
   * @returns how long each waited for its first child, by kind, in milliseconds
   */
  async orderAll(name: string): Promise<Record<string, number>> {
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

  /** Orders a Count every so often while `work` is done. */
  async keepOrdering(work: () => Promise<void>): Promise<Waits> {
    const waits: Promise<number>[] = [];
    const over = new AbortController();
    const ordering = (async () => {
      while (!over.signal.aborted) {
        waits.push(this.#wait(COUNTS, `order-${++this.#orders}`, { name: 'nginx', count: 1 }));
        await new Promise((resolve) => setTimeout(resolve, ORDER_EVERY_MS));
      }
    })();
    try {
      await work();
    } finally {
      over.abort();
      await ordering;
    }
    const all = await Promise.all(waits);
    return { longestMs: Math.max(...all), orders: all.length };
  }

  /** @param dueInMs after how long it is to have a child at the earliest: that is no waiting */
  async #wait(resource: Resource, name: string, spec: object, dueInMs = 0): Promise<number> {
    const beforeMs = performance.now();
    const { metadata } = await this.#order(resource, name, spec);
    const servedMs = await until(`${name} has a child`, () =>
      Promise.resolve(this.#servedMs.get(metadata.uid)),
    );
    return Math.round(servedMs - beforeMs - dueInMs);
  }

  #order(resource: Resource, name: string, spec: object): Promise<KubernetesObject> {
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

  #came(child: DeepReadonly<KubernetesObject>): void {
    const name = nameOf(child);
    const owner = controllerOf(child);
    if (name === undefined || !owner) return;
    const uids = this.children.get(name) ?? new Set();
    this.children.set(name, uids.add(child.metadata.uid));
    if (!this.#servedMs.has(owner.uid)) this.#servedMs.set(owner.uid, performance.now());
  }
}

/** What a child is called, whatever uid it has; undefined: it is none of ours. */
function nameOf(child: DeepReadonly<KubernetesObject>): string | undefined {
  const owner = controllerOf(child);
  if (!owner || !KINDS.has(owner.kind)) return undefined;
  return `${owner.kind} ${owner.name} ${owner.uid}: ${child.kind} ${child.metadata.name}`;
}
