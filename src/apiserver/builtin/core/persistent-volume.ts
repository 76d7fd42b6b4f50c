import { utf8Length } from '../../../util/bytes.ts';
import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import { timestamp } from '../../../api/conditions.ts';
import { equalJson } from '../../../api/equal.ts';
import { compareQuantities } from '../../../api/quantity.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field } from '../../table/column.ts';
import {
  ATTRIBUTES_CLASS,
  STORAGE_CLASS_COLUMN,
  VOLUME_ANNOTATIONS,
  VOLUME_MODE,
  accessModes,
  volumePhase,
} from './volume-columns.ts';
import { structDiff } from '../shared/internal-structs.ts';
import { validateNodeSelector } from '../pods/pod-placement.ts';
import {
  COMMON_SOURCES,
  requireDriverName,
  requireHostPath,
  validateIscsiTarget,
} from '../pods/volume-sources.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireAmountOf, requireVolumeMode, validateAccessModes } from '../shared/claim-spec.ts';
import { requireNoBacksteps } from '../shared/local-paths.ts';
import { VOLUMES, annotationWarnings, nodeSelectorWarnings } from '../shared/warnings.ts';

export const PERSISTENT_VOLUME: BuiltinKind = {
  resource: 'persistentvolumes',
  revalidatesName: 'object',
  returnsDeleted: true,
  defaults: {
    'spec.persistentVolumeReclaimPolicy': 'Retain',
    'spec.volumeMode': 'Filesystem',
    'status.phase': 'Pending',
  },
  hooks: {
    applyDefaults: (volume) => {
      const spec = objectIn(volume, 'spec');
      if (!spec) return;
      const hostPath = objectIn(spec, 'hostPath');
      if (hostPath && !isSet(hostPath, 'type')) hostPath['type'] = '';
    },
    prepareForCreate: (volume, { now }) => markPhase(volume, undefined, now),
    prepareForUpdate: (volume, previous, { now }) => markPhase(volume, previous, now),
  },
  validate: validateVolume,
  validateUpdate: (next, previous, subresource) => {
    if (subresource === undefined) validateVolumeUpdate(next, previous);
  },
  columns: [
    NAME_COLUMN,
    field('Capacity', 'spec.capacity.storage', '0'),
    column('Access Modes', 'Ways to mount the volume.', (volume) =>
      accessModes(objectIn(volume, 'spec') ?? {}),
    ),
    field('Reclaim Policy', 'spec.persistentVolumeReclaimPolicy'),
    column('Status', 'Phase of the volume.', volumePhase),
    column('Claim', 'Namespace and name of the claim.', (volume) => {
      const claim = objectIn(objectIn(volume, 'spec') ?? {}, 'claimRef');
      return claim ? `${textIn(claim, 'namespace')}/${textIn(claim, 'name')}` : '';
    }),
    STORAGE_CLASS_COLUMN,
    ATTRIBUTES_CLASS,
    field('Reason', 'status.reason'),
    AGE_COLUMN,
    VOLUME_MODE,
  ],
  warnings: volumeWarnings,
};

/** Records when the phase changed, unless the client does. */
function markPhase(volume: ApiObject, previous: StoredObject | undefined, now: number): void {
  const status = objectIn(volume, 'status');
  const before = objectIn(previous, 'status');
  if (!status) return;
  const field = 'lastPhaseTransitionTime';
  const [time, former] = [textIn(status, field), textIn(before, field)];
  const isSame = textIn(status, 'phase') === textIn(before, 'phase');
  const isKept = isSame ? time !== '' || former === '' : time !== '' && time !== former;
  if (!isKept) volume['status'] = { ...status, [field]: isSame ? former : timestamp(now) };
}

