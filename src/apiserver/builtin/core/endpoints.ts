import { listIn, numberIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { column, columns } from '../../table/column.ts';
import { ipProblem, ipWarnings } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { firstThree } from '../shared/cells.ts';
import { PORT_PROTOCOLS, requireNodeName, requireUsableIp } from '../shared/endpoint-addresses.ts';

export const ENDPOINTS_KIND: BuiltinKind = {
  resource: 'endpoints',
  revalidatesName: 'object',
  createOnUpdate: true,
  defaults: { 'subsets[].ports[].protocol': 'TCP' },
  deprecationWarning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  validate: validateEndpoints,
  columns: columns(
    column('Endpoints', 'Addresses and ports.', (endpoints) =>
      firstThree(
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
  warnings: (object) =>
    object.value.metadata.labels?.['endpoints.kubernetes.io/managed-by'] === 'endpoint-controller'
      ? []
      : object
          .items('subsets')
          .flatMap((subset) =>
            ['addresses', 'notReadyAddresses'].flatMap((list) => subset.items(list)),
          )
          .flatMap((address) => ipWarnings(address.at('ip'), address.text('ip'))),
};

function validateEndpoints(endpoints: CheckedObject, previous: StoredObject | undefined): void {
  if (previous && equalJson(endpoints.list('subsets'), listIn(previous, 'subsets'))) return;
  for (const subset of endpoints.items('subsets')) {
    const lists = ['addresses', 'notReadyAddresses'] as const;
    if (lists.every((list) => subset.list(list).length === 0)) {
      subset.required('', 'must specify `addresses` or `notReadyAddresses`');
    }
    for (const address of lists.flatMap((list) => subset.items(list))) {
      const ip = address.text('ip');
      const problem = ipProblem(ip);
      if (problem !== undefined) address.invalid('ip', problem, ip);
      requireUsableIp(address, 'ip', ip);
      address.requireFormat('hostname', 'dns1123Label');
      requireNodeName(address);
    }
    const ports = subset.items('ports');
    for (const port of ports) {
      if (ports.length > 1) port.requireText('name');
      port.requireFormat('name', 'dns1123Label');
      port.requirePort('port');
      port.requireOneOf('protocol', PORT_PROTOCOLS);
      if (!port.has('appProtocol')) continue;
      port.problems('appProtocol', qualifiedNameProblems(port.text('appProtocol')));
    }
  }
}
