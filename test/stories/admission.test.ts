import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  DEPLOYMENTS,
  EVENTS,
  PODS,
  SERVICES,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
} from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
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

/** Denies writes by an admission policy until the returned function is called. */
async function deny(cluster: TestCluster, denial: Denial): Promise<() => Promise<void>> {
  const { client, namespace } = cluster;
  const { resource, subresource, reason } = denial;
  const name = `deny-${namespace}`;
  const plural = subresource ? `${resource.plural}/${subresource}` : resource.plural;
  const rule = {
    apiGroups: [resource.group],
    apiVersions: [resource.version],
    operations: [subresource ? ('UPDATE' as const) : ('CREATE' as const)],
    resources: [plural],
  };
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: VALIDATING_ADMISSION_POLICIES.kind,
    metadata: { name },
    spec: {
      failurePolicy: 'Fail' as const,
      matchConstraints: { resourceRules: [rule], namespaceSelector },
      validations: [{ expression: 'false', message: 'not now', reason }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: VALIDATING_ADMISSION_POLICY_BINDINGS.kind,
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny' as const] },
  };
  await client.create(VALIDATING_ADMISSION_POLICIES, policy);
  await client.create(VALIDATING_ADMISSION_POLICY_BINDINGS, binding);
  // The server applies a new policy, and its removal, with a short delay.
  await cluster.pass(3000);
  return async () => {
    await client.delete(VALIDATING_ADMISSION_POLICY_BINDINGS, { name });
    await client.delete(VALIDATING_ADMISSION_POLICIES, { name });
  };
}

inTestClusters((where, create) => {
  describe(`${where}: an admission policy`, { timeout: 300_000 }, () => {
    let cluster: TestCluster;
    let removePolicy: () => Promise<void>;

    beforeEach(async () => {
      cluster = await create();
      removePolicy = () => Promise.resolve();
    });
    afterEach(async () => {
      await removePolicy();
      await cluster.end();
    });

    const at = () => ({ namespace: cluster.namespace, name: 'x' });
    const start = async (kind: Kind, denial: Denial) => {
      await cluster.installCrd(kind.resource, ...kind.owned);
      removePolicy = await deny(cluster, denial);
      cluster.startDaemon({ controllers: [kind.controller], namespaces: [cluster.namespace] });
      const { group, version, kind: name } = kind.resource;
      const apiVersion = `${group}/${version}`;
      const draft = { apiVersion, kind: name, metadata: at(), spec: kind.spec };
      await cluster.client.create(kind.resource, draft);
    };
    const status = async ({ resource }: Kind) =>
      (await cluster.client.get<Subject>(resource, at())).status;
    const has = async (kind: Kind, type: string) =>
      (await status(kind))?.conditions?.some((one) => one.type === type && one.status === 'True') ??
      false;
    const isDone = async (kind: Kind) =>
      kind.resource === ATS ? (await status(kind))?.phase === 'DONE' : has(kind, 'Ready');
    const removePolicyAndConverge = async (kind: Kind) => {
      await removePolicy();
      removePolicy = () => Promise.resolve();
      // The object is not changed: only a retry detects that the policy was removed.
      await cluster.until('the object is reconciled', () => isDone(kind), {
        withinMs: BACKOFF_MS + 30_000,
        stepMs: cluster.isVirtual ? 1000 : 100,
      });
    };
    /** Returns the warnings as `Reason count`. */
    const warnings = async () => {
      const { items } = await cluster.client.list(EVENTS, { namespace: cluster.namespace });
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
          await cluster.until('the object is stalled', () => has(kind, 'Stalled'));
          await cluster.until('the event', async () => (await warnings()).length > 0);
          // Its own status updates and its other owned objects cause a few additional attempts.
          await cluster.settle();
          const before = cluster.errors().length;
          const reported = await warnings();
          assert.equal(reported.length, 1);
          if (cluster.isVirtual) {
            await cluster.pass(3_600_000);
            assert.ok(await has(kind, 'Stalled'));
            const tries = cluster.errors().length - before;
            // Delays grow from 5 s to 5 min within an hour: at most 6 shorter delays, at least 11 of
            // the longest.
            assert.ok(tries >= 11 && tries <= 17, `${tries} tries`);
          }
          assert.deepEqual(await warnings(), reported);
          await removePolicyAndConverge(kind);
        });

        it(`${what} as forbidden is reconciled after the policy is removed`, async () => {
          await start(kind, { resource, reason: 'Forbidden' });
          await cluster.until('an attempt fails', async () => cluster.errors().length > 0);
          await cluster.pass(cluster.isVirtual ? 1_800_000 : 1000);
          assert.ok(!(await isDone(kind)));
          await removePolicyAndConverge(kind);
        });
      }

      for (const reason of ['Invalid', 'Forbidden'] as const) {
        it(`a ${kind.resource.kind} whose status is denied as ${reason.toLowerCase()} repeats no event, and gets its status after the policy is removed`, async () => {
          await start(kind, { resource: kind.resource, subresource: 'status', reason });
          await cluster.until('an attempt fails', async () => cluster.errors().length > 0);
          await cluster.pass(cluster.isVirtual ? 1_800_000 : 1000);
          assert.ok(!(await isDone(kind)));
          await removePolicyAndConverge(kind);
          await cluster.settle();
          const { items } = await cluster.client.list(EVENTS, { namespace: cluster.namespace });
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
      await cluster.until('the object is stalled', () => has(kind, 'Stalled'));
      await cluster.client.delete(COUNTS, at());
      await cluster.client.create(COUNTS, {
        apiVersion: 'demo.mark8s.io/v1',
        kind: 'Count',
        metadata: { ...at(), name: 'x'.repeat(253) },
        spec: { name: 'nginx', count: 2 },
      });
      await cluster.until('the failure is reported', async () =>
        cluster.errors().some((line) => line.includes('not retrying a terminal error')),
      );
      const errors = cluster.errors().length;
      await cluster.pass(cluster.isVirtual ? 1_800_000 : 1000);
      assert.equal(cluster.errors().length, errors);
    });
  });
});
