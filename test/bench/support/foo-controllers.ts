import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  daemonFromBundle,
  daemonFromSource,
  goProgram,
  nodeProgram,
  rustProgram,
} from './programs.ts';
import type { Program } from './programs.ts';
import { inParallel, readKubeconfig, ServerApi } from './server-api.ts';

/** A controller that brings Foos to a Deployment, an event and a status. */
export interface FooController {
  readonly program: () => Promise<Program>;
  readonly args: readonly string[];
  /** Name of the flag that sets the number of concurrent syncs. */
  readonly workers: string;
}

/** The baseline comes first. Its workers are ten unless set. */
export const CONTROLLERS: Readonly<Record<string, FooController>> = {
  bare: {
    program: async () => nodeProgram('clients/bare-controller.ts'),
    args: [],
    workers: 'workers',
  },
  ours: {
    program: daemonFromBundle,
    args: ['--controllers=foo'],
    workers: 'concurrent-foo-syncs',
  },
  'ours-recorded': {
    program: daemonFromBundle,
    args: ['--controllers=foo', `--record=${join(tmpdir(), 'bench-recording.ndjson')}`],
    workers: 'concurrent-foo-syncs',
  },
  'ours-source': {
    program: async () => daemonFromSource,
    args: ['--controllers=foo'],
    workers: 'concurrent-foo-syncs',
  },
  'client-go': { program: () => goProgram('controller'), args: [], workers: 'workers' },
  'kube-rs': { program: () => rustProgram('controller'), args: [], workers: 'workers' },
};

const NAMESPACE = 'bench';
export const FOOS = `/apis/samplecontroller.k8s.io/v1alpha1/namespaces/${NAMESPACE}/foos`;
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const EVENTS = `/api/v1/namespaces/${NAMESPACE}/events`;

/** Concurrent requests that create Foos. */
const WIDTH = 20;

interface Listed {
  readonly items: readonly {
    readonly metadata: {
      readonly uid: string;
      readonly generation: number;
      readonly ownerReferences?: readonly { readonly uid: string }[];
    };
    readonly status?: {
      readonly observedGeneration?: number;
      readonly conditions?: readonly object[];
    };
    readonly involvedObject?: { readonly uid: string };
  }[];
}

/** An API server with Foos in one namespace. */
export class FooServer {
  readonly kubeconfig: string;
  readonly #api: ServerApi;

  private constructor(kubeconfig: string) {
    this.kubeconfig = kubeconfig;
    this.#api = new ServerApi(readKubeconfig(kubeconfig), WIDTH);
  }

  /** Resolves when the CustomResourceDefinition is served. */
  static async install(kubeconfig: string): Promise<FooServer> {
    const server = new FooServer(kubeconfig);
    const api = server.#api;
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
    await api.request('POST', '/api/v1/namespaces', namespace);
    await api.install('foos.samplecontroller.k8s.io.yaml', FOOS);
    return server;
  }

  async clear(): Promise<void> {
    for (const path of [FOOS, DEPLOYMENTS, EVENTS]) await this.#api.request('DELETE', path);
  }

  async createFoos(count: number): Promise<void> {
    await inParallel(count, WIDTH, (number) =>
      this.#api.request('POST', FOOS, {
        apiVersion: 'samplecontroller.k8s.io/v1alpha1',
        kind: 'Foo',
        metadata: { name: `foo-${number}` },
        spec: { deploymentName: `foo-${number}`, replicas: 1 },
      }),
    );
  }

  deployments(): Promise<number> {
    return this.#api.count(DEPLOYMENTS);
  }

  events(): Promise<number> {
    return this.#api.count(EVENTS);
  }

  /** Returns the number of Foos with a complete status. */
  async statuses(): Promise<number> {
    return (await this.#list(FOOS)).filter(
      ({ metadata, status }) =>
        status?.observedGeneration === metadata.generation && (status.conditions?.length ?? 0) > 0,
    ).length;
  }

  /** Returns the number of Foos with an event. @throws {Error} if a Foo has no Deployment of its own */
  async verify(objects: number): Promise<number> {
    const foos = new Set((await this.#list(FOOS)).map(({ metadata }) => metadata.uid));
    const deployments = await this.#list(DEPLOYMENTS);
    const owners = deployments.map(({ metadata }) => metadata.ownerReferences?.[0]?.uid);
    const owned = new Set(owners.filter((uid) => uid !== undefined && foos.has(uid)));
    if (foos.size !== objects || owned.size !== objects || owners.length !== objects) {
      throw new Error(`${foos.size} Foos own ${owned.size} of ${owners.length} Deployments`);
    }
    const events = await this.#list(EVENTS);
    const uids = events.map(({ involvedObject }) => involvedObject?.uid ?? '');
    return new Set(uids.filter((uid) => foos.has(uid))).size;
  }

  async #list(path: string): Promise<Listed['items']> {
    return (await this.#api.request<Listed>('GET', path)).items;
  }

  async clearLeases(): Promise<void> {
    await this.#api.request('DELETE', LEASES);
  }

  /** Returns the holders of the Leases of shards. */
  async leaseHolders(shards: number): Promise<string[]> {
    const { items } = await this.#api.request<{
      readonly items: readonly {
        readonly metadata: { readonly name: string };
        readonly spec: { readonly holderIdentity?: string };
      }[];
    }>('GET', LEASES);
    return items
      .filter(({ metadata }) => new RegExp(`-\\d+(-of-${shards})?$`).test(metadata.name))
      .flatMap(({ spec }) => spec.holderIdentity || []);
  }

  close(): Promise<void> {
    return this.#api.close();
  }
}
