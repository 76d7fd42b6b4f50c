import { isIP } from '../../../util/ip-address.ts';
import { listIn, numberIn, objectsIn, textsIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import {
  labelValueProblems,
  nameProblems,
  qualifiedNameProblems,
} from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { textOf } from '../../objects/field-path.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, field } from '../../table/column.ts';
import { ipProblem, ipWarnings } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireDomain } from '../shared/domain-names.ts';
import { PORT_PROTOCOLS, requireNodeName, requireUsableIp } from '../shared/endpoint-addresses.ts';
import { firstThree } from '../shared/cells.ts';
import { addressWarnings } from '../shared/warnings.ts';

export const ENDPOINT_SLICE: BuiltinKind = {
  resource: 'discovery.k8s.io/endpointslices',
  revalidatesName: 'object',
  tracksGeneration: true,
  defaults: { 'ports[].name': '', 'ports[].protocol': 'TCP' },
  immutable: ['addressType'],
  hidesImmutable: true,
  hooks: {
    prepareForCreate: dropTopology,
    // As upstream, a change of labels, which assign the slice to a Service, and dropped fields increase the generation.
    prepareForUpdate: (slice, { metadata: { labels = {}, generation = 0 } }) => {
      const isDropped = dropTopology(slice);
      if (!isDropped && equalJson(slice.metadata.labels ?? {}, labels)) return;
      slice.metadata.generation = generation + 1;
    },
  },
  validate: validateSlice,
  columns: columns(
    field('AddressType', 'addressType'),
    column('Ports', 'Ports of the endpoints.', (slice) => {
      const ports = objectsIn(slice, 'ports');
      return firstThree(
        ports.map((port) => textOf(numberIn(port, 'port') ?? port['name'], '*')),
        '<unset>',
      );
    }),
    column('Endpoints', 'Addresses of the endpoints.', (slice) =>
      firstThree(
        objectsIn(slice, 'endpoints').flatMap((one) => textsIn(one, 'addresses')),
        '<unset>',
      ),
    ),
  ),
  warnings: (slice, previous) => [
    ...(!previous && slice.text('addressType') === 'FQDN'
      ? ['spec.addressType: FQDN endpoints are deprecated']
      : []),
    ...(SLICE_CONTROLLERS.has(
      slice.value.metadata.labels?.['endpointslice.kubernetes.io/managed-by'] ?? '',
    )
      ? []
      : slice
          .items('endpoints')
          .flatMap((endpoint) => addressWarnings(endpoint, 'addresses', ipWarnings))),
  ],
};

/** Drops the topology of an older version, which the names of nodes and zones replace. */
function dropTopology(slice: ApiObject): boolean {
  const endpoints = objectsIn(slice, 'endpoints').filter((each) => each['deprecatedTopology']);
  for (const endpoint of endpoints) delete endpoint['deprecatedTopology'];
  return endpoints.length > 0;
}

const TYPES = ['FQDN', 'IPv4', 'IPv6'];

function validateSlice(slice: CheckedObject, previous: StoredObject | undefined): void {
  const type = slice.text('addressType');
  if (type === '') slice.required('addressType');
  else slice.requireSupported('addressType', TYPES);
  const names = new Set<string>();
  for (const port of slice.requireAtMost('ports', 20_000) ? slice.items('ports') : []) {
    port.requireFormat('name', 'dns1123Label');
    if (names.has(port.text('name'))) port.duplicate('name');
    names.add(port.text('name'));
    port.requireSupported('protocol', PORT_PROTOCOLS);
    if (!port.has('appProtocol')) continue;
    port.problems('appProtocol', qualifiedNameProblems(port.text('appProtocol')));
  }
  if (previous && equalJson(slice.list('endpoints'), listIn(previous, 'endpoints'))) return;
  if (!slice.requireAtMost('endpoints', 1000)) return;
  for (const endpoint of slice.items('endpoints')) {
    const addresses = endpoint.list('addresses').map(String);
    if (addresses.length === 0) endpoint.required('addresses');
    endpoint.requireAtMost('addresses', 100);
    for (const [index, address] of addresses.entries()) {
      const field = `addresses[${index}]`;
      if (type === 'FQDN') requireDomain(endpoint, field, address);
      if (!/^IPv[46]$/.test(type)) continue;
      const problem = ipProblem(address, type === 'IPv6');
      if (problem !== undefined) {
        endpoint.invalid(field, problem, address);
        continue;
      }
      if (`IPv${isIP(address)}` !== type) {
        endpoint.invalid('addresses', `must be an ${type} address`, address);
      }
      requireUsableIp(endpoint, field, address);
    }
    requireNodeName(endpoint);
    if (endpoint.has('hostname')) {
      endpoint.problems('hostname', nameProblems(endpoint.text('hostname'), 'dns1123Label'));
    }
    validateHints(endpoint.in('hints'));
  }
}

function validateHints(hints: CheckedObject): void {
  const problemsOf = {
    forZones: labelValueProblems,
    forNodes: (name: string) => nameProblems(name, 'dns1123Subdomain'),
  };
  for (const [list, problems] of Object.entries(problemsOf)) {
    if (!hints.requireAtMost(list, 8)) return;
    const names = new Set<string>();
    for (const hint of hints.items(list)) {
      const name = hint.text('name');
      if (names.has(name)) hint.duplicate('name', name);
      names.add(name);
      hint.problems('name', problems(name), name);
    }
  }
}

const SLICE_CONTROLLERS: ReadonlySet<string> = new Set([
  'endpointslice-controller.k8s.io',
  'endpointslicemirroring-controller.k8s.io',
]);
