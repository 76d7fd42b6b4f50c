import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { apiVersionOf } from '../../src/api/resource.ts';
import type { Resource } from '../../src/api/resource.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { needsReal } from '../support/skip.ts';
import { applyObjects, grant, manifestsOf } from '../support/roles.ts';
import { until } from '../support/until.ts';
import { countDraft } from '../support/test-cluster.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

const USER = 'jane';

type Created = readonly [group: string, plural: string];

interface Coordinates {
  readonly namespace: string;
  readonly name: string;
}

interface Case {
  readonly resource: Resource;
  readonly spec: object;
  /** A change to the spec. */
  readonly change: object;
  /** Kinds that the controller creates. */
  readonly creates: readonly Created[];
  readonly isScalable: boolean;
}

const CASES: readonly Case[] = [
  {
    resource: COUNTS,
    spec: { name: 'nginx', count: 1 },
    change: { name: 'other' },
    creates: [['', 'pods']],
    isScalable: true,
  },
  {
    resource: ATS,
    spec: { schedule: '2036-01-01T00:00:00Z', command: 'echo YAY' },
    change: { command: 'echo NAY' },
    creates: [['', 'pods']],
    isScalable: false,
  },
  {
    resource: FOOS,
    spec: { deploymentName: 'web', replicas: 1 },
    change: { deploymentName: 'other' },
    creates: [['apps', 'deployments']],
    isScalable: true,
  },
  {
    resource: WEB_APPS,
    spec: { version: '1.27', replicas: 1 },
    change: { image: 'other' },
    creates: [
      ['apps', 'deployments'],
      ['', 'services'],
    ],
    isScalable: true,
  },
];

const ALL_CREATED: readonly Created[] = [
  ['', 'pods'],
  ['apps', 'deployments'],
  ['', 'services'],
];

const skip = needsReal('which evaluates admission policies');

describe(
  'The admission component, and a user with all permissions for the custom kinds only',
  { skip, timeout: 180_000 },
  () => {
    let plane: ControlPlane;
    let jane: ClusterConnection;

    before(async () => {
      plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
      for (const { resource } of CASES) await (await TlsCluster.create(plane)).installCrd(resource);
      await applyObjects(plane.client, manifestsOf('admission/policy.yaml'));
      jane = connectCluster({
        ...plane.config,
        impersonation: { user: USER, groups: [], extra: new Map() },
      });
      const apiGroups = CASES.map(({ resource }) => resource.group);
      const rules = [{ apiGroups, resources: ['*'], verbs: ['*'] }];
      await grant(plane.client, 'our-kinds', { user: USER, rules });
      // The server enforces a new role and a new policy with a short delay.
      const probe = countDraft('default', { count: 1 }, 'probe');
      const isEnforced = () => isDenied(() => jane.client.create(COUNTS, probe, { dryRun: true }));
      await until('a denial by the policy', async () => (await isEnforced()) || undefined);
    });
    after(async () => {
      await jane.close();
      await plane.close();
    });

    /** Allows the user to create objects of these kinds; resolves when the server enforces it. */
    const allowCreation = async (namespace: string, created: readonly Created[]) => {
      for (const [group, plural] of created) {
        const rules = [{ apiGroups: [group], resources: [plural], verbs: ['create'] }];
        await grant(plane.client, `create-${plural}`, { user: USER, namespace, rules });
        const resourceAttributes = { namespace, verb: 'create', group, resource: plural };
        await until(`the permission to create ${plural}`, async () => {
          const { status } = (await jane.client.raw({
            method: 'POST',
            path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
            body: {
              apiVersion: 'authorization.k8s.io/v1',
              kind: 'SelfSubjectAccessReview',
              spec: { resourceAttributes },
            },
          })) as { status: { allowed: boolean } };
          return status.allowed || undefined;
        });
      }
    };

    /** Returns each request that makes the controller create or change a workload. */
    const requestsOf = (at: Coordinates, { resource, spec, change, isScalable }: Case) => {
      const { client } = jane;
      const { namespace } = at;
      const created = draft(resource, { namespace, name: 'created' }, spec);
      const applied = draft(resource, { namespace, name: 'applied' }, spec);
      const requests = {
        create: () => client.create(resource, created),
        apply: () =>
          client.patch(
            resource,
            { namespace, name: 'applied' },
            { type: 'apply', body: applied },
            { fieldManager: USER },
          ),
        patch: () => client.patch(resource, at, { type: 'merge', body: { spec: change } }),
        scale: () => scale(resource, at, 2),
      };
      return Object.entries(requests).filter(([name]) => name !== 'scale' || isScalable);
    };

    const scale = (resource: Resource, at: Coordinates, replicas: number) =>
      jane.client.patch(
        resource,
        at,
        { type: 'merge', body: { spec: { replicas } } },
        { subresource: 'scale' },
      );

    for (const each of CASES) {
      const { resource, spec, creates, isScalable } = each;
      const kinds = creates.map(([, plural]) => plural).join(' and ');

      it(`creating, changing and scaling a ${resource.kind} requires the permission to create ${kinds}`, async () => {
        const cluster = await TlsCluster.create(plane);
        const at = { namespace: cluster.namespace, name: 'existing' };
        await plane.client.create(resource, draft(resource, at, spec));
        const requests = requestsOf(at, each);
        const denied = async () => {
          const names = [];
          for (const [name, request] of requests) if (await isDenied(request)) names.push(name);
          return names;
        };
        const all = requests.map(([name]) => name);
        assert.deepEqual(await denied(), all);
        const last = creates.at(-1);
        assert.ok(last);
        const others = ALL_CREATED.filter(([, plural]) => plural !== last[1]);
        await allowCreation(at.namespace, others);
        assert.deepEqual(await denied(), all, `without permission for ${last[1]}`);

        // A change of labels, and an update with the same number of replicas, is allowed.
        const body = { metadata: { labels: { a: 'b' } } };
        await jane.client.patch(resource, at, { type: 'merge', body });
        if (isScalable) await scale(resource, at, 1);
        assert.equal((await plane.client.get(resource, at)).metadata.generation, 1);

        await allowCreation(at.namespace, [last]);
        assert.deepEqual(await denied(), []);
        await cluster.end();
      });
    }

    it('the controller creates the Pods of a Count and writes its status', async () => {
      const cluster = await TlsCluster.create(plane);
      await cluster.applyCount({ count: 1 });
      const stop = cluster.startDaemon({ namespaces: [cluster.namespace] });
      await cluster.until('the Pods run', async () => {
        const { status } = await cluster.client.get(COUNTS, cluster.at);
        return status?.healthy === true;
      });
      await stop();
      assert.deepEqual(cluster.errors(), []);
      await cluster.end();
    });
  },
);

function draft(resource: Resource, metadata: Coordinates, spec: object) {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, spec };
}

/** Returns whether the policy denies the request. */
async function isDenied(request: () => Promise<unknown>): Promise<boolean> {
  try {
    await request();
    return false;
  } catch (error) {
    if (!isApiError(error, 'forbidden')) throw error;
    return /you may not create/.test(error.message);
  }
}
