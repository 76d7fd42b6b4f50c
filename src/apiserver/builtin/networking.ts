import { BlockList, isIPv4 } from 'node:net';
import { nameProblems } from '../object-names.ts';
import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { hasFormat } from '../schema/formats.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { isSet, listIn, numberIn, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];

export const INGRESS: KindTraits = {
  tracksGeneration: true,
  createOnUpdate: true,
  hooks: { validate: validateIngress },
};

function validateIngress(ingress: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(ingress, 'spec') ?? {};
  const rules = objectsIn(spec, 'rules');
  const backend = objectIn(spec, 'defaultBackend');
  if (rules.length === 0 && !backend) {
    findings.invalid('spec', null, 'either `defaultBackend` or `rules` must be specified');
  }
  if (backend) validateBackend(backend, 'spec.defaultBackend', findings);
  for (const [index, rule] of rules.entries()) {
    const path = `spec.rules[${index}]`;
    const host = textIn(rule, 'host');
    if (/^[\d.]+$/.test(host)) {
      findings.invalid(`${path}.host`, host, 'must be a DNS name, not an IP address');
    } else if (host !== '') {
      const name = host.startsWith('*.') ? host.slice(2) : host;
      for (const problem of nameProblems(name, 'dns1123Subdomain')) {
        findings.invalid(`${path}.host`, host, problem);
      }
    }
    const http = objectIn(rule, 'http');
    if (!http) continue;
    const paths = objectsIn(http, 'paths');
    if (paths.length === 0) findings.required(`${path}.http.paths`);
    for (const [at, each] of paths.entries()) {
      validatePath(each, `${path}.http.paths[${at}]`, findings);
    }
  }
  return findings.errors;
}

function validatePath(path: JsonObject, at: string, findings: Findings): void {
  const type = textIn(path, 'pathType');
  // A missing type is reported by the schema.
  if (type === '') return;
  const value = textIn(path, 'path');
  if (!PATH_TYPES.includes(type)) {
    findings.notSupported(`${at}.pathType`, type, PATH_TYPES);
  } else if (!value.startsWith('/') && (type !== 'ImplementationSpecific' || value !== '')) {
    findings.invalid(`${at}.path`, value, 'must be an absolute path');
  }
  validateBackend(objectIn(path, 'backend') ?? {}, `${at}.backend`, findings);
}

function validateBackend(backend: JsonObject, path: string, findings: Findings): void {
  const service = objectIn(backend, 'service');
  const resource = objectIn(backend, 'resource');
  if (service && resource) {
    findings.invalid(path, '', 'cannot set both resource and service backends');
  } else if (!service && !resource) {
    findings.invalid(path, '', 'resource or service backend is required');
  }
  if (!service || resource) return;
  findings.requireFormat(service, 'name', 'dns1123Label', `${path}.service`);
  const port = objectIn(service, 'port') ?? {};
  const number = numberIn(port, 'number') ?? 0;
  if (isSet(port, 'name') && number !== 0) {
    findings.invalid(path, '', 'cannot set both port name & port number');
  } else if (number !== 0) findings.requirePort(number, `${path}.service.port.number`);
  else if (textIn(port, 'name') === '') {
    findings.required(path, 'port name or number is required');
  }
}

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const NOT_A_CIDR = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

export const NETWORK_POLICY: KindTraits = {
  tracksGeneration: true,
  defaults: { 'spec.ingress[].ports[].protocol': 'TCP', 'spec.egress[].ports[].protocol': 'TCP' },
  hooks: {
    applyDefaults: (policy) => {
      const spec = objectIn(policy, 'spec');
      if (!spec || listIn(spec, 'policyTypes').length > 0) return;
      const hasEgress = listIn(spec, 'egress').length > 0;
      spec['policyTypes'] = ['Ingress', ...(hasEgress ? ['Egress'] : [])];
    },
    validate: validateNetworkPolicy,
  },
};

function validateBlock(block: JsonObject, path: string, findings: Findings): void {
  findings.requireText(block, 'cidr', path);
  const cidr = textIn(block, 'cidr');
  if (cidr === '') return;
  const isValid = hasFormat('cidr', cidr);
  if (!isValid) findings.invalid(`${path}.cidr`, cidr, NOT_A_CIDR);
  for (const [index, except] of listIn(block, 'except').map(String).entries()) {
    const at = `${path}.except[${index}]`;
    if (!hasFormat('cidr', except)) findings.invalid(at, except, NOT_A_CIDR);
    else if (isValid && !isStrictSubset(except, cidr)) {
      findings.invalid(at, except, 'must be a strict subset of `cidr`');
    }
  }
}

function isStrictSubset(inner: string, outer: string): boolean {
  const [address = '', length] = inner.split('/');
  const [network = '', prefix] = outer.split('/');
  const family = isIPv4(network) ? 'ipv4' : 'ipv6';
  if (isIPv4(address) !== isIPv4(network) || Number(length) <= Number(prefix)) return false;
  const block = new BlockList();
  block.addSubnet(network, Number(prefix), family);
  return block.check(address, family);
}

function validateNetworkPolicy(policy: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(policy, 'spec') ?? {};
  for (const [direction, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    for (const [index, rule] of objectsIn(spec, direction).entries()) {
      const path = `spec.${direction}[${index}]`;
      for (const [at, port] of objectsIn(rule, 'ports').entries()) {
        validatePort(port, `${path}.ports[${at}]`, findings);
      }
      for (const [at, peer] of objectsIn(rule, peers).entries()) {
        const place = `${path}.${peers}[${at}]`;
        if (Object.keys(peer).length === 0) findings.required(place, 'must specify a peer');
        const block = objectIn(peer, 'ipBlock');
        if (!block) continue;
        validateBlock(block, `${place}.ipBlock`, findings);
        if (!isSet(peer, 'podSelector') && !isSet(peer, 'namespaceSelector')) continue;
        findings.forbidden(place, 'may not specify both ipBlock and another peer');
      }
    }
  }
  for (const [index, type] of listIn(spec, 'policyTypes').entries()) {
    if (type === 'Ingress' || type === 'Egress') continue;
    const supported = ['Ingress', 'Egress'];
    findings.notSupported(`spec.policyTypes[${index}]`, type, supported);
  }
  return findings.errors;
}

function validatePort(port: JsonObject, path: string, findings: Findings): void {
  findings.requireOneOf(port, 'protocol', PROTOCOLS, path);
  const number = numberIn(port, 'port');
  const end = numberIn(port, 'endPort');
  if (number !== undefined) findings.requirePort(number, `${path}.port`);
  if (end === undefined) return;
  if (!isSet(port, 'port')) {
    findings.invalid(`${path}.endPort`, end, 'may not be specified when `port` is not specified');
  } else if (number === undefined) {
    findings.invalid(`${path}.endPort`, end, 'may not be specified when `port` is non-numeric');
  } else if (end < number) {
    findings.invalid(`${path}.endPort`, end, 'must be greater than or equal to `port`');
  }
}
