import type { Node as MutableNode } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, columnsFor } from './column.ts';

type Node = DeepReadonly<MutableNode>;

const { column, wide } = columnsFor<MutableNode>();

export const NODE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  column('Status', 'Whether the node is ready, and takes new pods.', statusOf),
  column('Roles', 'What the node is for.', (node) => rolesOf(node) || '<none>'),
  AGE_COLUMN,
  column(
    'Version',
    'Version of the kubelet.',
    ({ status }) => status?.nodeInfo?.kubeletVersion ?? '',
  ),
  wide('Internal-IP', 'Address within the cluster.', (node) => addressOf(node, 'InternalIP')),
  wide('External-IP', 'Address from outside.', (node) => addressOf(node, 'ExternalIP')),
  wide('OS-Image', 'Operating system.', ({ status }) => status?.nodeInfo?.osImage || '<unknown>'),
  wide('Kernel-Version', 'Version of the kernel.', ({ status }) => {
    const { kernelVersion, architecture } = status?.nodeInfo ?? {};
    const version = kernelVersion || '<unknown>';
    return architecture ? `${version} (${architecture})` : version;
  }),
  wide(
    'Container-Runtime',
    'Container runtime and its version.',
    ({ status }) => status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
  ),
];

function statusOf(node: Node): string {
  const ready = node.status?.conditions?.findLast(({ type }) => type === 'Ready');
  const word = !ready ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return node.spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function rolesOf(node: Node): string {
  const prefix = 'node-role.kubernetes.io/';
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata.labels ?? {})) {
    if (key.startsWith(prefix)) roles.add(key.slice(prefix.length));
    else if (key === 'kubernetes.io/role') roles.add(value);
  }
  roles.delete('');
  return [...roles].sort().join(',');
}

function addressOf(node: Node, type: string): string {
  const found = node.status?.addresses?.find((address) => address.type === type);
  return found?.address ?? '<none>';
}
