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
import { fieldError } from '../../../api/field-error.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { admitPod } from '../pods/pod-admission.ts';
import { requireOverhead } from '../pods/pod-classes.ts';
import { POD_COLUMNS, podRowConditions } from '../pods/pod-columns.ts';
import { shareResources } from '../pods/container-resources.ts';
import { applyPodDefaults } from '../pods/pod-defaults.ts';
import { qosClassOf } from '../pods/pod-qos.ts';
import { validatePodStatus } from '../pods/pod-status.ts';
import { validatePodUpdate } from '../pods/pod-update.ts';
import { validatePodSpec } from '../pods/pod-validation.ts';
import { podWarnings } from '../pods/pod-warnings.ts';
import {
  APP_ARMOR,
  requireSameProfiles,
  validateProfileAnnotations,
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
  hooks: {
    applyDefaults: applyPodDefaults,
    admit: admitPod,
    requireAdmitted: requireOverhead,
    prepareForCreate,
    prepareForUpdate,
    gracePeriodSeconds,
  },
  validate: (pod, previous) => {
    requireNodeOfMirrorPod(pod);
    requireDeletionCost(pod);
    const spec = pod.in('spec');
    validatePodSpec(spec, pod.value.metadata.name);
    requireAccountOfTokens(spec);
    if (!previous && spec.list('ephemeralContainers').length > 0) {
      spec.forbidden('ephemeralContainers', 'cannot be set on create');
    }
    if (!previous && spec.text('nodeName') !== '' && spec.list('schedulingGates').length > 0) {
      spec.forbidden('nodeName', 'cannot be set until all schedulingGates have been cleared');
    }
    const annotations = pod.in('metadata').in('annotations');
    validateProfileAnnotations(annotations, spec);
    if (!previous) requireSameProfiles(annotations, spec, false);
  },
  // These subresources write what the Pod itself may not change, and nothing else.
  validateUpdate: (next, previous, subresource = '') => {
    validateAnnotationUpdate(next, previous);
    if (subresource === 'status') return validatePodStatus(next, previous);
    if (subresource === 'ephemeralcontainers') return requireNoStaticPod(next, previous);
    if (subresource === 'resize') return;
    validatePodUpdate(next, previous);
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

/** The annotation with the order in which the Pods of a ReplicaSet are deleted. */
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

function requireDeletionCost({ value, errors }: CheckedObject<StoredObject>): void {
  const cost = value.metadata.annotations?.[DELETION_COST] ?? '0';
  if (/^(?:0|-?[1-9]\d*)$/.test(cost) && Math.abs(Number(cost) + 0.5) < 2 ** 31) return;
  const field = `metadata.annotations[${DELETION_COST}]`;
  errors.push(fieldError.invalid(field, cost, 'must be a 32bit integer'));
}

/** The annotation of a mirror Pod, which a kubelet creates for a static Pod. */
const OF_STATIC_POD = 'kubernetes.io/config.mirror';

/** A mirror Pod is on a node. */
function requireNodeOfMirrorPod({ value, errors }: CheckedObject<StoredObject>): void {
  const hash = value.metadata.annotations?.[OF_STATIC_POD];
  if (hash === undefined || textIn(objectIn(value, 'spec'), 'nodeName') !== '') return;
  const detail = 'must set spec.nodeName if mirror pod annotation is set';
  errors.push(fieldError.invalid(`metadata.annotations[${OF_STATIC_POD}]`, hash, detail));
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

function requireNoStaticPod({ errors }: CheckedObject, previous: StoredObject): void {
  if (previous.metadata.annotations?.[OF_STATIC_POD] === undefined) return;
  errors.push(fieldError.forbidden('[]', 'static pods do not support ephemeral containers'));
}

function prepareForCreate(pod: ApiObject, { now }: HookContext): void {
  const spec = objectIn(pod, 'spec');
  if (!spec) return;
  requirePositiveGracePeriod(spec);
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

/** A negative period is one second. */
function requirePositiveGracePeriod(spec: JsonObject): void {
  if ((numberIn(spec, 'terminationGracePeriodSeconds') ?? 0) < 0) {
    spec['terminationGracePeriodSeconds'] = 1;
  }
}

function prepareForUpdate(pod: ApiObject, previous: StoredObject): void {
  const spec = objectIn(pod, 'spec');
  const before = objectIn(previous, 'spec');
  if (spec && before) {
    // As upstream, for clients that do not know the field.
    if (isSet(before, 'resources')) setDefault(spec, 'resources', before['resources']);
    requirePositiveGracePeriod(spec);
  }
  const status = objectIn(pod, 'status');
  const qosClass = textIn(objectIn(previous, 'status'), 'qosClass');
  if (status && qosClass && !isSet(status, 'qosClass')) pod['status'] = { ...status, qosClass };
}

/** Returns 0 for a Pod that has no node or has ended, and one second instead of a negative period. */
function gracePeriodSeconds(pod: StoredObject, requested: number | undefined): number {
  const spec = objectIn(pod, 'spec');
  const phase = textIn(objectIn(pod, 'status'), 'phase');
  if (textIn(spec, 'nodeName') === '' || phase === 'Failed' || phase === 'Succeeded') return 0;
  const seconds = requested ?? numberIn(spec, 'terminationGracePeriodSeconds') ?? 0;
  return seconds < 0 ? 1 : seconds;
}
