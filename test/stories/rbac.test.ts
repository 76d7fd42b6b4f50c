import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { isApiError } from '../../src/api/api-error.ts';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
  ROLE_BINDINGS,
  ROLES,
  SERVICE_ACCOUNTS,
  SERVICES,
} from '../../src/api/builtin.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { RequestInfo } from '../../src/apiserver/request/request-info.ts';
import type { Client } from '../../src/client/client.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { WriteFence } from '../../src/client/write-fence.ts';
import { releasedSpec } from '../../src/leaderelection/lease-state.ts';
import { LABEL } from '../../src/controllers/pod-count/controller.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { Access } from '../support/access.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import {
  allows,
  Demand,
  manifestsOf,
  permissionsOf,
  rulesOf,
  serviceAccountToken,
} from '../support/roles.ts';
import type { Manifest, PolicyRule } from '../support/roles.ts';
import { Simulation } from '../support/simulation.ts';
import { until } from '../support/until.ts';
import { TlsCluster } from '../support/tls-cluster.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { CONTROLLERS, PROGRAM } from '../support/own-program.ts';

/**
 * The roles in hack/deploy/rbac grant exactly what the controllers request.
 *
 * Each controller passes through its possible states, as one of several replicas, with the permissions
 * of its roles. A real server authorizes the token of a ServiceAccount. The embedded server has an
 * authorizer in front of it that reads the same roles. The test then compares the requests with the
 * granted permissions.
 */

/** Granted without a request of ours: admission checks it when a blocking owner reference is created. */
const CHECKED_BY_ADMISSION = /^update \S+\/finalizers$/;

/** Paths that every authenticated user may read: the ClusterRole system:public-info-viewer. */
const OPEN_TO_ALL = ['/version'];

const SYSTEM = 'crd-controller-system';
const EVENTS_ROLE = manifestsOf('rbac/events/events.yaml');
const LEASE_ROLE = manifestsOf('rbac/identity/leader-election.yaml');

const IDENTITY = 'replica';

const WATCHES_LEASE = 'watch coordination.k8s.io/leases';

const LEADER_ELECTION = {
  name: 'crd-controller',
  namespace: undefined,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 500,
};

/** An environment for a controller with limited permissions. */
interface Stage {
  readonly cluster: TestCluster;
  readonly demand: Demand;
  /** Creates an object in the namespace of the story. */
  create<T extends KubernetesObject>(resource: Resource<T>, name: string, spec: object): Promise<T>;
  patch(resource: Resource, name: string, body: object): Promise<unknown>;
  untilReady(resource: Resource, name: string): Promise<void>;
  untilGone(resource: Resource, name: string): Promise<void>;
  /** Waits until an event with the reason was repeated. */
  untilRepeated(reason: string): Promise<void>;
  /** Deletes the object just before the daemon writes its status. */
  vanishing(resource: Resource, name: string): void;
}

interface Story {
  readonly role: string;
  readonly resources: readonly Resource[];
  /** @default true */
  readonly canStreamLists?: boolean;
  run(stage: Stage): Promise<void>;
}

const podOf = (name: string) => ({
  spec: { containers: [{ name: 'app', image: name }] },
});

