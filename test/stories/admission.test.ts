import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, EVENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { Simulation } from '../support/simulation.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

interface Kind {
  readonly controller: string;
  readonly resource: Resource;
  readonly owned: readonly Resource[];
  readonly spec: object;
}

const KINDS: readonly Kind[] = [
  { controller: 'count', resource: COUNTS, owned: [PODS], spec: { name: 'nginx', count: 2 } },
  {
    controller: 'webapp',
    resource: WEB_APPS,
    owned: [DEPLOYMENTS, SERVICES],
    spec: { version: '1.27', replicas: 1 },
  },
  {
    controller: 'foo',
    resource: FOOS,
    owned: [DEPLOYMENTS],
    spec: { deploymentName: 'x-site', replicas: 1 },
  },
  {
    controller: 'at',
    resource: ATS,
    owned: [PODS],
    spec: { schedule: '2025-01-01T00:00:00Z', command: 'echo YAY' },
  },
];

/** A write that an admission policy denies. */
interface Denial {
  readonly resource: Resource;
  readonly subresource?: 'status';
  readonly reason: 'Invalid' | 'Forbidden';
}

type Subject = KubernetesObject & {
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
};

/** Longest delay between two attempts. */
const BACKOFF_MS = 300_000;

const admissionResource = (plural: string, kind: string): Resource => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
});
const POLICIES = admissionResource('validatingadmissionpolicies', 'ValidatingAdmissionPolicy');
const BINDINGS = admissionResource(
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);

/** Denies writes until the returned function is called. */
async function deny(world: TestCluster, denial: Denial): Promise<() => Promise<void>> {
  if (!(world instanceof Simulation)) return denyByPolicy(world, denial);
  const { resource, subresource, reason } = denial;
  const removePolicy = world.server.faults.beforeRequest(({ info }) => {
    if (info?.resource !== resource.plural || info.subresource !== subresource) return undefined;
    if (info.verb !== (subresource ? 'patch' : 'create')) return undefined;
    return reason === 'Invalid' ? 422 : 403;
  });
  return () => {
    removePolicy();
    return Promise.resolve();
  };
}

/** Denies writes with an admission policy on a real server; the embedded server fails requests instead. */
async function denyByPolicy(world: TestCluster, denial: Denial): Promise<() => Promise<void>> {
  const { client, namespace } = world;
  const { resource, subresource, reason } = denial;
  const name = `deny-${namespace}`;
  const plural = subresource ? `${resource.plural}/${subresource}` : resource.plural;
  const rule = {
    apiGroups: [resource.group],
    apiVersions: [resource.version],
    operations: [subresource ? 'UPDATE' : 'CREATE'],
    resources: [plural],
  };
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: POLICIES.kind,
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: { resourceRules: [rule], namespaceSelector },
      validations: [{ expression: 'false', message: 'not now', reason }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: BINDINGS.kind,
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  };
  await client.create(POLICIES, policy);
  await client.create(BINDINGS, binding);
  // The server applies a new policy, and its removal, with a short delay.
  await world.pass(3000);
  return async () => {
    await client.delete(BINDINGS, { name });
    await client.delete(POLICIES, { name });
  };
}

const skip =
  process.env['CONTROL_PLANE'] === 'embedded' &&
  'SKIPPED: the embedded server has no admission policies';

