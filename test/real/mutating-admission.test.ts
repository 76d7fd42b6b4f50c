import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import {
  MUTATING_ADMISSION_POLICIES,
  MUTATING_ADMISSION_POLICY_BINDINGS,
  PODS,
} from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { needsReal, skipBefore } from '../support/skip.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

const IMAGE =
  'op: "replace", path: "/spec/containers/0/image", value: "registry.local/" + object.spec.containers[0].image';
const ANNOTATION =
  'op: "replace", path: "/metadata/annotations/demo.mark8s.io~1image", value: "other"';
const OWNER = 'op: "replace", path: "/metadata/ownerReferences/0/uid", value: "other"';

/** Maximum number of writes for a Count of 3: its Pods, and its status a few times. */
const FEW = 12;

const skip = needsReal('its admission policies') || skipBefore(36).skip;

describe('A Count whose Pods are changed by admission', { skip, timeout: 300_000 }, () => {
  let plane: ControlPlane;
  let cluster: TlsCluster;
  let removePolicy: () => Promise<void>;

  before(async () => {
    plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 100 } } });
  });
  beforeEach(async () => {
    cluster = await TlsCluster.create(plane);
    await cluster.installCrd(COUNTS, PODS);
  });
  afterEach(async () => {
    await removePolicy();
    await cluster.end();
  });
  after(() => plane.close());

  /** Changes new Pods by the operations of a JSON patch in CEL, and starts a Count of 3. */
  const start = async (...operations: readonly string[]) => {
    const { client, namespace } = cluster;
    const apiVersion = 'admissionregistration.k8s.io/v1';
    const metadata = { name: `mutate-${namespace}` };
    const expression = `[${operations.map((operation) => `JSONPatch{${operation}}`).join()}]`;
    await client.create(MUTATING_ADMISSION_POLICIES, {
      apiVersion,
      kind: MUTATING_ADMISSION_POLICIES.kind,
      metadata,
      spec: {
        reinvocationPolicy: 'Never',
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
          ],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        },
        mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
      },
    });
    await client.create(MUTATING_ADMISSION_POLICY_BINDINGS, {
      apiVersion,
      kind: MUTATING_ADMISSION_POLICY_BINDINGS.kind,
      metadata,
      spec: { policyName: metadata.name },
    });
    removePolicy = async () => {
      await client.delete(MUTATING_ADMISSION_POLICY_BINDINGS, metadata);
      await client.delete(MUTATING_ADMISSION_POLICIES, metadata);
    };
    // The server applies a new policy with a short delay.
    await cluster.pass(2000);
    cluster.startDaemon({ namespaces: [namespace] });
    await cluster.applyCount();
  };

  /** Returns the writes of the daemon, without events. */
  const writes = () => cluster.wire.writes.filter((write) => !write.includes('/events'));

  for (const [what, operations] of [
    ['the image', [IMAGE]],
    ['the image and its annotation', [IMAGE, ANNOTATION]],
  ] as const) {
    it(`is ready and quiet after few writes: ${what}`, async () => {
      await start(...operations);
      await cluster.untilReady(3);
      await cluster.pass(4000);
      await cluster.untilReady(3);
      for (const { spec } of await cluster.pods()) {
        assert.equal(spec?.containers[0]?.image, 'registry.local/nginx');
      }
      assert.ok(writes().length <= FEW, writes().join('\n'));
    });
  }

  it('is slowed down and reported if it cannot recognize them: the owner', async () => {
    await start(OWNER);
    const report = () => cluster.lines.find(({ message }) => message.startsWith('Hot loop'));
    await cluster.until('the report', () => Promise.resolve(report() !== undefined));
    assert.deepEqual(report()?.fields?.['fields'], ['.metadata.ownerReferences[0].uid']);
    const earlier = writes().length;
    await cluster.pass(4000);
    assert.ok(writes().length - earlier <= FEW, writes().join('\n'));
  });
});
