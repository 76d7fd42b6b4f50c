import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Resource } from '../../src/api/resource.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { needsReal } from '../support/needs-real.ts';
import { manifestsOf } from '../support/roles.ts';
import { WireWorld } from '../support/wire-world.ts';
import { countDraft } from '../support/world.ts';

const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false };
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: true };

const RESOURCES: Readonly<Record<string, Resource>> = {
  ValidatingAdmissionPolicy: {
    ...ADMISSION,
    plural: 'validatingadmissionpolicies',
    kind: 'ValidatingAdmissionPolicy',
  },
  ValidatingAdmissionPolicyBinding: {
    ...ADMISSION,
    plural: 'validatingadmissionpolicybindings',
    kind: 'ValidatingAdmissionPolicyBinding',
  },
};

const skip = needsReal('which authorizes');

describe(
  'given the policy of hack/deploy/admission, and a user',
  { skip, timeout: 120_000 },
  () => {
    let plane: ControlPlane;
    let world: WireWorld;
    let jane: ClusterConnection;

    before(async () => {
      plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
      world = await WireWorld.create(plane);
      await world.installCrd();
      for (const manifest of manifestsOf('admission/policy.yaml')) {
        const resource = RESOURCES[manifest.kind];
        assert.ok(resource, manifest.kind);
        await plane.client.create(resource, manifest);
      }
      jane = connectCluster({
        ...plane.config,
        impersonation: { user: 'jane', groups: [], extra: new Map() },
      });
      await allow('counts', { apiGroups: ['demo.mark8s.io'], resources: ['counts'], verbs: ['*'] });
    });
    after(async () => {
      await jane.close();
      await world.end();
      await plane.close();
    });

    /** Grants jane something in the namespace of the story. */
    const allow = async (name: string, rule: object) => {
      const metadata = { namespace: world.namespace, name };
      const apiVersion = `${RBAC.group}/v1`;
      const role = { apiVersion, kind: 'Role', metadata, rules: [rule] };
      await plane.client.create({ ...RBAC, plural: 'roles', kind: 'Role' }, role);
      const binding = {
        apiVersion,
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: RBAC.group, kind: 'Role', name },
        subjects: [{ apiGroup: RBAC.group, kind: 'User', name: 'jane' }],
      };
      await plane.client.create({ ...RBAC, plural: 'rolebindings', kind: 'RoleBinding' }, binding);
    };

    const create = (name: string) =>
      jane.client.create(COUNTS, countDraft(world.namespace, { count: 1 }, name));

    it('who may create Counts but no Pods gets none by a Count; a controller goes on, and so does who may', async () => {
      await world.applyCount({ count: 1 });
      // The server needs a moment until it has taken the policy in.
      let tries = 0;
      await world.until('a refusal', async () => {
        try {
          await create(`early-${tries++}`);
          return false;
        } catch (error) {
          if (!isApiError(error, 'forbidden')) throw error;
          assert.match(
            error.message,
            /it runs Pods, and you may not create Pods in this namespace/,
          );
          return true;
        }
      });
      const patch = (body: object) => jane.client.patch(COUNTS, world.at, { type: 'merge', body });
      await assert.rejects(patch({ spec: { name: 'other' } }), (error) =>
        isApiError(error, 'forbidden'),
      );
      await patch({ metadata: { labels: { a: 'b' } } });

      const stop = world.startDaemon({ namespaces: [world.namespace] });
      await allow('pods', { apiGroups: [''], resources: ['pods'], verbs: ['create'] });
      await world.until('she may', async () => {
        try {
          await create('late');
          return true;
        } catch (error) {
          if (isApiError(error, 'forbidden')) return false;
          throw error;
        }
      });
      await world.until('it runs', async () => {
        const { status } = await world.client.get(COUNTS, {
          namespace: world.namespace,
          name: 'late',
        });
        return status?.healthy === true;
      });
      await stop();
      assert.deepEqual(world.errors(), []);
    });
  },
);