inTestClusters((where, create) => {
  describe(`${where}: an admission policy`, { skip, timeout: 300_000 }, () => {
    let world: TestCluster;
    let removePolicy: () => Promise<void>;

    beforeEach(async () => {
      world = await create();
      removePolicy = () => Promise.resolve();
    });
    afterEach(async () => {
      await removePolicy();
      await world.end();
    });

    const at = () => ({ namespace: world.namespace, name: 'x' });
    const start = async (kind: Kind, denial: Denial) => {
      await world.installCrd(kind.resource, ...kind.owned);
      removePolicy = await deny(world, denial);
      world.startDaemon({ controllers: [kind.controller], namespaces: [world.namespace] });
      const { group, version, kind: name } = kind.resource;
      const apiVersion = `${group}/${version}`;
      const draft = { apiVersion, kind: name, metadata: at(), spec: kind.spec };
      await world.client.create(kind.resource, draft);
    };
    const status = async ({ resource }: Kind) =>
      (await world.client.get<Subject>(resource, at())).status;
    const has = async (kind: Kind, type: string) =>
      (await status(kind))?.conditions?.some((one) => one.type === type && one.status === 'True') ??
      false;
    const isDone = async (kind: Kind) =>
      kind.resource === ATS ? (await status(kind))?.phase === 'DONE' : has(kind, 'Ready');
    const removePolicyAndConverge = async (kind: Kind) => {
      await removePolicy();
      removePolicy = () => Promise.resolve();
      // The object is not changed: only a retry detects that the policy was removed.
      await world.until('the object is reconciled', () => isDone(kind), {
        withinMs: BACKOFF_MS + 30_000,
        stepMs: world.isVirtual ? 1000 : 100,
      });
    };
    /** Returns the warnings as `Reason count`. */
    const warnings = async () => {
      const { items } = await world.client.list(EVENTS, { namespace: world.namespace });
      return items
        .filter(({ type, involvedObject }) => type === 'Warning' && involvedObject.name === 'x')
        .map(({ reason, count }) => `${reason} ${count}`);
    };

    // Each takes half a minute in real time. For the server, the kinds do not differ.
    for (const kind of process.env['CONTROL_PLANE'] === undefined ? KINDS : KINDS.slice(0, 1)) {
      for (const resource of kind.owned) {
        const what = `a ${kind.resource.kind} whose ${resource.kind} is denied`;

        it(`${what} as invalid is stalled, retried slowly without events, and reconciled after the policy is removed`, async () => {
          await start(kind, { resource, reason: 'Invalid' });
          await world.until('the object is stalled', () => has(kind, 'Stalled'));
          await world.until('the event', async () => (await warnings()).length > 0);
          // Its own status updates and its other owned objects cause a few additional attempts.
          await world.settle();
          const before = world.errors().length;
          const reported = await warnings();
          assert.equal(reported.length, 1);
          if (world.isVirtual) {
            await world.pass(3_600_000);
            assert.ok(await has(kind, 'Stalled'));
            const tries = world.errors().length - before;
            // Delays grow from 5 s to 5 min within an hour: at most 6 shorter delays, at least 11 of
            // the longest.
            assert.ok(tries >= 11 && tries <= 17, `${tries} tries`);
          }
          assert.deepEqual(await warnings(), reported);
          await removePolicyAndConverge(kind);
        });

        it(`${what} as forbidden is reconciled after the policy is removed`, async () => {
          await start(kind, { resource, reason: 'Forbidden' });
          await world.until('an attempt fails', async () => world.errors().length > 0);
          await world.pass(world.isVirtual ? 3_600_000 : 1000);
          assert.ok(!(await isDone(kind)));
          await removePolicyAndConverge(kind);
        });
      }

      for (const reason of ['Invalid', 'Forbidden'] as const) {
        it(`a ${kind.resource.kind} whose status is denied as ${reason.toLowerCase()} repeats no event, and gets its status after the policy is removed`, async () => {
          await start(kind, { resource: kind.resource, subresource: 'status', reason });
          await world.until('an attempt fails', async () => world.errors().length > 0);
          await world.pass(world.isVirtual ? 3_600_000 : 1000);
          assert.ok(!(await isDone(kind)));
          await removePolicyAndConverge(kind);
          await world.settle();
          const { items } = await world.client.list(EVENTS, { namespace: world.namespace });
          for (const { reason: eventReason, message, count = 1, involvedObject } of items) {
            if (involvedObject.kind !== kind.resource.kind) continue;
            // A Foo is synced before its Deployment is available, which changes its status again.
            assert.ok(
              count <= (kind.resource === FOOS ? 2 : 1),
              `${eventReason} ${message}: ${count}`,
            );
          }
        });
      }
    }

    it('an object whose writes were denied and that becomes invalid is not retried', async () => {
      const [kind] = KINDS;
      assert.ok(kind);
      await start(kind, { resource: PODS, reason: 'Invalid' });
      await world.until('the object is stalled', () => has(kind, 'Stalled'));
      await world.client.delete(COUNTS, at());
      await world.client.create(COUNTS, {
        apiVersion: 'demo.mark8s.io/v1',
        kind: 'Count',
        metadata: { ...at(), name: 'x'.repeat(253) },
        spec: { name: 'nginx', count: 2 },
      });
      await world.until('the failure is reported', async () =>
        world.errors().some((line) => line.includes('not retrying a terminal error')),
      );
      const errors = world.errors().length;
      await world.pass(world.isVirtual ? 3_600_000 : 1000);
      assert.equal(world.errors().length, errors);
    });
  });
});
