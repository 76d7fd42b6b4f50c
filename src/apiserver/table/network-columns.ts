import type { Service as MutableService } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { listIn, numberIn, objectIn, objectsIn, textIn, textsIn } from '../../util/json-value.ts';
import { textOf } from '../objects/field-path.ts';
import type { KindColumns } from './column.ts';
import { AGE_COLUMN, NAME_COLUMN, column, columns, field, qualified, wide } from './column.ts';
import { labelsText, selectorCell } from './workload-columns.ts';

type Service = DeepReadonly<MutableService>;
type ServicePort = NonNullable<NonNullable<Service['spec']>['ports']>[number];

/** Up to three texts, and the number of the others. */
function limited(all: readonly string[], absent: string): string {
  if (all.length === 0) return absent;
  const shown = all.slice(0, 3).join(',');
  return all.length > 3 ? `${shown} + ${all.length - 3} more...` : shown;
}

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';

export const NETWORK_COLUMNS: KindColumns = {
  services: [
    ...columns(
      field('Type', 'spec.type'),
      column<MutableService>(
        'Cluster-IP',
        'Address inside the cluster.',
        ({ spec }) => spec?.clusterIPs?.[0] ?? '<none>',
      ),
      column('External-IP', 'Addresses outside the cluster.', externalAddress),
      column<MutableService>(
        'Port(s)',
        'Ports, each with its node port if it has one.',
        ({ spec }) => (spec?.ports ?? []).map(portText).join(',') || '<none>',
      ),
    ),
    wide('Selector', 'Labels of the Pods that the service selects.', (service) =>
      labelsText(service, ['spec', 'selector']),
    ),
  ],
  endpoints: columns(
    column('Endpoints', 'Addresses and ports.', (endpoints) =>
      limited(
        objectsIn(endpoints, 'subsets').flatMap((subset) => {
          const addresses = objectsIn(subset, 'addresses').map((address) => textIn(address, 'ip'));
          const ports = objectsIn(subset, 'ports').map((port) => numberIn(port, 'port') ?? 0);
          if (ports.length === 0) return addresses;
          return ports.flatMap((port) =>
            addresses.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`),
          );
        }),
        '<none>',
      ),
    ),
  ),
  'discovery.k8s.io/endpointslices': columns(
    field('AddressType', 'addressType'),
    column('Ports', 'Ports of the endpoints.', (slice) => {
      const ports = objectsIn(slice, 'ports');
      return limited(
        ports.map((port) => textOf(numberIn(port, 'port') ?? port['name'], '*')),
        '<unset>',
      );
    }),
    column('Endpoints', 'Addresses of the endpoints.', (slice) =>
      limited(
        objectsIn(slice, 'endpoints').flatMap((one) => textsIn(one, 'addresses')),
        '<unset>',
      ),
    ),
  ),
  'networking.k8s.io/ingresses': columns(
    field('Class', 'spec.ingressClassName', '<none>'),
    column('Hosts', 'Hosts of the rules.', (ingress) => {
      const rules = objectsIn(objectIn(ingress, 'spec'), 'rules');
      const hosts = rules.map((rule) => textIn(rule, 'host')).filter((host) => host !== '');
      if (hosts.length === 0) return '*';
      const more = hosts.length > 3 ? ` + ${rules.length - 3} more...` : '';
      return hosts.slice(0, 3).join(',') + more;
    }),
    column('Address', 'Addresses of the load balancer.', (ingress) => {
      const entries = objectsIn(objectIn(objectIn(ingress, 'status'), 'loadBalancer'), 'ingress');
      const addresses = entries.map((entry) => textIn(entry, 'ip') || textIn(entry, 'hostname'));
      return [...new Set(addresses.filter((address) => address !== ''))].sort().join(',');
    }),
    column('Ports', 'Ports of the rules.', (ingress) =>
      listIn(objectIn(ingress, 'spec'), 'tls').length > 0 ? '80, 443' : '80',
    ),
  ),
  'networking.k8s.io/ingressclasses': [
    {
      ...NAME_COLUMN,
      value: ({ metadata: { name, annotations } }) =>
        annotations?.[DEFAULT_CLASS] === 'true' ? `${name} (default)` : name,
    },
    field('Controller', 'spec.controller'),
    column('Parameters', 'Reference to more parameters.', (ingressClass) => {
      const parameters = objectIn(objectIn(ingressClass, 'spec'), 'parameters');
      if (!parameters) return '<none>';
      const kind = qualified(textIn(parameters, 'kind'), textIn(parameters, 'apiGroup'));
      return `${kind}/${textIn(parameters, 'name')}`;
    }),
    AGE_COLUMN,
  ],
  'networking.k8s.io/networkpolicies': columns(
    column('Pod-Selector', 'Selector of the Pods of the policy.', (policy) =>
      selectorCell(objectIn(objectIn(policy, 'spec'), 'podSelector')),
    ),
  ),
  'networking.k8s.io/servicecidrs': columns(
    column('CIDRs', 'Address ranges.', (object) =>
      textsIn(objectIn(object, 'spec') ?? {}, 'cidrs').join(','),
    ),
  ),
  // Upstream prints an age without a column.
  'networking.k8s.io/ipaddresses': [
    NAME_COLUMN,
    column('ParentRef', 'Object that uses the address.', (address) => {
      const parent = objectIn(objectIn(address, 'spec'), 'parentRef');
      if (!parent) return '<none>';
      const resource = qualified(textIn(parent, 'resource'), textIn(parent, 'group'));
      return [resource.toLowerCase(), textIn(parent, 'namespace'), textIn(parent, 'name')]
        .filter((part) => part !== '')
        .join('/');
    }),
  ],
};

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