const STORIES: Readonly<Record<string, Story>> = {
  count: {
    role: 'rbac/controllers/count.yaml',
    resources: [COUNTS],
    async run(stage) {
      const { cluster, demand } = stage;
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.patchCount({ count: 1 });
      await cluster.untilReady(1);
      const labels = { 'app.kubernetes.io/instance': null };
      const unlabelled = { type: 'merge', body: { metadata: { labels } } } as const;
      await cluster.client.patch(PODS, cluster.podAt(0), unlabelled);
      await cluster.untilReady(1);
      await cluster.until('the Pod has its labels again', async () => {
        const { metadata } = await cluster.pod(0);
        return metadata.labels?.['app.kubernetes.io/instance'] !== undefined;
      });
      let isFree = true;
      demand.before = async ({ verb, resource }) => {
        if (!isFree || verb !== 'create' || resource !== 'pods') return;
        isFree = false;
        await stage.create(PODS, 'foreign-0', podOf('theirs'));
      };
      await cluster.applyCount({ count: 1 }, 'foreign');
      await stage.untilRepeated('ErrResourceExists');
      stage.vanishing(COUNTS, 'vanishing');
      await cluster.applyCount({ count: 1 }, 'vanishing');
      await stage.untilGone(COUNTS, 'vanishing');
    },
  },
  webapp: {
    role: 'rbac/controllers/webapp.yaml',
    resources: [WEB_APPS, DEPLOYMENTS, SERVICES],
    async run(stage) {
      const spec = { version: '1', replicas: 1, image: 'nginx:1' };
      await stage.create(WEB_APPS, 'site', { spec });
      await stage.untilReady(WEB_APPS, 'site');
      await stage.patch(WEB_APPS, 'site', { spec: { replicas: 2 } });
      await stage.untilReady(WEB_APPS, 'site');
      await stage.patch(SERVICES, 'site', {
        spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
      });
      await stage.cluster.settle();
      await stage.cluster.client.delete(WEB_APPS, {
        namespace: stage.cluster.namespace,
        name: 'site',
      });
      await stage.untilGone(WEB_APPS, 'site');
      await stage.create(SERVICES, 'foreign', { spec: { ports: [{ port: 80 }] } });
      await stage.create(WEB_APPS, 'foreign', { spec });
      await stage.untilRepeated('TaskFailed');
      stage.vanishing(WEB_APPS, 'vanishing');
      await stage.create(WEB_APPS, 'vanishing', { spec });
      await stage.untilGone(WEB_APPS, 'vanishing');
    },
  },
  at: {
    role: 'rbac/controllers/at.yaml',
    resources: [ATS],
    async run(stage) {
      const { cluster } = stage;
      const schedule = new Date(Math.ceil(cluster.now() / 1000) * 1000 + 1000).toISOString();
      await stage.create(ATS, 'soon', { spec: { schedule, command: 'echo YAY' } });
      await cluster.until('done', async () => {
        const at = await cluster.client.get(ATS, { namespace: cluster.namespace, name: 'soon' });
        return at.status?.phase === 'DONE';
      });
    },
  },
  foo: {
    role: 'rbac/controllers/foo.yaml',
    resources: [FOOS, DEPLOYMENTS],
    async run(stage) {
      const spec = { deploymentName: 'web', replicas: 1 };
      await stage.create(FOOS, 'foo', { spec });
      await stage.untilReady(FOOS, 'foo');
      await stage.patch(FOOS, 'foo', { spec: { replicas: 2 } });
      await stage.untilReady(FOOS, 'foo');
      await stage.patch(FOOS, 'foo', { spec: { deploymentName: 'former-web' } });
      await stage.untilGone(DEPLOYMENTS, 'web');
      await stage.create(FOOS, 'foreign', { spec: { ...spec, deploymentName: 'former-web' } });
      await stage.untilRepeated('ErrResourceExists');
      stage.vanishing(FOOS, 'vanishing');
      await stage.create(FOOS, 'vanishing', { spec });
      await stage.untilGone(FOOS, 'vanishing');
    },
  },
  'pod-count': {
    role: 'rbac/pod-count/role.yaml',
    resources: [],
    // A new leader does not need the number of Pods at once, and does not list them.
    canStreamLists: false,
    async run(stage) {
      const { cluster } = stage;
      const name = `master-${cluster.namespace}`;
      const labels = { 'node-role.kubernetes.io/control-plane': '' };
      await cluster.client.create(NODES, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels },
      });
      await stage.create(PODS, 'first', podOf('nginx'));
      // Another client changes the label, which the controller checks with a live read.
      await cluster.until(
        'the competing writes are reported',
        async () => {
          const { metadata } = await cluster.client.get(NODES, { name });
          if (metadata.labels?.[LABEL] !== 'theirs' && metadata.labels?.[LABEL] !== undefined) {
            const body = { metadata: { labels: { [LABEL]: 'theirs' } } };
            await cluster.client.patch(NODES, { name }, { type: 'merge', body });
          }
          return cluster.lines.some(({ message }) => message.startsWith('Hot loop'));
        },
        { withinMs: 180_000, stepMs: 500 },
      );
      await cluster.client.delete(NODES, { name });
    },
  },
};

