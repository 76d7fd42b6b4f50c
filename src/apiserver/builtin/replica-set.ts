import type { ApiObject, ResourceDefinition, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../schema/field-error.ts';
import { REPLICA_SET_COLUMNS } from '../table/workload-columns.ts';
import { builtin } from './definition.ts';
import { numberIn, objectIn, setDefault } from './fields.ts';
import { Findings } from './findings.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validateTemplate } from './template-validation.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from './workload.ts';

export const REPLICA_SET: ResourceDefinition = builtin({
  group: 'apps',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  shortNames: ['rs'],
  categories: ['all'],
  columns: REPLICA_SET_COLUMNS,
  subresources: { status: true, scale: WORKLOAD_SCALE },
  tracksGeneration: true,
  selectableFields: {
    'status.replicas': (set) => String(numberIn(objectIn(set, 'status'), 'replicas') ?? 0),
  },
  hooks: {
    applyDefaults,
    prepareForCreate,
    validate,
    validateUpdate: validateSameSelector,
  },
});

function applyDefaults(set: ApiObject): void {
  const spec = objectIn(set, 'spec');
  if (!spec) return;
  setDefault(spec, 'replicas', 1);
  applyTemplateDefaults(spec);
}

function prepareForCreate(set: ApiObject): void {
  set['status'] = { replicas: 0 };
}

function validate(set: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(set, 'spec') ?? {};
  findings.requireNonNegative(spec, 'replicas', 'spec');
  findings.requireNonNegative(spec, 'minReadySeconds', 'spec');
  validateTemplate(spec, findings);
  validateReplicaStatus(
    set,
    ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
    findings,
  );
  return findings.errors;
}
