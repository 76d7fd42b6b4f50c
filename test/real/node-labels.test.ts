import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { NODES } from '../../src/api/builtin.ts';
import type { Node } from '../../src/api/builtin.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import type { JsonPatchOperation, Patch } from '../../src/client/client.ts';
import { LABEL } from '../../src/controllers/pod-count/controller.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { needsReal } from '../support/skip.ts';
import { applyObjects, grant, manifestsOf, serviceAccountToken } from '../support/roles.ts';
import { until } from '../support/until.ts';

const NODE = { name: 'watched' };
const SERVICE_ACCOUNT = { namespace: 'crd-controller-system', name: 'crd-controller' };
const USER = `system:serviceaccount:${SERVICE_ACCOUNT.namespace}:${SERVICE_ACCOUNT.name}`;
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'a' };

const merge = (body: object): Patch<Node> => ({ type: 'merge', body });
const json = (...body: readonly JsonPatchOperation[]): Patch<Node> => ({ type: 'json', body });

const skip = needsReal('which evaluates admission policies');

describe('The component rbac/pod-count', { skip, timeout: 120_000 }, () => {
  let plane: ControlPlane;
  let controller: ClusterConnection;

  before(async () => {
    plane = await startControlPlane();
    const { client } = plane;
    await applyObjects(client, [
      ...manifestsOf('namespace/namespace.yaml'),
      ...manifestsOf('rbac/identity/service-account.yaml'),
      ...manifestsOf('rbac/pod-count/role.yaml'),
      ...manifestsOf('rbac/pod-count/policy.yaml'),
    ]);
    // The component does not grant this. The policy must deny it nevertheless.
    const rules = [{ apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] }];
    await grant(client, 'node-status', { user: USER, rules });
    const token = await serviceAccountToken(client, SERVICE_ACCOUNT);
    controller = connectCluster({ ...plane.config, credentials: { kind: 'token', token } });
    await client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        ...NODE,
        labels: { zone: 'a' },
        annotations: { note: 'a', large: 'x'.repeat(100_000) },
        finalizers: ['example.com/held'],
      },
    });
    // More images than a kubelet reports: the comparison must stay within the server's cost limit.
    const images = Array.from({ length: 200 }, (_, index) => ({
      names: Array.from({ length: 4 }, (__, name) => `registry.example.com/${index}/${name}`),
      sizeBytes: index,
    }));
    const body = { status: { images } };
    await client.patch(NODES, NODE, { type: 'merge', body }, { subresource: 'status' });
    // The server enforces a new role and a new policy with a short delay.
    await until('a denial by the policy', async () => {
      const annotations = { tried: String(Math.random()) };
      return (await isDenied(merge({ metadata: { annotations } }))) || undefined;
    });
  });
  after(async () => {
    await controller.close();
    await plane.close();
  });

  const patch = (what: Patch<Node>, subresource?: string) =>
    controller.client.patch(NODES, NODE, what, {
      fieldManager: 'test',
      ...(subresource !== undefined && { subresource }),
    });

  /** Returns whether the policy denies the patch. */
  const isDenied = async (what: Patch<Node>, subresource?: string): Promise<boolean> => {
    try {
      await patch(what, subresource);
      return false;
    } catch (error) {
      if (!isApiError(error, 'forbidden')) throw error;
      return /may change the label hopegi\/pod-count of a Node and nothing else/.test(
        error.message,
      );
    }
  };

  it('allows its ServiceAccount to change one label of a Node and nothing else', async () => {
    const before = await plane.client.get(NODES, NODE);
    const denied: readonly (readonly [patch: Patch<Node>, subresource?: string])[] = [
      [merge({ spec: { unschedulable: true } })],
      [merge({ spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } })],
      [merge({ metadata: { labels: { zone: 'b' } } })],
      [merge({ metadata: { labels: { zone: null } } })],
      [merge({ metadata: { labels: { other: 'x', [LABEL]: '3' } } })],
      [merge({ metadata: { labels: null } })],
      [merge({ metadata: { annotations: { note: 'b' } } })],
      [merge({ metadata: { annotations: null } })],
      // The garbage collector deletes an object whose owners do not exist.
      [merge({ metadata: { ownerReferences: [OWNER] } })],
      [json({ op: 'add', path: '/metadata/ownerReferences', value: [OWNER] })],
      [{ type: 'strategic', body: { metadata: { ownerReferences: [OWNER] } } }],
      [
        {
          type: 'apply',
          body: {
            apiVersion: 'v1',
            kind: 'Node',
            metadata: { ...NODE, labels: { [LABEL]: '3' }, ownerReferences: [OWNER] },
          },
        },
      ],
      [merge({ metadata: { finalizers: null } })],
      [merge({ metadata: { finalizers: ['example.com/held', 'example.com/more'] } })],
      [merge({ metadata: { ownerReferences: [OWNER] } }), 'status'],
      [merge({ metadata: { labels: { zone: 'b' } } }), 'status'],
      [merge({ status: { capacity: { cpu: '1k' } } }), 'status'],
    ];
    for (const [what, subresource] of denied) {
      assert.ok(await isDenied(what, subresource), JSON.stringify({ ...what, subresource }));
    }
    // The server ignores a status outside the status subresource.
    await patch(merge({ status: { capacity: { cpu: '1k' } } }));
    assert.deepEqual(await plane.client.get(NODES, NODE), before);

    for (const count of ['3', '4', null]) {
      await patch(merge({ metadata: { labels: { [LABEL]: count } } }));
    }
    await patch(json({ op: 'add', path: '/metadata/labels/hopegi~1pod-count', value: '5' }));
    const { metadata } = await plane.client.get(NODES, NODE);
    assert.deepEqual(metadata.labels, { zone: 'a', [LABEL]: '5' });
  });

  it('allows its ServiceAccount to add the first label to a Node, and does not restrict other users', async () => {
    const change = (body: object) => plane.client.patch(NODES, NODE, merge(body));
    await change({ metadata: { labels: null, annotations: null, finalizers: null } });
    const { metadata } = await patch(merge({ metadata: { labels: { [LABEL]: '1' } } }));
    assert.deepEqual(metadata.labels, { [LABEL]: '1' });
    await change({ metadata: { labels: { zone: 'b' }, finalizers: ['example.com/held'] } });
  });
});