/** Returns the stages of a control plane, or of the embedded server in virtual time if there is none. */
function stages(plane: () => ControlPlane | undefined) {
  const ends: (() => Promise<void>)[] = [];
  return {
    async raise(controller: string, story: Story, isNamespaced: boolean): Promise<Stage> {
      const given = plane();
      const cluster = given ? await TlsCluster.create(given) : new Simulation();
      ends.push(() => cluster.end());
      if (cluster instanceof Simulation) cluster.startCluster();
      const [crd, ...children] = story.resources;
      if (crd) await cluster.installCrd(crd, ...children);
      const system = `${cluster.namespace}-system`;
      await cluster.client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: system },
      });
      const demand = new Demand();
      demand.canStreamLists = story.canStreamLists ?? true;
      const granted = rights(story, isNamespaced, { watched: cluster.namespace, system });
      const connect = given ? withToken(given) : withAuthorizer(cluster);
      const connection = await connect(granted, system);
      ends.push(() => connection.close());
      const fence = new WriteFence();
      const leases = connection.client(demand.around);
      const lease = { namespace: system, name: LEADER_ELECTION.name };
      await cluster.client.create(LEASES, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: lease,
        spec: { holderIdentity: 'another', leaseDurationSeconds: 3600 },
      });
      const client = connection.client((handler) => fence.wrap(demand.around(handler)));
      cluster.startDaemon(
        {
          controllers: [controller],
          leaderElection: LEADER_ELECTION,
          namespaces: isNamespaced ? [cluster.namespace] : [],
          // So that the stories use both groups of events.
          eventApiVersion: isNamespaced ? 'events.k8s.io/v1' : 'v1',
        },
        client,
        { client: leases, fence, identity: IDENTITY, namespace: system },
      );
      await cluster.until('the standby waits', async () =>
        demand.permissions.includes(WATCHES_LEASE),
      );
      const isHeld = async () => {
        const { items } = await cluster.client.list(LEASES, { namespace: system });
        return items.some(({ spec }) => spec?.holderIdentity === IDENTITY);
      };
      const body = { spec: releasedSpec({}, cluster.now()) };
      await cluster.client.patch(LEASES, lease, { type: 'merge', body });
      await cluster.until('the standby has acquired the released Lease', isHeld);
      await cluster.client.delete(LEASES, lease);
      await cluster.until('the leader has created the Lease again', isHeld);
      return stageOf(cluster, demand);
    },
    async clear(): Promise<void> {
      for (const end of ends.splice(0)) await end();
    },
  };
}

/** The manifests that grant what a story needs, bound in a namespace or in the whole cluster. */
interface Grant {
  readonly manifest: Manifest;
  readonly namespace: string | undefined;
}

function rights(
  { role }: Story,
  isNamespaced: boolean,
  { watched, system }: { readonly watched: string; readonly system: string },
): Grant[] {
  const inNamespace = (manifests: readonly Manifest[], namespace: string | undefined) =>
    manifests.map((manifest) => ({ manifest, namespace }));
  return [
    ...inNamespace(manifestsOf(role), isNamespaced ? watched : undefined),
    ...inNamespace(EVENTS_ROLE, isNamespaced ? watched : undefined),
    // Events of a Lease are in the namespace of the Lease.
    ...(isNamespaced ? inNamespace(EVENTS_ROLE, system) : []),
    ...inNamespace(LEASE_ROLE, system),
  ];
}

interface Connection {
  client(around: (handler: HttpHandler) => HttpHandler): Client;
  close(): Promise<void>;
}

/** Puts an authorizer with the same rules in front of the embedded server, which has none. */
function withAuthorizer(cluster: TestCluster) {
  return (grants: readonly Grant[]): Promise<Connection> => {
    assert.ok(cluster instanceof Simulation);
    const access = new Access((info: RequestInfo) =>
      grants.some(
        ({ manifest, namespace }) =>
          (namespace === undefined || namespace === info.namespace) &&
          allows(manifest.rules ?? [], info),
      ),
    );
    return Promise.resolve({
      client: (around) =>
        new HttpClient({
          server: 'https://simulated',
          handler: around(access.around(cluster.server.handler)),
        }),
      close: () => Promise.resolve(),
    });
  };
}

const RBAC_RESOURCES: Readonly<Record<string, Resource>> = Object.fromEntries(
  [CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS].map((each) => [each.kind, each]),
);

/** Returns connections with the token of a ServiceAccount, with roles bound as in the manifests. */
function withToken(plane: ControlPlane) {
  return async (grants: readonly Grant[], system: string): Promise<Connection> => {
    const { client } = plane;
    const token = await newServiceAccountToken(client, system, grants);
    const connections: { close(): Promise<void> }[] = [];
    return {
      client(around) {
        const credentials = { kind: 'token', token } as const;
        const connection = connectCluster(
          { ...plane.config, credentials },
          { wrapTransport: around },
        );
        connections.push(connection);
        return connection.client;
      },
      async close() {
        for (const connection of connections) await connection.close();
        for (const { resource, object } of bound(grants, system)) {
          if (!resource.namespaced) await client.delete(resource, object.metadata);
        }
        await client.delete(NAMESPACES, { name: system });
      },
    };
  };
}