function validateVolume(volume: CheckedObject): void {
  const spec = volume.in('spec');
  validateMountOptions(volume);
  validateAccessModes(spec);
  const { value: capacity } = spec.in('capacity');
  if (Object.keys(capacity).length === 0) spec.required('capacity');
  if (Object.keys(capacity).join() !== 'storage') spec.notSupported('capacity', ['storage']);
  for (const [name, amount] of Object.entries(capacity)) {
    const field = `capacity[${name}]`;
    requireAmountOf(spec, field, String(amount));
    if (compareQuantities(String(amount), '0') > 0) continue;
    spec.invalid(field, 'must be greater than zero', amount);
  }
  spec.requireOneOf('persistentVolumeReclaimPolicy', ['Delete', 'Recycle', 'Retain']);
  const affinity = spec.get('nodeAffinity');
  const required = affinity?.get('required');
  if (required) validateNodeSelector(required);
  else affinity?.required('required', 'must specify required node constraints');
  const [source, ...others] = VOLUME_SOURCES.filter((field) => spec.get(field));
  if (source === undefined) spec.required('', 'must specify a volume type');
  else {
    const at = source === 'gcePersistentDisk' ? 'persistentDisk' : source;
    const checked = new CheckedObject(spec.in(source).value, spec.at(at), spec.errors);
    if (source === 'iscsi') validateIscsi(checked, volume.in('metadata').text('name'));
    else (OF_VOLUMES[source] ?? COMMON_SOURCES[source])?.(checked, spec);
  }
  for (const field of others) {
    // As upstream, whose paths are these.
    if (field === 'flexVolume') COMMON_SOURCES[field]?.(spec.in(field), spec);
    else {
      const path = field === 'cephfs' ? 'cephFS' : field;
      spec.forbidden(path, 'may not specify more than 1 volume type');
    }
  }
  const policy = 'persistentVolumeReclaimPolicy';
  const isRoot = isRootPath(spec.in('hostPath').text('path'));
  if (isRoot && spec.text(policy) === 'Recycle') {
    spec.forbidden(policy, "may not be 'recycle' for a hostPath mount of '/'");
  }
  spec.requireFormat('storageClassName', 'dns1123Subdomain');
  requireVolumeMode(spec);
  if (!spec.has('volumeAttributesClassName')) return;
  if (spec.text('volumeAttributesClassName') === '') {
    spec.required('volumeAttributesClassName', 'an empty string is disallowed');
  }
  spec.requireFormat('volumeAttributesClassName', 'dns1123Subdomain');
  const why = 'has to be specified when using volumeAttributesClassName';
  if (!spec.get('csi')) spec.required('csi', why);
}

/** The sources of a volume in the order in which upstream validates them. */
const VOLUME_SOURCES =
  'hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi cinder fc flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos csi'.split(
    ' ',
  );

/** The rules of sources that differ from those in a Pod, mostly as they name the namespace of a Secret. */
const OF_VOLUMES: Readonly<Record<string, (source: CheckedObject, spec: CheckedObject) => void>> = {
  hostPath: requireHostPath,
  glusterfs: (source) => {
    source.requireText('endpoints');
    source.requireText('path');
    if (!source.has('endpointsNamespace')) return;
    const namespace = source.text('endpointsNamespace');
    const why = 'if the endpointnamespace is set, it must be a valid namespace name';
    if (namespace === '') source.invalid('endpointsNamespace', why);
    source.requireFormat('endpointsNamespace', 'dns1123Label');
  },
  cinder: (source) => {
    source.requireText('volumeID');
    requireSecretText(source, 'secretRef');
  },
  azureFile: (source) => {
    source.requireText('secretName');
    source.requireText('shareName');
    if (source.has('secretNamespace')) source.requireText('secretNamespace');
  },
  local: (source, spec) => {
    source.requireText('path');
    requireNoBacksteps(source, 'path');
    if (!spec.get('nodeAffinity')) {
      spec.required('nodeAffinity', 'Local volume requires node affinity');
    }
  },
  storageos: (source) => {
    source.requireText('volumeName');
    source.requireFormat('volumeName', 'dns1123Label');
    source.requireFormat('volumeNamespace', 'dns1123Label');
    requireSecretText(source, 'secretRef');
  },
  csi: (source) => {
    requireDriverName(source, 'driver');
    source.requireText('volumeHandle');
    for (const field of CSI_SECRETS) {
      requireSecretText(source, field);
      const secret = source.get(field);
      secret?.requireFormat('name', 'dns1123Subdomain');
      secret?.requireFormat('namespace', 'dns1123Label');
    }
  },
};

/** @param name the name of the volume */
function validateIscsi(source: CheckedObject, name: string): void {
  validateIscsiTarget(source, 'must be valid format');
  source.get('secretRef')?.requireText('name');
  const portal = source.text('targetPortal');
  if (!source.has('initiatorName') || utf8Length(`${name}:${portal}`) <= 64) return;
  const why =
    'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.';
  // The path of upstream.
  source.invalid('targetportal', why, portal);
}

/** Sources whose mount options an annotation may set. */
const WITH_MOUNT_OPTIONS = VOLUME_SOURCES.filter(
  (field) =>
    !/^(?:hostPath|flocker|fc|flexVolume|portworxVolume|scaleIO|local|storageos|csi)$/.test(field),
);

