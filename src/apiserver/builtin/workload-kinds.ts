import { numberIn, objectIn, objectsIn, setDefault, textIn } from '../../util/json-value.ts';
import { equalJson } from '../../api/equal.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { inheritLabels } from './batch.ts';
import { CheckedObject, checked } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validateClaimSpec } from './storage.ts';
import { NO_MATCH, validatePodTemplate, validateTemplate } from './template-validation.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from './workload.ts';

export const POD_TEMPLATE: KindTraits = {
  tracksGeneration: true,
  returnsDeleted: true,
  hooks: {
    applyDefaults: applyTemplateDefaults,
    validate: checked((object) => validatePodTemplate(object.in('template'))),
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
    validate: checked(validateReplicationController),
  },
};

function validateReplicationController(controller: CheckedObject): void {
  const spec = controller.in('spec');
  spec.requireNonNegative('minReadySeconds');
  const selector = Object.entries(spec.in('selector').value);
  if (selector.length === 0) spec.required('selector');
  const template = spec.get('template');
  if (!template) spec.required('template');
  else {
    const labels = template.in('metadata').in('labels');
    if (selector.some(([key, value]) => labels.value[key] !== value)) {
      labels.invalid('', NO_MATCH, labels.value);
    }
    validatePodTemplate(template);
    template.in('spec').requireOneOf('restartPolicy', ['Always']);
  }
  spec.requireNonNegative('replicas');
  const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
  validateReplicaStatus(controller, parts);
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
    validate: checked(validateDaemonSet),
    validateUpdate: checked(validateSameSelector),
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

function validateDaemonSet(set: CheckedObject): void {
  const spec = set.in('spec');
  validateTemplate(spec, 'DaemonSet');
  spec.requireNonNegative('minReadySeconds');
  const strategy = spec.in('updateStrategy');
  const types = ['RollingUpdate', 'OnDelete'];
  if (!types.includes(strategy.text('type'))) strategy.notSupported('', types, strategy.value);
  const update = strategy.get('rollingUpdate');
  if (update) {
    const { maxSurge, maxUnavailable } = update.value;
    const isZero = (value: unknown) => value === undefined || value === 0 || value === '0%';
    if (isZero(maxSurge) && isZero(maxUnavailable)) {
      update.required('maxUnavailable', 'cannot be 0 when maxSurge is 0');
    } else if (!isZero(maxSurge) && !isZero(maxUnavailable)) {
      update.invalid('maxSurge', 'may not be set when maxUnavailable is non-zero');
    }
  }
  spec.requireNonNegative('revisionHistoryLimit');
}

export const STATEFUL_SET: KindTraits = {
  nameFormat: 'dns1123Label',
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
  hooks: { applyDefaults: applySetDefaults, validate: checked(validateStatefulSet) },
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
  applyTemplateDefaults(spec);
}

function validateStatefulSet(set: CheckedObject): void {
  const spec = set.in('spec');
  const policy = spec.text('podManagementPolicy');
  if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    spec.invalid('podManagementPolicy', "must be 'OrderedReady' or 'Parallel'", policy);
  }
  const strategy = spec.in('updateStrategy');
  const type = strategy.text('type');
  if (type !== 'RollingUpdate' && type !== 'OnDelete') {
    strategy.invalid('', "must be 'RollingUpdate' or 'OnDelete'", strategy.value);
  } else if (type === 'OnDelete' && strategy.has('rollingUpdate')) {
    strategy.invalid('rollingUpdate', "only allowed for updateStrategy 'RollingUpdate'");
  }
  const rolling = strategy.get('rollingUpdate');
  if (type === 'RollingUpdate' && rolling) validateRolling(rolling);
  const retention = spec.in('persistentVolumeClaimRetentionPolicy');
  for (const field of ['whenDeleted', 'whenScaled']) {
    const policies = ['Delete', 'Retain'];
    if (retention.has(field) && !policies.includes(retention.text(field))) {
      retention.notSupported(field, policies);
    }
  }
  spec.in('ordinals').requireNonNegative('start');
  const claims = spec.items('volumeClaimTemplates');
  for (const claim of claims) validateClaimSpec(claim.in('spec'));
  spec.requireNonNegative('replicas', 'minReadySeconds');
  spec.requireFormat('serviceName', 'dns1123Label');
  // Volumes of the claims are added to the Pods by the controller.
  const volumes = claims.map((claim) => ({ name: claim.in('metadata').text('name') }));
  validateTemplate(withVolumes(spec, volumes), 'StatefulSet');
  validateReplicaStatus(set, ['readyReplicas', 'currentReplicas', 'updatedReplicas']);
}

function validateRolling(rolling: CheckedObject): void {
  rolling.requireNonNegative('partition');
  const field = 'maxUnavailable';
  const most = rolling.value[field];
  if (typeof most === 'string' && !/^\d+%$/.test(most)) {
    const why =
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    rolling.invalid(field, why);
  } else if (typeof most === 'string' && parseInt(most, 10) > 100) {
    rolling.invalid(field, 'must not be greater than 100%');
  } else if (typeof most === 'number' && most < 0) {
    rolling.invalid(field, 'must be greater than or equal to 0');
  }
  if (most === 0 || most === '0%') rolling.invalid(field, 'cannot be 0');
}

function withVolumes(
  { value: spec, path, errors }: CheckedObject,
  added: readonly { readonly name: string }[],
): CheckedObject {
  const template = objectIn(spec, 'template');
  const podSpec = objectIn(template, 'spec');
  if (added.length === 0 || !podSpec) return new CheckedObject(spec, path, errors);
  const names = new Set(added.map(({ name }) => name));
  const others = objectsIn(podSpec, 'volumes').filter(
    (volume) => !names.has(textIn(volume, 'name')),
  );
  const volumes = [...others, ...added.map((volume) => ({ ...volume, emptyDir: {} }))];
  const filled = { ...template, spec: { ...podSpec, volumes } };
  return new CheckedObject({ ...spec, template: filled }, path, errors);
}