/** Returns the token of a ServiceAccount in `system` to which `grants` are bound. */
async function newServiceAccountToken(
  client: Client,
  system: string,
  grants: readonly Grant[],
): Promise<string> {
  const account = { namespace: system, name: 'crd-controller' };
  await client.create(SERVICE_ACCOUNTS, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: account,
  });
  for (const { resource, object } of bound(grants, system)) await client.create(resource, object);
  return serviceAccountToken(client, account);
}

/** Returns the grants as objects, in their namespaces and with names unique to the story. */
function bound(grants: readonly Grant[], system: string) {
  return grants.map(({ manifest, namespace }) => {
    const text = JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, namespace } })
      .replaceAll(`"${SYSTEM}"`, JSON.stringify(system))
      .replaceAll('"crd-controller-', `"${system}-`)
      .replaceAll(/"Cluster(Role|RoleBinding)"/g, namespace === undefined ? '$&' : '"$1"');
    const object = JSON.parse(text) as KubernetesObject;
    const resource = RBAC_RESOURCES[object.kind];
    assert.ok(resource, object.kind);
    return { resource, object };
  });
}

function stageOf(cluster: TestCluster, demand: Demand): Stage {
  const { client } = cluster;
  const at = (name: string) => ({ namespace: cluster.namespace, name });
  const isGone = async (resource: Resource, name: string) => {
    try {
      await client.get(resource, at(name));
      return false;
    } catch (error) {
      if (isApiError(error, 'notFound')) return true;
      throw error;
    }
  };
  return {
    cluster,
    demand,
    create: (resource, name, spec) =>
      client.create(resource, {
        apiVersion: [resource.group, resource.version].filter(Boolean).join('/'),
        kind: resource.kind,
        metadata: at(name),
        ...spec,
      } as never),
    patch: (resource, name, body) => client.patch(resource, at(name), { type: 'merge', body }),
    untilReady: (resource, name) =>
      cluster.until(`${name} is ready`, async () => {
        const { metadata, status } = (await client.get(resource, at(name))) as KubernetesObject & {
          status?: { observedGeneration?: number; conditions?: { type: string; status: string }[] };
        };
        return (
          status?.observedGeneration === metadata.generation &&
          (status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ??
            false)
        );
      }),
    untilGone: (resource, name) =>
      cluster.until(`${name} is gone`, () => isGone(resource, name), { withinMs: 30_000 }),
    untilRepeated: (reason) =>
      cluster.until(`${reason}, again`, async () => {
        const { items } = await client.list(EVENTS, { namespace: cluster.namespace });
        return items.some(
          ({ reason: its, series, count = series?.count ?? 1 }) => its === reason && count > 1,
        );
      }),
    vanishing(resource, name) {
      demand.before = async (info) => {
        if (info.verb !== 'patch' || info.subresource !== 'status' || info.name !== name) return;
        demand.before = () => Promise.resolve();
        await client.patch(resource, at(name), {
          type: 'merge',
          body: { metadata: { finalizers: null } },
        });
        await client.delete(resource, at(name), { propagationPolicy: 'Background' });
      };
    },
  };
}

const isWire = process.env['CONTROL_PLANE'] !== undefined;

