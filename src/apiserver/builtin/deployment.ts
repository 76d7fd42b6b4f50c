import { equalJson } from '../../api/equal.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { isSet, numberIn, objectIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validateTemplate } from './template-validation.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from './workload.ts';

export const DEPLOYMENT: KindTraits = {
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  statusKeeps: ['labels'],
  hooks: {
    applyDefaults,
    prepareForUpdate,
    validate,
    validateUpdate: validateSameSelector,
  },
};

function applyDefaults(deployment: ApiObject): void {
  const spec = objectIn(deployment, 'spec');
  if (!spec) return;
  setDefault(spec, 'replicas', 1);
  setDefault(spec, 'strategy', {});
  const strategy = objectIn(spec, 'strategy') ?? {};
  setDefault(strategy, 'type', 'RollingUpdate');
  if (strategy['type'] === 'RollingUpdate') {
    setDefault(strategy, 'rollingUpdate', {});
    const rollingUpdate = objectIn(strategy, 'rollingUpdate') ?? {};
    setDefault(rollingUpdate, 'maxUnavailable', '25%');
    setDefault(rollingUpdate, 'maxSurge', '25%');
  }
  setDefault(spec, 'revisionHistoryLimit', 10);
  setDefault(spec, 'progressDeadlineSeconds', 600);
  applyTemplateDefaults(spec);
}

/** Annotations count as substance, because ReplicaSets get copies of them. */
function prepareForUpdate(
  deployment: ApiObject,
  previous: StoredObject,
  { subresource }: { readonly subresource: string | undefined },
): void {
  const { annotations = {}, generation = 0 } = previous.metadata;
  if (subresource !== undefined) return;
  if (!equalJson(deployment.metadata.annotations ?? {}, annotations)) {
    deployment.metadata.generation = generation + 1;
  }
}

function validate(deployment: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(deployment, 'spec') ?? {};
  findings.requireNonNegative(spec, 'replicas', 'spec');
  validateTemplate(spec, findings, 'Deployment');
  validateStrategy(objectIn(spec, 'strategy') ?? {}, findings);
  for (const field of ['minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds']) {
    findings.requireNonNegative(spec, field, 'spec');
  }
  const deadline = numberIn(spec, 'progressDeadlineSeconds');
  if (deadline !== undefined && deadline <= (numberIn(spec, 'minReadySeconds') ?? 0)) {
    findings.invalid(
      'spec.progressDeadlineSeconds',
      deadline,
      'must be greater than minReadySeconds',
    );
  }
  validateReplicaStatus(
    deployment,
    ['updatedReplicas', 'readyReplicas', 'availableReplicas'],
    findings,
  );
  return findings.errors;
}

function validateStrategy(strategy: JsonObject, findings: Findings): void {
  const supported = ['Recreate', 'RollingUpdate'];
  if (!supported.includes(textIn(strategy, 'type'))) {
    findings.errors.push(fieldError.notSupported('spec.strategy', strategy, supported));
  }
  const rollingUpdate = objectIn(strategy, 'rollingUpdate');
  if (textIn(strategy, 'type') === 'Recreate') {
    if (isSet(strategy, 'rollingUpdate')) {
      findings.forbidden(
        'spec.strategy.rollingUpdate',
        "may not be specified when strategy `type` is 'Recreate'",
      );
    }
    return;
  }
  if (!rollingUpdate) return;
  const path = 'spec.strategy.rollingUpdate';
  for (const field of ['maxUnavailable', 'maxSurge'] as const) {
    const value = rollingUpdate[field];
    if (typeof value === 'string' && !/^\d+%$/.test(value)) {
      findings.invalid(
        `${path}.${field}`,
        value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      );
    }
    findings.requireNonNegative(rollingUpdate, field, path);
  }
  const { maxUnavailable, maxSurge } = rollingUpdate;
  if (amount(maxUnavailable) === 0 && amount(maxSurge) === 0) {
    findings.invalid(`${path}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0');
  }
  if (typeof maxUnavailable === 'string' && amount(maxUnavailable) > 100) {
    findings.invalid(`${path}.maxUnavailable`, maxUnavailable, 'must not be greater than 100%');
  }
}

/** The number in `3` or `25%`. */
function amount(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? Number.parseInt(value, 10) || 0 : 0;
}