const MOUNT_OPTIONS = 'volume.beta.kubernetes.io/mount-options';

function validateMountOptions(volume: CheckedObject): void {
  const annotations = volume.in('metadata').in('annotations');
  const spec = volume.in('spec');
  if (!annotations.has(MOUNT_OPTIONS) || WITH_MOUNT_OPTIONS.some((field) => spec.get(field)))
    return;
  annotations.forbidden(MOUNT_OPTIONS, 'may not specify mount options for this volume type');
}

const EXPANSION = 'controllerExpandSecretRef';

const CSI_SECRETS = [
  'controllerPublishSecretRef',
  EXPANSION,
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
];

function requireSecretText(source: CheckedObject, field: string): void {
  const secret = source.get(field);
  secret?.requireText('name');
  secret?.requireText('namespace');
}

const STABLE_LABELS: ReadonlyMap<unknown, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['beta.kubernetes.io/os', 'kubernetes.io/os'],
  ['beta.kubernetes.io/arch', 'kubernetes.io/arch'],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type'],
]);

/** Whether a value is as it was, except that its labels may have their stable names. */
function isSameOrStable(is: unknown, was: unknown): boolean {
  if (Array.isArray(is) && Array.isArray(was)) {
    return is.length === was.length && is.every((item, index) => isSameOrStable(item, was[index]));
  }
  if (!isRecord(is) || !isRecord(was)) {
    return is === was || (is !== undefined && is === STABLE_LABELS.get(was));
  }
  return Object.keys({ ...is, ...was }).every((key) => isSameOrStable(is[key], was[key]));
}

/** The source and the mode of a volume do not change. */
function validateVolumeUpdate(next: CheckedObject, previous: StoredObject): void {
  const spec = next.in('spec');
  const before = objectIn(previous, 'spec') ?? {};
  const csi = objectIn(spec.value, 'csi');
  // A Secret for expansion may be added.
  const isAdded = csi && isSet(before, 'csi') && !isSet(objectIn(before, 'csi'), EXPANSION);
  const after = isAdded ? { ...spec.value, csi: { ...csi, [EXPANSION]: undefined } } : spec.value;
  const diff = structDiff('PersistentVolumeSource', before, after);
  if (diff !== '') {
    const why = 'spec.persistentvolumesource is immutable after creation';
    spec.forbidden('persistentvolumesource', `${why}\n${diff}`);
  }
  if (!equalJson(spec.value['volumeMode'], before['volumeMode'])) {
    next.invalid('volumeMode', 'field is immutable', spec.value['volumeMode'] ?? null);
  }
  const [affinity, was] = [spec.value['nodeAffinity'], before['nodeAffinity']];
  if (was !== undefined && !isSameOrStable(affinity, was)) {
    const why = 'field is immutable, except for updating from beta label to GA';
    next.invalid('nodeAffinity', why, affinity ?? null);
  }
  if (isSet(before, 'volumeAttributesClassName') && !spec.has('volumeAttributesClassName')) {
    spec.forbidden('volumeAttributesClassName', 'update from non-nil value to nil is forbidden');
  }
}

/** Whether an absolute path is the root, as Go's `filepath.Clean` finds. */
function isRootPath(path: string): boolean {
  let depth = 0;
  for (const part of path.split('/')) {
    if (part === '..') depth = Math.max(0, depth - 1);
    else if (part !== '' && part !== '.') depth++;
  }
  return path.startsWith('/') && depth === 0;
}

type Texts = Readonly<Record<string, string>>;

/** The sources of PersistentVolumes among them, with their names in messages. */
const PERSISTENT_SOURCES: Texts = {
  cephfs: 'cephfs',
  photonPersistentDisk: 'photonPersistentDisk',
  scaleIO: 'scaleIO',
  storageos: 'storageOS',
  glusterfs: 'glusterfs',
  rbd: 'rbd',
};

function volumeWarnings(volume: CheckedObject): string[] {
  const spec = volume.in('spec');
  const policy = 'persistentVolumeReclaimPolicy';
  return [
    ...annotationWarnings(volume, VOLUME_ANNOTATIONS),
    ...(spec.text(policy) === 'Recycle'
      ? [
          `${spec.at(policy)}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.`,
        ]
      : []),
    ...nodeSelectorWarnings(spec.in('nodeAffinity').in('required')),
    ...Object.entries(PERSISTENT_SOURCES)
      .filter(([source]) => spec.has(source))
      .map(([source, name]) => `${spec.at(name)}: ${VOLUMES[source]}`),
  ];
}
