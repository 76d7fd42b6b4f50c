import type { JsonObject } from '../../../util/json-value.ts';
import {
  isSet,
  listIn,
  numberIn,
  objectIn,
  objectsIn,
  setDefault,
  textIn,
} from '../../../util/json-value.ts';
import { timestamp } from '../../../api/conditions.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { DISABLED_POD_FIELDS } from '../pods/disabled-fields.ts';
import { admitPod } from '../pods/pod-admission.ts';
import { requireOverhead } from '../pods/pod-classes.ts';
import { POD_COLUMNS, podRowConditions } from '../pods/pod-columns.ts';
import { shareResources } from '../pods/container-resources.ts';
import { mergeLabelKeys, setAppArmorProfiles } from '../pods/pod-creation.ts';
import { applyPodDefaults } from '../pods/pod-defaults.ts';
import { qosClassOf } from '../pods/pod-qos.ts';
import { resizedSpec, validateEphemeralUpdate, validateResize } from '../pods/pod-resize.ts';
import { validatePodStatus } from '../pods/pod-status.ts';
import { validatePodUpdate } from '../pods/pod-update.ts';
import { validatePodSpec } from '../pods/pod-validation.ts';
import { podWarnings } from '../pods/pod-warnings.ts';
import {
  APP_ARMOR,
  OF_STATIC_POD,
  requireSameProfiles,
  validatePodAnnotations,
} from '../pods/profile-annotations.ts';
import { nameWarnings } from '../pods/template-warnings.ts';
import { ipWarnings } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const POD: BuiltinKind = {
  resource: 'pods',
  revalidatesName: 'object',
  tracksGeneration: true,
  statusKeeps: ['deletionTimestamp', 'ownerReferences'],
  returnsDeleted: true,
  selectableFields: {
    ...fieldsAt('spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName'),
    ...fieldsAt('spec.serviceAccountName', 'status.phase', 'status.nominatedNodeName'),
    'spec.hostNetwork': (pod) => String(objectIn(pod, 'spec')?.['hostNetwork'] === true),
    // As upstream, which knows the field but never sets it.
    'status.podIPs': () => '',
    'status.podIP': (pod) => textIn(objectsIn(objectIn(pod, 'status'), 'podIPs')[0], 'ip'),
  },
  disabledFields: DISABLED_POD_FIELDS,
  hooks: {
    applyDefaults: applyPodDefaults,
    admit: admitPod,
    requireAdmitted: requireOverhead,
    prepareForCreate,
    prepareForUpdate,
    gracePeriodSeconds,
  },
  validate: (pod, previous) => {
    const spec = pod.in('spec');
    validatePodSpec(spec, pod.value.metadata);
    requireAccountOfTokens(spec);
    if (!previous && spec.list('ephemeralContainers').length > 0) {
      spec.forbidden('ephemeralContainers', 'cannot be set on create');
    }
    if (!previous && spec.text('nodeName') !== '' && spec.list('schedulingGates').length > 0) {
      spec.forbidden('nodeName', 'cannot be set until all schedulingGates have been cleared');
    }
    const annotations = pod.in('metadata').in('annotations');
    validatePodAnnotations(annotations, spec);
    if (!previous) requireSameProfiles(annotations, spec, false);
  },
  // These subresources write what the Pod itself may not change, and nothing else.
  validateUpdate: (next, previous, subresource = '') => {
    validateAnnotationUpdate(next, previous);
    if (subresource === 'status') return validatePodStatus(next, previous);
    if (subresource === '') return validatePodUpdate(next, previous);
    const isStatic = previous.metadata.annotations?.[OF_STATIC_POD] !== undefined;
    if (subresource === 'ephemeralcontainers') {
      if (isStatic) next.forbidden('[]', 'static pods do not support ephemeral containers');
      else validateEphemeralUpdate(next, previous);
    } else if (isStatic) next.forbidden('[]', 'static pods cannot be resized');
    else validateResize(next, previous);
  },
  columns: POD_COLUMNS,
  // As upstream, an update of a Pod has none.
  warnings: (pod, previous) =>
    previous ? [] : [...nameWarnings(pod, "the Pod's hostname"), ...podWarnings(pod)],
  statusWarnings: (pod) =>
    ['podIPs', 'hostIPs']
      .flatMap((list) => pod.in('status').items(list))
      .flatMap((each) => ipWarnings(each.at('ip'), each.text('ip'))),
  rowConditions: podRowConditions,
};

