import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { equalJson } from '../../../src/api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../../../src/api/object.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { Informer } from '../../../src/cache/informer.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import type { ReflectorOptions } from '../../../src/cache/reflector-options.ts';
import { temporaryKubeconfig } from '../../../src/cli/embedded/kubeconfig-file.ts';
import type { Client } from '../../../src/client/client.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';

/** Number of turns of the event loop without a byte after which the network is idle. */
const QUIET_TURNS = 20;

/** Virtual time between two checks of a condition, in milliseconds. */
const STEP_MS = 250;

/** Step of virtual time without checks, in milliseconds. */
const STRIDE_MS = 1000;

/**
 * An API server, an informer and a faulty network between them, in virtual time. Sockets need real turns of
 * the event loop. Virtual time does not advance until the bytes have arrived, so that only the timeouts of
 * the informer are measured.
 */
export class FaultyNetwork {
  readonly clock = new FakeClock();
  readonly server: ApiServer = new ApiServer({ clock: this.clock });
  /** Client of the test, which does not use the network. */
  readonly owner: Client = new HttpClient({
    handler: this.server.handler,
    server: 'https://test',
    clock: this.clock,
  });
  /** Events that the handler received, in order. */
  readonly received: string[] = [];
  proxy: TcpProxy | undefined;
  #view = new Map<string, string>();
  #informer: Informer | undefined;
  readonly #ends: (() => Promise<void>)[] = [];

  /** Connects over TLS through a proxy. */
  async overNetwork(options: ReflectorOptions = {}): Promise<TcpProxy> {
    const listening = await this.server.listen();
    const proxy = await TcpProxy.start(Number(new URL(listening.url).port));
    this.proxy = proxy;
    const text = JSON.stringify(listening.kubeconfig());
    const file = await temporaryKubeconfig(
      JSON.parse(text.replaceAll(listening.url, `https://127.0.0.1:${proxy.port}`)),
    );
    const config = await loadClusterConfig({ kubeconfig: file.path });
    // Avoids reading the file again, which takes real time that the virtual clock does not wait for.
    const connection = connectCluster({ ...config }, { clock: this.clock });
    this.#ends.push(
      () => file.remove(),
      () => this.server.close(),
      () => proxy.close(),
      () => connection.close(),
    );
    await this.#start(connection.client, options);
    return proxy;
  }

  /** Connects in this process through a handler that may change requests and responses. */
  async overHandler(
    around: (handler: HttpHandler) => HttpHandler,
    options: ReflectorOptions = {},
  ): Promise<void> {
    const handler = around(this.server.handler);
    const client = new HttpClient({ handler, server: 'https://test', clock: this.clock });
    await this.#start(client, options);
  }

  get informer(): Informer {
    assert.ok(this.#informer, 'the informer has started');
    return this.#informer;
  }

  create(name: string): Promise<unknown> {
    return this.owner.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'default', name },
    });
  }

  change(name: string, value: string): Promise<unknown> {
    const body = { metadata: { labels: { value } } };
    return this.owner.patch(CONFIG_MAPS, { namespace: 'default', name }, { type: 'merge', body });
  }

  remove(name: string): Promise<void> {
    return this.owner.delete(CONFIG_MAPS, { namespace: 'default', name });
  }

  /** Reports whether cache and handler are up to date. */
  async isUpToDate(): Promise<boolean> {
    const { items } = await this.owner.list(CONFIG_MAPS, { namespace: 'default' });
    const truth = stateOf(items);
    const cached = stateOf(this.informer.lister.list());
    return equalJson(Object.fromEntries(this.#view), truth) && equalJson(cached, truth);
  }

  /** Advances time until `condition` is true. Returns the elapsed time, or fails after `boundMs`. */
  async until(
    what: string,
    boundMs: number,
    condition: () => boolean | Promise<boolean>,
  ): Promise<number> {
    const from = this.clock.monotonic();
    for (;;) {
      await this.quiet();
      const passedMs = this.clock.monotonic() - from;
      if (await condition()) return passedMs;
      const { phase, reason } = this.informer.progress;
      assert.ok(passedMs < boundMs, `${what}: not within ${boundMs} ms (${phase}: ${reason})`);
      await this.clock.advance(STEP_MS);
    }
  }

  async pass(ms: number): Promise<void> {
    const until = this.clock.monotonic() + ms;
    while (this.clock.monotonic() < until) {
      await this.quiet();
      await this.clock.advance(Math.min(STRIDE_MS, until - this.clock.monotonic()));
    }
    await this.quiet();
  }

  /** Waits until the network is idle. */
  async quiet(): Promise<void> {
    if (!this.proxy) {
      await this.clock.advance(0);
      return;
    }
    await this.clock.advance(0);
    for (let turns = 0, seen = -1; turns < QUIET_TURNS; turns++) {
      if (seen !== this.proxy.activity) turns = 0;
      seen = this.proxy.activity;
      await turn();
    }
  }

  async end(): Promise<void> {
    for (const end of this.#ends.toReversed()) await end();
  }

  async #start(client: Client, options: ReflectorOptions): Promise<void> {
    for (const name of ['a', 'b', 'c']) await this.create(name);
    const source = listerWatcher(client, CONFIG_MAPS, { namespace: 'default' });
    const informer = new Informer<KubernetesObject>(CONFIG_MAPS, source, {
      clock: this.clock,
      random: () => 0.5,
      ...options,
    });
    this.#informer = informer;
    const note = (what: string, { metadata }: DeepReadonly<KubernetesObject>) =>
      this.received.push(`${what} ${metadata.name}`);
    informer.addHandler({
      onAdd: (object) => {
        note('add', object);
        this.#view.set(keyOf(object), object.metadata.resourceVersion);
      },
      onUpdate: (_, object) => {
        note('update', object);
        this.#view.set(keyOf(object), object.metadata.resourceVersion);
      },
      onDelete: (object) => {
        note('delete', object);
        this.#view.delete(keyOf(object));
      },
    });
    const stop = new AbortController();
    const running = informer.run(stop.signal);
    this.#ends.push(async () => {
      stop.abort();
      await running;
    });
  }
}

/** Returns the resourceVersion of each object. */
function stateOf(objects: readonly DeepReadonly<KubernetesObject>[]): Record<string, string> {
  return Object.fromEntries(
    objects.map((object) => [keyOf(object), object.metadata.resourceVersion]),
  );
}