describe('The installed roles', { skip: process.env['CONTROL_PLANE'] === 'embedded' }, () => {
  let plane: ControlPlane | undefined;
  const set = stages(() => plane);
  /** Event verbs used by all stories. */
  const events = new Set<string>();

  before(async () => {
    if (!isWire) return;
    plane = await startControlPlane({
      cluster: { kubelet: { terminationMs: 100 } },
      // Enabled in OpenShift.
      apiServerFlags: ['--enable-admission-plugins=OwnerReferencesPermissionEnforcement'],
    });
    await untilOwnersAreKnown(plane);
  });
  afterEach(() => set.clear());
  after(() => plane?.close());

  it('exist for each controller', () => {
    assert.deepEqual(Object.keys(STORIES).toSorted(), CONTROLLERS.toSorted());
  });

  for (const [controller, story] of Object.entries(STORIES)) {
    const isNamespacedToo = !PROGRAM.controllers[controller]?.isClusterScoped;
    for (const isNamespaced of isNamespacedToo ? [false, true] : [false]) {
      const where = isNamespaced ? 'within a namespace' : 'everywhere';
      it(`of ${controller} contain exactly what it needs, ${where}`, async () => {
        const stage = await set.raise(controller, story, isNamespaced);
        await story.run(stage);
        await stage.cluster.settle();
        const { demand } = stage;
        assert.deepEqual(demand.refused, []);
        assert.deepEqual([...demand.otherPaths], OPEN_TO_ALL);
        assert.equal(demand.namespaces.has(''), !isNamespaced);
        const own = permissionsOf(rulesOf(manifestsOf(story.role)));
        const shared = permissionsOf(rulesOf([...EVENTS_ROLE, ...LEASE_ROLE]));
        const [forEvents, others] = split(demand.permissions, (line) => / \S*\/events$/.test(line));
        for (const line of forEvents) events.add(line);
        const [forLease, forSelf] = split(others, (line) => shared.includes(line));
        assert.deepEqual(forLease, permissionsOf(rulesOf(LEASE_ROLE)));
        assert.deepEqual(
          forSelf,
          own.filter((line) => !CHECKED_BY_ADMISSION.test(line)),
        );
      });
    }
  }

  it('for events contain only verbs that are used', () => {
    assert.deepEqual([...events].toSorted(), permissionsOf(rulesOf(EVENTS_ROLE)));
  });

  it(
    'without access to finalizers prevent the creation of objects with a blocking owner',
    { skip: !isWire && 'the embedded server has no such admission plugin' },
    async () => {
      assert.ok(plane);
      const { client } = plane;
      for (const [controller, { role, resources }] of Object.entries(STORIES)) {
        const [owner, child = PODS] = resources;
        if (!owner) continue;
        for (const isGranted of [true, false]) {
          const system = `admission-${controller}-${isGranted}`;
          await client.create(NAMESPACES, {
            apiVersion: 'v1',
            kind: 'Namespace',
            metadata: { name: system },
          });
          const grants = manifestsOf(role).map(({ rules, ...manifest }) => ({
            manifest: {
              ...manifest,
              ...(rules && { rules: rules.filter((rule) => isGranted || !isOfFinalizers(rule)) }),
            },
            namespace: undefined,
          }));
          const connection = await withToken(plane)(grants, system);
          const granted = connection.client((handler) => handler);
          const asks = until('the authorizer knows the role', () =>
            createOwned(granted, child, owner).catch((error: unknown) => {
              if (/ cannot create resource /.test(String(error))) return undefined;
              throw error;
            }),
          );
          try {
            if (isGranted) await asks;
            else await assert.rejects(asks, /cannot set blockOwnerDeletion/, controller);
          } finally {
            await connection.close();
          }
        }
      }
    },
  );
});

function isOfFinalizers({ resources }: PolicyRule): boolean {
  return resources.some((name) => name.endsWith('/finalizers'));
}

/** Attempts to create `child` with a blocking reference to an `owner`. */
function createOwned(client: Client, child: Resource, owner: Resource): Promise<KubernetesObject> {
  const labels = { app: 'child' };
  const template = { metadata: { labels }, ...podOf('nginx') };
  const spec = child === PODS ? template.spec : { selector: { matchLabels: labels }, template };
  const reference = {
    apiVersion: `${owner.group}/${owner.version}`,
    kind: owner.kind,
    name: 'owner',
    uid: '00000000-0000-4000-8000-000000000000',
    controller: true,
    blockOwnerDeletion: true,
  };
  const object = {
    apiVersion: child === PODS ? 'v1' : 'apps/v1',
    kind: child.kind,
    metadata: { namespace: 'default', name: 'child', ownerReferences: [reference] },
    spec,
  };
  return client.create(child, object, { dryRun: true });
}

/** Admission discovers new kinds every 30 s and rejects objects with unknown owners until then. */
async function untilOwnersAreKnown(plane: ControlPlane): Promise<void> {
  const cluster = await TlsCluster.create(plane);
  const owners = Object.values(STORIES).flatMap(({ resources }) => resources.slice(0, 1));
  for (const owner of owners) await cluster.installCrd(owner);
  for (const owner of owners) {
    await cluster.until('admission has discovered the kind', async () => {
      try {
        await createOwned(cluster.client, PODS, owner);
        return true;
      } catch (error) {
        if (isApiError(error, 'forbidden')) return false;
        throw error;
      }
    });
  }
  await cluster.end();
}

function split<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}