/** A token in a volume is one of the Pod's service account. */
function requireAccountOfTokens(spec: CheckedObject): void {
  if (spec.text('serviceAccountName') !== '') return;
  const sources = spec
    .items('volumes')
    .flatMap((volume) => volume.in('projected').items('sources'));
  for (const source of sources) {
    if (!source.has('serviceAccountToken')) continue;
    const why = 'must not be specified when serviceAccountName is not set';
    source.forbidden('serviceAccountToken', why);
  }
}

/** Some annotations stay as they were when the Pod was created. */
function validateAnnotationUpdate(pod: CheckedObject, previous: StoredObject): void {
  const annotations = pod.in('metadata').in('annotations');
  const before = previous.metadata.annotations ?? {};
  for (const key of Object.keys({ ...before, ...annotations.value })) {
    const isMirror = key === OF_STATIC_POD;
    if (!isMirror && !key.startsWith(APP_ARMOR)) continue;
    if (annotations.value[key] === before[key]) continue;
    const verb = before[key] === undefined ? 'add' : 'remove or update';
    const what = isMirror ? 'mirror pod annotation' : 'AppArmor annotations';
    annotations.forbidden(`[${key}]`, `may not ${verb} ${what}`);
  }
}

function prepareForCreate(pod: ApiObject, { now, warn }: HookContext): void {
  const spec = objectIn(pod, 'spec');
  if (!spec) return;
  mergeLabelKeys(pod);
  for (const warning of setAppArmorProfiles(pod)) warn(warning);
  shareResources(spec);
  pod['status'] = {
    phase: 'Pending',
    qosClass: qosClassOf(spec),
    ...(listIn(spec, 'schedulingGates').length > 0 && { conditions: [gatedCondition(now)] }),
  };
}

function gatedCondition(now: number): object {
  return {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: timestamp(now),
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  };
}

function prepareForUpdate(
  pod: ApiObject,
  previous: StoredObject,
  { subresource = '' }: HookContext,
): void {
  const before = objectIn(previous, 'spec') ?? {};
  const after = objectIn(pod, 'spec') ?? {};
  if (subresource === 'resize') {
    const spec = resizedSpec(before, after);
    shareResources(spec);
    pod['spec'] = spec;
  } else if (subresource === 'ephemeralcontainers') {
    const { ephemeralContainers: _, ...spec } = before;
    const { ephemeralContainers } = after;
    pod['spec'] = { ...spec, ...(ephemeralContainers !== undefined && { ephemeralContainers }) };
  } else if (subresource === 'status') {
    prepareStatus(pod, objectIn(previous, 'status') ?? {});
  } else if (isSet(before, 'resources')) {
    // As upstream, for clients that do not know the field.
    setDefault(after, 'resources', before['resources']);
  }
}

/** Fields that a client that does not know them cannot remove. */
const KEPT_CLAIMS = ['resourceClaimStatuses', 'extendedResourceClaimStatus'] as const;

function prepareStatus(pod: ApiObject, before: JsonObject): void {
  const status: JsonObject = { ...objectIn(pod, 'status') };
  pod['status'] = status;
  if (textIn(status, 'qosClass') === '' && isSet(before, 'qosClass')) {
    status['qosClass'] = before['qosClass'];
  }
  for (const field of KEPT_CLAIMS) {
    if (isSet(before, field)) setDefault(status, field, before[field]);
  }
  keepGeneration(status, before);
  const former = objectsIn(before, 'conditions').toReversed();
  for (const condition of objectsIn(status, 'conditions')) {
    const index = former.findLastIndex((each) => each['type'] === condition['type']);
    const [same = {}] = index < 0 ? [] : former.splice(index, 1);
    keepGeneration(condition, same);
  }
}

/** No client clears the generation that a status is about. */
function keepGeneration(holder: JsonObject, before: JsonObject): void {
  const field = 'observedGeneration';
  const generation = numberIn(before, field) ?? 0;
  if (generation !== 0 && !numberIn(holder, field)) holder[field] = generation;
}

/** Returns 0 for a Pod that has no node or has ended, and one second instead of a negative period. */
function gracePeriodSeconds(pod: StoredObject, requested: number | undefined): number {
  const spec = objectIn(pod, 'spec');
  const phase = textIn(objectIn(pod, 'status'), 'phase');
  if (textIn(spec, 'nodeName') === '' || phase === 'Failed' || phase === 'Succeeded') return 0;
  const seconds = requested ?? numberIn(spec, 'terminationGracePeriodSeconds') ?? 0;
  return seconds < 0 ? 1 : seconds;
}
