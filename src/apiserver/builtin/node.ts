import { equalJson } from '../../api/equal.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { hasFormat } from '../schema/formats.ts';
import type { KindTraits } from './definition.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { canonicalizeQuantities } from './pod-defaults.ts';

export const NODE: KindTraits = {
  keepsStatus: true,
  selectableFields: {
    'spec.unschedulable': (node) => String(objectIn(node, 'spec')?.['unschedulable'] === true),
  },
  hooks: { applyDefaults, prepareForCreate, validate, validateUpdate },
};

function applyDefaults(node: ApiObject): void {
  const spec = objectIn(node, 'spec');
  const first = textIn(spec, 'podCIDR');
  const ranges = listIn(spec, 'podCIDRs');
  // As upstream, whose conversion keeps the two fields equal.
  if (spec && first !== '' && ranges[0] !== first) spec['podCIDRs'] = [first];
  else if (spec && first === '' && ranges.length > 0) spec['podCIDR'] = ranges[0];
  const status = objectIn(node, 'status');
  if (!status) return;
  if (isSet(status, 'capacity') && !isSet(status, 'allocatable')) {
    status['allocatable'] = { ...objectIn(status, 'capacity') };
  }
  canonicalizeQuantities(status, 'capacity');
  canonicalizeQuantities(status, 'allocatable');
}

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const;

/** A new node accepts no Pods until it is ready (admission plugin TaintNodesByCondition). */
function prepareForCreate(node: ApiObject): void {
  const spec = objectIn(node, 'spec') ?? {};
  const taints = objectsIn(spec, 'taints');
  const isTainted = taints.some(
    (taint) => textIn(taint, 'key') === NOT_READY.key && textIn(taint, 'effect') === 'NoSchedule',
  );
  if (!isTainted) node['spec'] = { ...spec, taints: [...taints, NOT_READY] };
}

function validate(node: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const ranges = listIn(objectIn(node, 'spec'), 'podCIDRs');
  for (const [index, range] of ranges.entries()) {
    const problem = rangeProblem(String(range));
    if (problem !== undefined) findings.invalid(`spec.podCIDRs[${index}]`, range, problem);
  }
  const families = new Set(ranges.map((range) => String(range).includes(':')));
  if (findings.errors.length === 0 && ranges.length > families.size) {
    const why = 'may specify no more than one CIDR for each IP family';
    findings.invalid('spec.podCIDRs', ranges, why);
  }
  for (const [index, taint] of objectsIn(objectIn(node, 'spec'), 'taints').entries()) {
    // A server calls it so, wherever it is.
    const path = `metadata.taints[${index}]`;
    findings.requireOneOf(taint, 'effect', ['NoSchedule', 'PreferNoSchedule', 'NoExecute'], path);
  }
  return findings.errors;
}

function rangeProblem(range: string): string | undefined {
  const plain = range.replace(/(^|[.:/])0+(?=[0-9])/g, '$1');
  if (!hasFormat('cidr', range.includes(':') ? range : plain)) {
    return 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  }
  if (range.includes(':')) return undefined;
  if (plain !== range) return 'must not have leading 0s in IP or prefix length';
  const [address = '', bits] = range.split('/');
  const number = address.split('.').reduce((all, part) => all * 256 + Number(part), 0);
  const isPlain = number % 2 ** (32 - Number(bits)) === 0;
  return isPlain ? undefined : 'must not have bits set beyond the prefix length';
}

/** Rejects changes of the Pod networks and of the provider after they are set. */
function validateUpdate(node: StoredObject, previous: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const next = objectIn(node, 'spec');
  const before = objectIn(previous, 'spec');
  const ranges = listIn(before, 'podCIDRs');
  if (ranges.length > 0 && !equalJson(ranges, listIn(next, 'podCIDRs'))) {
    findings.forbidden(
      'spec.podCIDRs',
      'node updates may not change podCIDR except from "" to valid',
    );
  }
  const provider = textIn(before, 'providerID');
  if (provider !== '' && provider !== textIn(next, 'providerID')) {
    const value = next?.['providerID'] ?? null;
    findings.invalid('spec.providerID', value, 'field cannot be modified once set');
  }
  return findings.errors;
}
