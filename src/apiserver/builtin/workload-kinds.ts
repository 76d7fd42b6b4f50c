import { equalJson } from '../../api/equal.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { inheritLabels } from './batch.ts';
import type { KindTraits } from './definition.ts';
import { isSet, numberIn, objectIn, objectsIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { applyClaimSpecDefaults, validateClaimSpec } from './storage.ts';
import { validatePodTemplate, validateTemplate } from './template-validation.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from './workload.ts';

export const POD_TEMPLATE: KindTraits = {
  tracksGeneration: true,
  returnsDeleted: true,
  hooks: {
    applyDefaults: applyTemplateDefaults,
    validate: (object) => {
      const findings = new Findings();
      validatePodTemplate(objectIn(object, 'template') ?? {}, 'template', findings);
      return findings.errors;
    },
  },
};

export const REPLICATION_CONTROLLER: KindTraits = {
  orphansDependents: true,
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  defaults: { 'spec.replicas': 1 },
  selectableFields: {
    'status.replicas': (object) => String(numberIn(objectIn(object, 'status'), 'replicas') ?? 0),
  },
  hooks: {
    applyDefaults: (controller) => {
      const spec = objectIn(controller, 'spec');
      if (!spec) return;
      applyTemplateDefaults(spec);
      const metadata = objectIn(objectIn(spec, 'template'), 'metadata');
      const labels = objectIn(metadata, 'labels');
      if (Object.keys(objectIn(spec, 'selector') ?? {}).length === 0 && labels) {
        spec['selector'] = { ...labels };
      }
      inheritLabels(controller);
    },
    validate: validateReplicationController,
  },
};

function validateReplicationController(controller: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(controller, 'spec') ?? {};
  findings.requireNonNegative(spec, 'minReadySeconds', 'spec');
  const selector = objectIn(spec, 'selector') ?? {};
  if (Object.keys(selector).length === 0) findings.required('spec.selector');
  const template = objectIn(spec, 'template');
  if (!template) findings.required('spec.template');
  else {
    const labels = objectIn(objectIn(template, 'metadata'), 'labels') ?? {};
    if (Object.entries(selector).some(([key, value]) => labels[key] !== value)) {
      const detail = '`selector` does not match template `labels`';
      findings.invalid('spec.template.metadata.labels', labels, detail);
    }
    validatePodTemplate(template, 'spec.template', findings);
    findings.requireOneOf(
      objectIn(template, 'spec') ?? {},
      'restartPolicy',
      ['Always'],
      'spec.template.spec',
    );
  }
  findings.requireNonNegative(spec, 'replicas', 'spec');
  const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
  validateReplicaStatus(controller, parts, findings);
  return findings.errors;
}

export const DAEMON_SET: KindTraits = {
  tracksGeneration: true,
  defaults: { 'spec.revisionHistoryLimit': 10, 'spec.updateStrategy.type': 'RollingUpdate' },
  hooks: {
    applyDefaults: (set) => {
      const spec = objectIn(set, 'spec');
      if (!spec) return;
      const strategy = objectIn(spec, 'updateStrategy') ?? {};
      if (strategy['type'] === 'RollingUpdate') {
        const rollingUpdate = objectIn(strategy, 'rollingUpdate');
        strategy['rollingUpdate'] = { maxSurge: 0, maxUnavailable: 1, ...rollingUpdate };
      }
      applyTemplateDefaults(spec);
      const annotations = { [TEMPLATE_GENERATION]: '1', ...set.metadata.annotations };
      set.metadata.annotations = annotations;
    },
    prepareForUpdate: countTemplates,
    validate: validateDaemonSet,
    validateUpdate: validateSameSelector,
  },
};

/** Annotation with the number of templates so far, which is a field in older versions. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';

function countTemplates(set: ApiObject, previous: StoredObject): void {
  const template = (object: StoredObject) => objectIn(objectIn(object, 'spec'), 'template');
  const last = Number(previous.metadata.annotations?.[TEMPLATE_GENERATION] ?? 1);
  const isSame = equalJson(template(set), template(previous));
  set.metadata.annotations = {
    ...set.metadata.annotations,
    [TEMPLATE_GENERATION]: String(isSame ? last : last + 1),
  };
}

function validateDaemonSet(set: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(set, 'spec') ?? {};
  validateTemplate(spec, findings, 'DaemonSet');
  findings.requireNonNegative(spec, 'minReadySeconds', 'spec');
  const strategy = objectIn(spec, 'updateStrategy') ?? {};
  const types = ['RollingUpdate', 'OnDelete'];
  if (!types.includes(textIn(strategy, 'type'))) {
    findings.notSupported('spec.updateStrategy', strategy, types);
  }
  const rollingUpdate = objectIn(strategy, 'rollingUpdate');
  if (rollingUpdate) {
    const path = 'spec.updateStrategy.rollingUpdate';
    const { maxSurge, maxUnavailable } = rollingUpdate;
    const isZero = (value: unknown) => value === undefined || value === 0 || value === '0%';
    if (isZero(maxSurge) && isZero(maxUnavailable)) {
      findings.required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0');
    } else if (!isZero(maxSurge) && !isZero(maxUnavailable)) {
      const detail = 'may not be set when maxUnavailable is non-zero';
      findings.invalid(`${path}.maxSurge`, maxSurge, detail);
    }
  }
  findings.requireNonNegative(spec, 'revisionHistoryLimit', 'spec');
  return findings.errors;
}

export const STATEFUL_SET: KindTraits = {
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  immutable: [
    'spec.selector',
    'spec.volumeClaimTemplates',
    'spec.serviceName',
    'spec.podManagementPolicy',
  ],
  defaults: {
    'spec.podManagementPolicy': 'OrderedReady',
    'spec.replicas': 1,
    'spec.revisionHistoryLimit': 10,
    'spec.persistentVolumeClaimRetentionPolicy': {},
    'spec.persistentVolumeClaimRetentionPolicy.whenDeleted': 'Retain',
    'spec.persistentVolumeClaimRetentionPolicy.whenScaled': 'Retain',
    'spec.volumeClaimTemplates[].spec.volumeMode': 'Filesystem',
    'spec.volumeClaimTemplates[].status.phase': 'Pending',
    'spec.volumeClaimTemplates[].apiVersion': 'v1',
    'spec.volumeClaimTemplates[].kind': 'PersistentVolumeClaim',
  },
  hooks: { applyDefaults: applySetDefaults, validate: validateStatefulSet },
};

function applySetDefaults(set: ApiObject): void {
  const spec = objectIn(set, 'spec');
  if (!spec) return;
  const strategy = objectIn(spec, 'updateStrategy') ?? {};
  if (textIn(strategy, 'type') === '') {
    strategy['type'] = 'RollingUpdate';
    setDefault(strategy, 'rollingUpdate', {});
  }
  const rollingUpdate = objectIn(strategy, 'rollingUpdate');
  if (rollingUpdate && strategy['type'] === 'RollingUpdate') {
    setDefault(rollingUpdate, 'partition', 0);
    setDefault(rollingUpdate, 'maxUnavailable', 1);
  }
  for (const claim of objectsIn(spec, 'volumeClaimTemplates')) applyClaimSpecDefaults(claim);
  applyTemplateDefaults(spec);
}

function validateStatefulSet(set: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(set, 'spec') ?? {};
  const policy = textIn(spec, 'podManagementPolicy');
  if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    findings.invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'");
  }
  const strategy = objectIn(spec, 'updateStrategy') ?? {};
  const path = 'spec.updateStrategy';
  if (!['RollingUpdate', 'OnDelete'].includes(textIn(strategy, 'type'))) {
    findings.invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'");
  } else if (strategy['type'] === 'OnDelete' && isSet(strategy, 'rollingUpdate')) {
    const detail = "only allowed for updateStrategy 'RollingUpdate'";
    findings.invalid(`${path}.rollingUpdate`, strategy['rollingUpdate'], detail);
  }
  const claims = objectsIn(spec, 'volumeClaimTemplates');
  for (const [index, claim] of claims.entries()) {
    const at = `spec.volumeClaimTemplates[${index}]`;
    validateClaimSpec(objectIn(claim, 'spec') ?? {}, `${at}.spec`, findings);
  }
  findings.requireNonNegative(spec, 'replicas', 'spec');
  findings.requireNonNegative(spec, 'minReadySeconds', 'spec');
  findings.requireFormat(spec, 'serviceName', 'dns1123Label', 'spec');
  // Volumes of the claims are added to the Pods by the controller.
  const volumes = claims.map((claim) => ({ name: textIn(objectIn(claim, 'metadata'), 'name') }));
  validateTemplate(withVolumes(spec, volumes), findings, 'StatefulSet');
  validateReplicaStatus(set, ['readyReplicas', 'currentReplicas', 'updatedReplicas'], findings);
  return findings.errors;
}

function withVolumes(
  spec: Readonly<Record<string, unknown>>,
  added: readonly { readonly name: string }[],
): Record<string, unknown> {
  const template = objectIn(spec, 'template');
  const podSpec = objectIn(template, 'spec');
  if (added.length === 0 || !podSpec) return { ...spec };
  const names = new Set(added.map(({ name }) => name));
  const others = objectsIn(podSpec, 'volumes').filter(
    (volume) => !names.has(textIn(volume, 'name')),
  );
  const volumes = [...others, ...added.map((volume) => ({ ...volume, emptyDir: {} }))];
  return { ...spec, template: { ...template, spec: { ...podSpec, volumes } } };
}
