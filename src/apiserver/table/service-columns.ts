import type { Service as MutableService } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, columnsFor } from './column.ts';

type Service = DeepReadonly<MutableService>;
type ServicePort = NonNullable<NonNullable<Service['spec']>['ports']>[number];

const { column, wide } = columnsFor<MutableService>();

export const SERVICE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  column('Type', 'How the service is reached.', ({ spec }) => spec?.type ?? ''),
  column(
    'Cluster-IP',
    'Address within the cluster.',
    ({ spec }) => spec?.clusterIPs?.[0] ?? '<none>',
  ),
  column('External-IP', 'Addresses from outside.', externalAddress),
  column(
    'Port(s)',
    'Ports, with the port on each node where there is one.',
    ({ spec }) => (spec?.ports ?? []).map(portText).join(',') || '<none>',
  ),
  AGE_COLUMN,
  wide('Selector', 'Labels of the pods behind the service.', ({ spec }) => {
    const pairs = Object.entries(spec?.selector ?? {}).map(([key, value]) => `${key}=${value}`);
    return pairs.sort().join(',') || '<none>';
  }),
];

function externalAddress({ spec, status }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return external.join(',') || '<none>';
    case 'LoadBalancer': {
      const assigned = (status?.loadBalancer?.ingress ?? [])
        .map(({ ip, hostname }) => ip || hostname || '')
        .filter((address) => address !== '');
      return [...[...new Set(assigned)].sort(), ...external].join(',') || '<pending>';
    }
    case 'ExternalName':
      return spec.externalName ?? '';
    default:
      return '<unknown>';
  }
}

function portText({ port, nodePort, protocol = 'TCP' }: ServicePort): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}
