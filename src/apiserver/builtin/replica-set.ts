import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { KindTraits } from './definition.ts';
import { objectIn, setDefault } from './fields.ts';
import { Findings } from './findings.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validateTemplate } from './template-validation.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from './workload.ts';

export const REPLICA_SET: KindTraits = {
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  hooks: {
    applyDefaults,
    validate,
    validateUpdate: validateSameSelector,
  },
};

function applyDefaults(set: ApiObject): void {
  const spec = objectIn(set, 'spec');
  if (!spec) return;
  setDefault(spec, 'replicas', 1);
  applyTemplateDefaults(spec);
}

function validate(set: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(set, 'spec') ?? {};
  findings.requireNonNegative(spec, 'replicas', 'spec');
  findings.requireNonNegative(spec, 'minReadySeconds', 'spec');
  validateTemplate(spec, findings, 'ReplicaSet');
  validateReplicaStatus(
    set,
    ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
    findings,
  );
  return findings.errors;
}
