import { isIP } from 'node:net';
import type { FieldError } from '../../api/field-error.ts';
import { equalJson } from '../../api/equal.ts';
import type { StoredObject } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { listIn, numberIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

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

export const ENDPOINTS: KindTraits = {
  createOnUpdate: true,
  defaults: { 'subsets[].ports[].protocol': 'TCP' },
  deprecationWarning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  hooks: { validate: validateEndpoints },
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
    validate: validateSlice,
  },
};

function validateEndpoints(
  endpoints: StoredObject,
  previous: StoredObject | undefined,
): readonly FieldError[] {
  const findings = new Findings();
  if (previous && equalJson(listIn(endpoints, 'subsets'), listIn(previous, 'subsets'))) return [];
  for (const [index, subset] of objectsIn(endpoints, 'subsets').entries()) {
    const path = `subsets[${index}]`;
    const lists = ['addresses', 'notReadyAddresses'] as const;
    if (lists.every((list) => listIn(subset, list).length === 0)) {
      findings.required(path, 'must specify `addresses` or `notReadyAddresses`');
    }
    for (const list of lists) {
      for (const [at, address] of objectsIn(subset, list).entries()) {
        const place = `${path}.${list}[${at}]`;
        validateAddress(textIn(address, 'ip'), `${place}.ip`, findings);
        validateNames(address, place, findings);
      }
    }
    const ports = objectsIn(subset, 'ports');
    for (const [at, port] of ports.entries()) {
      const place = `${path}.ports[${at}]`;
      if (ports.length > 1) findings.requireText(port, 'name', place);
      findings.requireFormat(port, 'name', 'dns1123Label', place);
      findings.requirePort(numberIn(port, 'port') ?? 0, `${place}.port`);
      findings.requireOneOf(port, 'protocol', PROTOCOLS, place);
    }
  }
  return findings.errors;
}

function validateSlice(
  slice: StoredObject,
  previous: StoredObject | undefined,
): readonly FieldError[] {
  const findings = new Findings();
  const names = new Set<string>();
  for (const [index, port] of objectsIn(slice, 'ports').entries()) {
    findings.requireFormat(port, 'name', 'dns1123Label', `ports[${index}]`);
    findings.requireUnique(port, 'name', names, `ports[${index}]`);
    findings.requireOneOf(port, 'protocol', PROTOCOLS, `ports[${index}]`);
  }
  if (previous && equalJson(listIn(slice, 'endpoints'), listIn(previous, 'endpoints'))) {
    return findings.errors;
  }
  const type = textIn(slice, 'addressType');
  for (const [index, endpoint] of objectsIn(slice, 'endpoints').entries()) {
    const path = `endpoints[${index}]`;
    const addresses = listIn(endpoint, 'addresses').map(String);
    if (addresses.length === 0) {
      findings.required(`${path}.addresses`, 'must contain at least 1 address');
    }
    for (const [at, address] of addresses.entries()) {
      if (type === 'FQDN') continue;
      if (isIP(address) !== 0 && `IPv${isIP(address)}` !== type) {
        findings.invalid(`${path}.addresses`, address, `must be an ${type} address`);
      }
      validateAddress(address, `${path}.addresses[${at}]`, findings);
    }
    validateNames(endpoint, path, findings);
  }
  return findings.errors;
}

function validateAddress(address: string, path: string, findings: Findings): void {
  if (isIP(address) === 0) {
    const why = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
    findings.invalid(path, address, why);
  } else if (/^(?:0\.0\.0\.0|::)$/.test(address)) {
    findings.invalid(path, address, `may not be unspecified (${address})`);
  }
  for (const [range, why] of UNUSABLE) {
    if (range.test(address)) findings.invalid(path, address, why);
  }
}

function validateNames(endpoint: JsonObject, path: string, findings: Findings): void {
  findings.requireFormat(endpoint, 'hostname', 'dns1123Label', path);
  findings.requireFormat(endpoint, 'nodeName', 'dns1123Subdomain', path);
}
