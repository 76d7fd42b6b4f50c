import { equalJson } from '../../api/equal.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../schema/field-error.ts';
import { NODE_COLUMNS } from '../table/builtin-columns.ts';
import type { KindTraits } from './definition.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { canonicalizeQuantities } from './pod-defaults.ts';

export const NODE: KindTraits = {
  columns: NODE_COLUMNS,
  keepsStatus: true,
  selectableFields: {
    'spec.unschedulable': (node) => String(objectIn(node, 'spec')?.['unschedulable'] === true),
  },
  hooks: { applyDefaults, prepareForCreate, validate, validateUpdate },
};

function applyDefaults(node: ApiObject): void {
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
  for (const [index, taint] of objectsIn(objectIn(node, 'spec'), 'taints').entries()) {
    // A server calls it so, wherever it is.
    const path = `metadata.taints[${index}]`;
    findings.requireOneOf(taint, 'effect', ['NoSchedule', 'PreferNoSchedule', 'NoExecute'], path);
  }
  return findings.errors;
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
    findings.forbidden(
      'spec.providerID',
      'node updates may not change providerID except from "" to valid',
    );
  }
  return findings.errors;
}
