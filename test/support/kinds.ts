import { DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Condition } from '../../src/api/conditions.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { TestCluster } from './test-cluster.ts';

/** One of our kinds, for scenarios that apply to all of them. */
export interface Kind {
  readonly controller: string;
  /** Component in its events. */
  readonly component: string;
  readonly resource: Resource;
  /** Owned objects of an object with name `x`. */
  readonly owned: readonly { readonly resource: Resource; readonly name: string }[];
  readonly spec: object;
}

export const KINDS: readonly Kind[] = [
  {
    controller: 'count',
    component: 'count-controller',
    resource: COUNTS,
    owned: [{ resource: PODS, name: 'x-1' }],
    spec: { name: 'nginx', count: 2 },
  },
  {
    controller: 'webapp',
    component: 'webapp-controller',
    resource: WEB_APPS,
    owned: [
      { resource: DEPLOYMENTS, name: 'x' },
      { resource: SERVICES, name: 'x' },
    ],
    spec: { version: '1.27', replicas: 1 },
  },
  {
    controller: 'foo',
    component: 'sample-controller',
    resource: FOOS,
    owned: [{ resource: DEPLOYMENTS, name: 'x-site' }],
    spec: { deploymentName: 'x-site', replicas: 1 },
  },
  {
    controller: 'at',
    component: 'at-controller',
    resource: ATS,
    owned: [{ resource: PODS, name: 'x-pod' }],
    spec: { schedule: '2025-01-01T00:00:00Z', command: 'echo YAY' },
  },
];

export type Subject = KubernetesObject & {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly phase?: string;
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
};

/** The object `x` of a kind in a test cluster. */
export class SampleObject {
  readonly kind: Kind;
  readonly #cluster: TestCluster;

  constructor(cluster: TestCluster, kind: Kind) {
    this.kind = kind;
    this.#cluster = cluster;
  }

  get at(): { readonly namespace: string; readonly name: string } {
    return { namespace: this.#cluster.namespace, name: 'x' };
  }

  async install(): Promise<void> {
    const { resource, owned } = this.kind;
    await this.#cluster.installCrd(resource, ...owned.map((one) => one.resource));
  }

  create(spec: object = {}): Promise<KubernetesObject> {
    const { resource } = this.kind;
    const draft = draftOf(resource, this.at, { ...this.kind.spec, ...spec });
    return this.#cluster.client.create(resource, draft);
  }

  get(): Promise<Subject> {
    return this.#cluster.client.get<Subject>(this.kind.resource, this.at);
  }

  patch(spec: object): Promise<KubernetesObject> {
    const patch = { type: 'merge', body: { spec } } as const;
    return this.#cluster.client.patch(this.kind.resource, this.at, patch);
  }

  delete(): Promise<void> {
    return this.#cluster.client.delete(this.kind.resource, this.at);
  }

  async has(type: string): Promise<boolean> {
    const { status, metadata } = await this.get();
    return (
      status?.observedGeneration === metadata.generation &&
      (status?.conditions ?? []).some((one) => one.type === type && one.status === 'True')
    );
  }

  /** Resolves when the object is Ready with its current spec, or the command of the At has run. */
  async isDone(): Promise<boolean> {
    if (this.kind.resource === ATS) return (await this.get()).status?.phase === 'DONE';
    return this.has('Ready');
  }

  untilDone(withinMs: number = 60_000): Promise<void> {
    return this.#cluster.until(`${this.kind.resource.kind} x is done`, () => this.isDone(), {
      withinMs,
    });
  }
}

/** Returns a draft of `resource` without owners. */
export function draftOf(
  { group, version, kind }: Resource,
  at: { readonly namespace: string; readonly name: string },
  spec: object | undefined,
): Draft<KubernetesObject> {
  const apiVersion = group ? `${group}/${version}` : version;
  const draft = { apiVersion, kind, metadata: { ...at }, spec };
  return draft;
}

const CONTAINERS = [{ name: 'theirs', image: 'theirs' }];
const LABELS = { app: 'theirs' };

const SPECS = new Map<Resource, object>([
  [PODS, { containers: CONTAINERS }],
  [SERVICES, { ports: [{ port: 8080 }], selector: LABELS }],
  [
    DEPLOYMENTS,
    {
      replicas: 0,
      selector: { matchLabels: LABELS },
      template: { metadata: { labels: LABELS }, spec: { containers: CONTAINERS } },
    },
  ],
]);

/**
 * Creates an object without owners that has the name of an owned object.
 *
 * @param metadata metadata besides name and namespace
 * @param spec by default another spec than that of the owned object
 */
export function createNamesake(
  cluster: TestCluster,
  resource: Resource,
  name: string,
  { metadata, spec = SPECS.get(resource) }: { metadata?: object; spec?: object | undefined } = {},
): Promise<KubernetesObject> {
  const at = { namespace: cluster.namespace, name };
  return cluster.client.create(resource, draftOf(resource, { ...at, ...metadata }, spec));
}
