import assert from 'node:assert/strict';
import { DEPLOYMENTS, EVENTS, NODES, PODS } from '../../../src/api/builtin.ts';
import type { Deployment, Event, Pod } from '../../../src/api/builtin.ts';
import type { Draft, KubernetesObject } from '../../../src/api/object.ts';
import { collectionPath } from '../../../src/api/resource.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { Client } from '../../../src/client/client.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Cluster } from '../../../src/cluster/cluster.ts';
import type { ClusterOptions } from '../../../src/cluster/cluster.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { CLUSTER_AGENT, WireRules } from '../../support/wire-rules.ts';

export const NAMESPACE = 'default';

/** A server with cluster controllers, in virtual time. */
export class ClusterBench {
  readonly clock = new FakeClock();
  readonly server: ApiServer = new ApiServer({
    clock: this.clock,
    kubelets: (node) => this.#cluster?.kubelet(node),
  });
  readonly client = new HttpClient({
    handler: this.server.handler,
    server: 'https://test',
    clock: this.clock,
  });
  /** Rules for the requests of the cluster controllers, checked at the end. */
  readonly #wire = new WireRules();
  readonly #stop = new AbortController();
  #cluster: Cluster | undefined;
  #running: Promise<void> = Promise.resolve();

  async start(options: ClusterOptions = {}, given?: Client): Promise<void> {
    const { clock } = this;
    const client = given ?? this.#clientOver(this.server.handler);
    this.#cluster = new Cluster({ client, clock, log: silentLogger }, options);
    this.#running = this.#cluster.run(this.#stop.signal);
    await this.pass(1000);
  }

  /** Returns a client whose lists and watches of all namespaces contain no objects of `resource`. */
  blindTo(resource: Resource): Client {
    const path = collectionPath(resource);
    return this.#clientOver((request) => {
      const isHidden = request.path.startsWith(`${path}?`);
      const selector = isHidden ? '&labelSelector=none' : '';
      return this.server.handler({ ...request, path: request.path + selector });
    });
  }

  #clientOver(handler: HttpHandler): Client {
    const { clock } = this;
    const changing = this.#wire.changing(handler, () => this.server.revision);
    const checked = this.#wire.around(changing);
    const options = { server: 'https://test', clock, userAgent: CLUSTER_AGENT };
    return this.#wire.follow(new HttpClient({ handler: checked, ...options }));
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.pass(1000);
    await this.#running;
    assert.equal(this.clock.pending, 0, 'timers are left');
    this.#wire.assertKept();
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  create<T extends KubernetesObject>(resource: Resource<T>, name: string, rest: object = {}) {
    const { metadata = {}, ...fields } = rest as { metadata?: object };
    return this.client.create(resource, {
      apiVersion: resource.group ? `${resource.group}/${resource.version}` : resource.version,
      kind: resource.kind,
      metadata: {
        name,
        ...(resource.namespaced && { namespace: NAMESPACE }),
        ...metadata,
      },
      ...fields,
    } as Draft<T>);
  }

  get<T extends KubernetesObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.client.get(resource, {
      name,
      ...(resource.namespaced && { namespace: NAMESPACE }),
    });
  }

  async list<T extends KubernetesObject>(resource: Resource<T>): Promise<T[]> {
    const options = resource.namespaced ? { namespace: NAMESPACE } : {};
    return (await this.client.list(resource, options)).items;
  }

  async merge<T extends KubernetesObject>(
    resource: Resource<T>,
    name: string,
    body: object,
    subresource?: string,
  ): Promise<T> {
    const at = { name, ...(resource.namespaced && { namespace: NAMESPACE }) };
    const options = subresource ? { subresource } : {};
    const patch = { type: 'merge', body } as const;
    return this.client.patch<KubernetesObject>(resource, at, patch, options) as Promise<T>;
  }

  createPod(name: string, spec: object = {}, metadata: object = {}): Promise<Pod> {
    const containers = [{ name: 'app', image: 'nginx:1' }];
    return this.create(PODS, name, { metadata, spec: { containers, ...spec } });
  }

  createDeployment(name: string, replicas: number): Promise<Deployment> {
    const labels = { app: name };
    return this.create(DEPLOYMENTS, name, {
      spec: { replicas, selector: { matchLabels: labels }, template: templateOf(labels) },
    });
  }

  /** Adds a node without a kubelet. */
  async createNode(name: string, rest: object = {}): Promise<void> {
    const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
    const conditions = [{ type: 'Ready', status: 'True' }];
    await this.create(NODES, name, { status: { allocatable, conditions }, ...rest });
  }

  async log(pod: string, query: string = ''): Promise<string> {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod}/log${query}`;
    const { body } = await this.server.handler({ method: 'GET', path, headers: {} });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  /** Returns the events about an object as `Reason message`, in the order of their first occurrence. */
  async events(name: string): Promise<string[]> {
    const events = (await this.list<Event>(EVENTS)).filter(
      ({ involvedObject }) => involvedObject.name === name,
    );
    return events
      .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .map(({ reason, message }) => `${reason} ${message}`);
  }
}

export function templateOf(labels: Readonly<Record<string, string>>, spec: object = {}) {
  return {
    metadata: { labels },
    spec: { containers: [{ name: 'app', image: 'nginx:1' }], ...spec },
  };
}
