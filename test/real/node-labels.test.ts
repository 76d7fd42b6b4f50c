import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { NODES } from '../../src/api/builtin.ts';
import type { Resource } from '../../src/api/resource.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import { LABEL } from '../../src/controllers/pod-count/sync.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { needsReal } from '../support/needs-real.ts';
import { manifestsOf } from '../support/roles.ts';
import { until } from '../support/until.ts';

const PLURALS: Readonly<Record<string, string>> = {
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
};
const NODE = { name: 'watched' };

const skip = needsReal('which authorizes');

describe('given the component rbac/pod-count', { skip, timeout: 120_000 }, () => {
  let plane: ControlPlane;
  let controller: ClusterConnection;

  before(async () => {
    plane = await startControlPlane();
    for (const file of ['role.yaml', 'policy.yaml']) {
      for (const manifest of manifestsOf(`rbac/pod-count/${file}`)) {
        const [group = '', version = ''] = manifest.apiVersion.split('/');
        const plural = PLURALS[manifest.kind];
        assert.ok(plural, manifest.kind);
        const { kind } = manifest;
        const resource: Resource = { group, version, plural, kind, namespaced: false };
        await plane.client.create(resource, manifest);
      }
    }
    controller = connectCluster({
      ...plane.config,
      impersonation: {
        user: 'system:serviceaccount:crd-controller-system:crd-controller',
        groups: [],
        extra: new Map(),
      },
    });
    const metadata = { ...NODE, labels: { zone: 'a' } };
    await plane.client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata });
  });
  after(async () => {
    await controller.close();
    await plane.close();
  });

  const patch = (body: object, { client }: Pick<ControlPlane, 'client'> = controller) =>
    client.patch(NODES, NODE, { type: 'merge', body });
  /** Whether the policy refuses it. Before the server has taken in the role, that refuses all. */
  const isRefused = async (body: object): Promise<boolean> => {
    try {
      await patch(body);
      return false;
    } catch (error) {
      if (!isApiError(error, 'forbidden')) throw error;
      return /may change the label hopegi\/pod-count of a Node and nothing else/.test(
        error.message,
      );
    }
  };

  it('its ServiceAccount may label Nodes with the number, and change nothing else of them', async () => {
    // The server needs a moment until it has taken the role and the policy in.
    await until('a refusal', async () =>
      (await isRefused({ metadata: { annotations: { tried: String(Math.random()) } } }))
        ? true
        : undefined,
    );
    for (const body of [
      { spec: { unschedulable: true } },
      { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } },
      { metadata: { labels: { zone: 'b' } } },
      { metadata: { labels: { zone: null } } },
      { metadata: { labels: { other: 'x', [LABEL]: '3' } } },
    ]) {
      assert.ok(await isRefused(body), JSON.stringify(body));
    }
    for (const count of ['3', '4', null]) await patch({ metadata: { labels: { [LABEL]: count } } });
    const { metadata } = await patch({ metadata: { labels: { zone: 'b' } } }, plane);
    assert.deepEqual(metadata.labels, { zone: 'b' }, 'others do as they may');
  });
});
