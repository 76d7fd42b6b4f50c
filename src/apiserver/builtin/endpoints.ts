import { listIn } from '../../util/json-value.ts';
import { isIP } from '../../util/ip-address.ts';
import { equalJson } from '../../api/equal.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { ipProblem } from './addresses.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

/** Special addresses, which no endpoint can have. */
const UNUSABLE: readonly (readonly [RegExp, string])[] = [
  [/^(?:127\.|::1$)/, 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  [/^(?:169\.254\.|fe[89ab])/i, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
  [
    /^(?:224\.0\.0\.|ff.2:)/i,
    'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  ],
];

export const ENDPOINTS_TRAITS: KindTraits = {
  createOnUpdate: true,
  defaults: { 'subsets[].ports[].protocol': 'TCP' },
  deprecationWarning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  hooks: { validate: checked(validateEndpoints) },
};

export const ENDPOINT_SLICE: KindTraits = {
  tracksGeneration: true,
  defaults: { 'ports[].name': '', 'ports[].protocol': 'TCP' },
  immutable: ['addressType'],
  hooks: {
    // Labels count as substance, because they assign the slice to a Service.
    prepareForUpdate: (slice, { metadata: { labels = {}, generation = 0 } }) => {
      if (equalJson(slice.metadata.labels ?? {}, labels)) return;
      slice.metadata.generation = generation + 1;
    },
    validate: checked(validateSlice),
  },
};

function validateEndpoints(endpoints: CheckedObject, previous: StoredObject | undefined): void {
  if (previous && equalJson(endpoints.list('subsets'), listIn(previous, 'subsets'))) return;
  for (const subset of endpoints.items('subsets')) {
    const lists = ['addresses', 'notReadyAddresses'] as const;
    if (lists.every((list) => subset.list(list).length === 0)) {
      subset.required('', 'must specify `addresses` or `notReadyAddresses`');
    }
    for (const address of lists.flatMap((list) => subset.items(list))) {
      validateAddress(address, 'ip', address.text('ip'));
      validateNames(address);
    }
    const ports = subset.items('ports');
    for (const port of ports) {
      if (ports.length > 1) port.requireText('name');
      port.requireFormat('name', 'dns1123Label');
      port.requirePort('port');
      port.requireOneOf('protocol', PROTOCOLS);
    }
  }
}

function validateSlice(slice: CheckedObject, previous: StoredObject | undefined): void {
  const names = new Set<string>();
  for (const port of slice.items('ports')) {
    port.requireFormat('name', 'dns1123Label');
    port.requireUnique('name', names);
    port.requireOneOf('protocol', PROTOCOLS);
  }
  if (previous && equalJson(slice.list('endpoints'), listIn(previous, 'endpoints'))) return;
  const type = slice.text('addressType');
  for (const endpoint of slice.items('endpoints')) {
    const addresses = endpoint.list('addresses').map(String);
    if (addresses.length === 0) endpoint.required('addresses', 'must contain at least 1 address');
    for (const [index, address] of addresses.entries()) {
      if (type === 'FQDN') continue;
      if (isIP(address) !== 0 && `IPv${isIP(address)}` !== type) {
        endpoint.invalid('addresses', `must be an ${type} address`, address);
      }
      validateAddress(endpoint, `addresses[${index}]`, address, ipProblem(address, true));
    }
    validateNames(endpoint);
  }
}

/** Reports an address that is none, or that no endpoint can have. */
export function validateAddress(
  endpoint: CheckedObject,
  field: string,
  address: string,
  problem: string | undefined = ipProblem(address),
): void {
  if (problem !== undefined) endpoint.invalid(field, problem, address);
  else if (/^(?:0\.0\.0\.0|::)$/.test(address)) {
    endpoint.invalid(field, `may not be unspecified (${address})`, address);
  }
  for (const [range, why] of UNUSABLE) {
    if (range.test(address)) endpoint.invalid(field, why, address);
  }
}

function validateNames(endpoint: CheckedObject): void {
  endpoint.requireFormat('hostname', 'dns1123Label');
  endpoint.requireFormat('nodeName', 'dns1123Subdomain');
}
