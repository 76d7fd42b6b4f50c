import { isInBlock } from '../../../util/ip-address.ts';
import { listIn, objectIn } from '../../../util/json-value.ts';
import type { CheckSteps } from '../../objects/check-steps.ts';
import { PART_WEIGHT } from '../../objects/check-steps.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { column, columns } from '../../table/column.ts';
import { validatePortNumberOrName } from '../pods/container-validation.ts';
import { cidrProblem, cidrWarnings, parseCidr } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';
import { selectorCell } from '../shared/cells.ts';
import { addressWarnings } from '../shared/warnings.ts';

export const NETWORK_POLICY: BuiltinKind = {
  resource: 'networking.k8s.io/networkpolicies',
  tracksGeneration: true,
  defaults: { 'spec.ingress[].ports[].protocol': 'TCP', 'spec.egress[].ports[].protocol': 'TCP' },
  hooks: {
    applyDefaults: (policy) => {
      const spec = objectIn(policy, 'spec');
      if (!spec || listIn(spec, 'policyTypes').length > 0) return;
      const hasEgress = listIn(spec, 'egress').length > 0;
      spec['policyTypes'] = ['Ingress', ...(hasEgress ? ['Egress'] : [])];
    },
  },
  validateInSteps: validateNetworkPolicy,
  columns: columns(
    column('Pod-Selector', 'Selector of the Pods of the policy.', (policy) =>
      selectorCell(objectIn(objectIn(policy, 'spec'), 'podSelector')),
    ),
  ),
  warnings: (policy) => {
    const spec = policy.in('spec');
    const peers = [
      ...spec.items('ingress').flatMap((rule) => rule.items('from')),
      ...spec.items('egress').flatMap((rule) => rule.items('to')),
    ];
    return peers
      .flatMap((peer) => peer.get('ipBlock') ?? [])
      .flatMap((block) =>
        cidrWarnings(block.at('cidr'), block.text('cidr')).concat(
          addressWarnings(block, 'except', cidrWarnings),
        ),
      );
  },
};

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];

function* validateBlock(block: CheckedObject): CheckSteps {
  block.requireText('cidr');
  const cidr = block.text('cidr');
  if (cidr === '') return;
  requireCidr(block, 'cidr', cidr);
  const network = parseCidr(cidr);
  if (!network) return;
  for (const [index, except] of block.list('except').map(String).entries()) {
    yield PART_WEIGHT;
    const field = `except[${index}]`;
    requireCidr(block, field, except);
    const part = parseCidr(except);
    if (
      part &&
      (part.length <= network.length || !isInBlock(part.ip, network.ip, network.length))
    ) {
      block.invalid(field, 'must be a strict subset of `cidr`', except);
    }
  }
}

function requireCidr(block: CheckedObject, field: string, range: string): void {
  const problem = cidrProblem(range);
  if (problem !== undefined) block.invalid(field, problem, range);
}

function* validateNetworkPolicy(policy: CheckedObject): CheckSteps {
  const spec = policy.in('spec');
  validateLabelSelector(spec.get('podSelector'));
  const peers = { ingress: 'from', egress: 'to' };
  for (const [direction, list] of Object.entries(peers)) {
    for (const rule of spec.items(direction)) {
      for (const port of rule.items('ports')) validatePort(port);
      for (const peer of rule.items(list)) {
        yield PART_WEIGHT;
        const selectors = ['podSelector', 'namespaceSelector'].flatMap(
          (field) => peer.get(field) ?? [],
        );
        for (const selector of selectors) validateLabelSelector(selector);
        const block = peer.get('ipBlock');
        if (selectors.length === 0 && !block) peer.required('', 'must specify a peer');
        if (!block) continue;
        yield* validateBlock(block);
        if (selectors.length === 0) continue;
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
  port.requireSupported('protocol', PROTOCOLS);
  const number = port.number('port');
  const end = port.number('endPort');
  if (port.has('port')) validatePortNumberOrName(port, 'port');
  if (end === undefined) return;
  if (!port.has('port')) {
    port.invalid('endPort', 'may not be specified when `port` is not specified');
  } else if (number === undefined) {
    port.invalid('endPort', 'may not be specified when `port` is non-numeric');
  } else {
    if (end < number) port.invalid('endPort', 'must be greater than or equal to `port`');
    port.requirePort('endPort');
  }
}
