import { typedText } from '../../../api/field-error.ts';
import { numberIn, objectIn, objectsIn, setDefault, textIn } from '../../../util/json-value.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns } from '../../table/column.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { CONTAINER_COLUMNS } from '../pods/template-columns.ts';
import { validateTemplate } from '../pods/template-validation.ts';
import { workloadWarnings } from '../pods/template-warnings.ts';
import {
  WORKLOAD_SCALE,
  amountIn,
  requireAmount,
  validateReplicaStatus,
} from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateClaimSpec } from '../shared/claim-spec.ts';
import { requireCollisionsKept } from '../shared/status-validation.ts';
import { claimWarnings } from '../shared/warnings.ts';

export const STATEFUL_SET: BuiltinKind = {
  resource: 'apps/statefulsets',
  nameFormat: 'dns1123Label',
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  immutable: ['spec.selector', 'spec.volumeClaimTemplates', 'spec.podManagementPolicy'],
  defaults: {
    'spec.podManagementPolicy': 'OrderedReady',
    'spec.replicas': 1,
    'spec.revisionHistoryLimit': 10,
    'spec.persistentVolumeClaimRetentionPolicy': {},
    'spec.persistentVolumeClaimRetentionPolicy.whenDeleted': 'Retain',
    'spec.persistentVolumeClaimRetentionPolicy.whenScaled': 'Retain',
    'spec.volumeClaimTemplates[].spec.volumeMode': 'Filesystem',
    'spec.volumeClaimTemplates[].status.phase': 'Pending',
  },
  disabledFields: disabledTemplateFields(),
  hooks: { applyDefaults: applySetDefaults },
  validate: validateStatefulSet,
  validateUpdate: (set, previous) => {
    requireCollisionsKept(set, previous);
    const spec = set.in('spec');
    const name = spec.text('serviceName');
    if (name === textIn(objectIn(previous, 'spec'), 'serviceName')) return;
    spec.invalid('serviceName', 'field is immutable', name);
  },
  columns: [
    ...columns(
      column('Ready', 'Ready Pods, of all desired ones.', (set) => {
        const ready = numberIn(objectIn(set, 'status'), 'readyReplicas') ?? 0;
        return `${ready}/${numberIn(objectIn(set, 'spec'), 'replicas') ?? 0}`;
      }),
    ),
    ...CONTAINER_COLUMNS,
  ],
  warnings: (set, previous) => [
    ...workloadWarnings('spec.template', false)(set, previous),
    ...set
      .in('spec')
      .items('volumeClaimTemplates')
      // The paths of upstream.
      .map((claim) => new CheckedObject(claim.in('spec').value, claim.at(previous ? 'Spec' : '')))
      .flatMap(claimWarnings),
    ...((set.in('spec').number('revisionHistoryLimit') ?? 0) < 0
      ? [
          'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended',
        ]
      : []),
  ],
};

function applySetDefaults(set: ApiObject): void {
  const spec = objectIn(set, 'spec');
  if (!spec) return;
  for (const claim of objectsIn(spec, 'volumeClaimTemplates')) {
    claim['apiVersion'] = 'v1';
    claim['kind'] = 'PersistentVolumeClaim';
  }
  const strategy = objectIn(spec, 'updateStrategy') ?? {};
  if (textIn(strategy, 'type') === '') {
    strategy['type'] = 'RollingUpdate';
    setDefault(strategy, 'rollingUpdate', {});
  }
  const rollingUpdate = objectIn(strategy, 'rollingUpdate');
  if (rollingUpdate && strategy['type'] === 'RollingUpdate') {
    setDefault(rollingUpdate, 'partition', 0);
    // An empty text is set, and no percentage.
    rollingUpdate['maxUnavailable'] ??= 1;
  }
  applyTemplateDefaults(spec);
}

function validateStatefulSet(set: CheckedObject, previous: StoredObject | undefined): void {
  const spec = set.in('spec');
  const policy = spec.text('podManagementPolicy');
  if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    const why = "must be 'OrderedReady' or 'Parallel'";
    spec.invalid('podManagementPolicy', why, typedText(policy));
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
    const policies = ['Retain', 'Delete'];
    if (retention.has(field) && !policies.includes(retention.text(field))) {
      retention.notSupported(field, policies);
    }
  }
  spec.in('ordinals').requireNonNegative('start');
  const claims = spec.items('volumeClaimTemplates');
  spec.requireNonNegative('replicas', 'minReadySeconds');
  // As upstream, an update may keep what an older version has accepted.
  if (!previous) {
    for (const claim of claims) validateClaimSpec(claim.in('spec'));
    spec.requireFormat('serviceName', 'dns1123Label');
  }
  // The controller adds the volumes of the claims to the Pods, and their names in the DNS.
  const names = new Set(claims.map((claim) => claim.in('metadata').text('name')));
  const volumes = Array.from(names, (name) => ({
    name,
    persistentVolumeClaim: { claimName: name },
  }));
  validateTemplate(complete(spec, volumes), 'StatefulSet');
  const parts = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'];
  validateReplicaStatus(set, parts, 'status.readyReplicas');
}

function validateRolling(rolling: CheckedObject): void {
  rolling.requireNonNegative('partition');
  const field = 'maxUnavailable';
  if (!rolling.has(field)) return;
  requireAmount(rolling, field, '100%');
  if (amountIn(rolling, field) === 0) rolling.invalid(field, 'cannot be 0');
}

function complete(
  { value: spec, path, errors }: CheckedObject,
  added: readonly { readonly name: string }[],
): CheckedObject {
  const template = objectIn(spec, 'template');
  const podSpec = objectIn(template, 'spec');
  if (!podSpec) return new CheckedObject(spec, path, errors);
  const { hostname: _, subdomain: _subdomain, ...rest } = podSpec;
  const names = new Set(added.map(({ name }) => name));
  const others = objectsIn(podSpec, 'volumes').filter(
    (volume) => !names.has(textIn(volume, 'name')),
  );
  const volumes = [...added, ...others];
  const filled = { ...template, spec: { ...rest, volumes } };
  return new CheckedObject({ ...spec, template: filled }, path, errors);
}
