import { listIn, objectIn } from '../../util/json-value.ts';
import { isInBlock } from '../../util/ip-address.ts';
import { nameProblems } from '../../api/object-names.ts';
import { cidrProblem } from './addresses.ts';
import { validatePortNumberOrName } from './container-validation.ts';
import { validateLabelSelector } from './label-selector-validation.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];

export const INGRESS: KindTraits = {
  tracksGeneration: true,
  hooks: { validate: checked(validateIngress) },
};

function validateIngress(ingress: CheckedObject): void {
  const spec = ingress.in('spec');
  const rules = spec.items('rules');
  const backend = spec.get('defaultBackend');
  if (rules.length === 0 && !backend) {
    spec.invalid('', 'either `defaultBackend` or `rules` must be specified', null);
  }
  if (backend) validateBackend(backend);
  for (const tls of spec.items('tls')) {
    for (const [index, host] of tls.list('hosts').map(String).entries()) {
      tls.problems(
        `hosts[${index}]`,
        nameProblems(host.replace(/^\*\./, ''), 'dns1123Subdomain'),
        host,
      );
    }
    tls.requireFormat('secretName', 'dns1123Subdomain');
  }
  for (const rule of rules) {
    const host = rule.text('host');
    if (/^[\d.]+$/.test(host)) {
      rule.invalid('host', 'must be a DNS name, not an IP address');
    } else if (host !== '') {
      rule.problems('host', nameProblems(host.replace(/^\*\./, ''), 'dns1123Subdomain'));
    }
    const http = rule.get('http');
    if (!http) continue;
    const paths = http.items('paths');
    if (paths.length === 0) http.required('paths');
    for (const path of paths) validatePath(path);
  }
}

function validatePath(path: CheckedObject): void {
  const type = path.text('pathType');
  // A missing type is reported by the schema.
  if (type === '') return;
  const value = path.text('path');
  if (!PATH_TYPES.includes(type)) path.notSupported('pathType', PATH_TYPES);
  else if (!value.startsWith('/') && (type !== 'ImplementationSpecific' || value !== '')) {
    path.invalid('path', 'must be an absolute path', value);
  }
  validateBackend(path.in('backend'));
}

function validateBackend(backend: CheckedObject): void {
  const service = backend.get('service');
  const resource = backend.get('resource');
  if (service && resource) {
    backend.invalid('', 'cannot set both resource and service backends', '');
  } else if (!service && !resource) {
    backend.invalid('', 'resource or service backend is required', '');
  }
  if (!service || resource) return;
  service.requireText('name');
  service.requireFormat('name', 'dns1123Label');
  const port = service.in('port');
  const number = port.number('number') ?? 0;
  if (port.has('name') && number !== 0) {
    backend.invalid('', 'cannot set both port name & port number', '');
  } else if (number !== 0) port.requirePort('number');
  else if (port.text('name') === '') backend.required('', 'port name or number is required');
}

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];

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
    validate: checked(validateNetworkPolicy),
  },
};

function validateBlock(block: CheckedObject): void {
  block.requireText('cidr');
  const cidr = block.text('cidr');
  if (cidr === '') return;
  const isValid = isUsable(block, 'cidr', cidr);
  for (const [index, except] of block.list('except').map(String).entries()) {
    const field = `except[${index}]`;
    if (isUsable(block, field, except) && isValid && !isStrictSubset(except, cidr)) {
      block.invalid(field, 'must be a strict subset of `cidr`', except);
    }
  }
}

function isUsable(block: CheckedObject, field: string, range: string): boolean {
  const problem = cidrProblem(range);
  if (problem !== undefined) block.invalid(field, problem, range);
  return problem === undefined;
}

function isStrictSubset(inner: string, outer: string): boolean {
  const [address = '', length] = inner.split('/');
  const [network = '', prefix] = outer.split('/');
  return Number(length) > Number(prefix) && isInBlock(address, network, Number(prefix));
}

function validateNetworkPolicy(policy: CheckedObject): void {
  const spec = policy.in('spec');
  validateLabelSelector(spec.get('podSelector'));
  const peers = { ingress: 'from', egress: 'to' };
  for (const [direction, list] of Object.entries(peers)) {
    for (const rule of spec.items(direction)) {
      for (const port of rule.items('ports')) validatePort(port);
      for (const peer of rule.items(list)) {
        if (Object.keys(peer.value).length === 0) peer.required('', 'must specify a peer');
        validateLabelSelector(peer.get('podSelector'));
        validateLabelSelector(peer.get('namespaceSelector'));
        const block = peer.get('ipBlock');
        if (!block) continue;
        validateBlock(block);
        if (!peer.has('podSelector') && !peer.has('namespaceSelector')) continue;
        peer.forbidden('', 'may not specify both ipBlock and another peer');
      }
    }
  }
  if (spec.list('policyTypes').length > 2) {
    spec.invalid('policyTypes', 'may not specify more than two policyTypes');
    return;
  }
  spec.requireEachOf('policyTypes', ['Ingress', 'Egress']);
}

function validatePort(port: CheckedObject): void {
  port.requireOneOf('protocol', PROTOCOLS);
  const number = port.number('port');
  const end = port.number('endPort');
  if (port.has('port')) validatePortNumberOrName(port, 'port');
  if (end === undefined) return;
  if (!port.has('port')) {
    port.invalid('endPort', 'may not be specified when `port` is not specified');
  } else if (number === undefined) {
    port.invalid('endPort', 'may not be specified when `port` is non-numeric');
  } else if (end < 1 || end > 65_535) port.requirePort('endPort');
  else if (end < number) {
    port.invalid('endPort', 'must be greater than or equal to `port`');
  }
}
