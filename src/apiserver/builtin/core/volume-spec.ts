import { utf8Length } from '../../../util/bytes.ts';
import { compareQuantities } from '../../../api/quantity.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import { validateNodeSelector } from '../pods/pod-placement.ts';
import {
  COMMON_SOURCES,
  requireDriverName,
  requireHostPath,
  validateIscsiTarget,
} from '../pods/volume-sources.ts';
import { requireAmountOf, requireVolumeMode, validateAccessModes } from '../shared/claim-spec.ts';
import { requireNoBacksteps } from '../shared/local-paths.ts';

/**
 * Reports what is wrong with the spec of a PersistentVolume.
 *
 * @param name the name of the volume
 */
export function validateVolumeSpec(spec: CheckedObject, name: string): void {
  validateAccessModes(spec);
  const { value: capacity } = spec.in('capacity');
  if (Object.keys(capacity).length === 0) spec.required('capacity');
  if (Object.keys(capacity).join() !== 'storage') spec.notSupported('capacity', ['storage']);
  for (const [resource, amount] of Object.entries(capacity)) {
    const field = `capacity[${resource}]`;
    requireAmountOf(spec, field, String(amount));
    if (compareQuantities(String(amount), '0') > 0) continue;
    spec.invalid(field, 'must be greater than zero', amount);
  }
  spec.requireOneOf('persistentVolumeReclaimPolicy', ['Delete', 'Recycle', 'Retain']);
  const affinity = spec.get('nodeAffinity');
  const required = affinity?.get('required');
  if (required) validateNodeSelector(required);
  else affinity?.required('required', 'must specify required node constraints');
  spec.requireFormat('storageClassName', 'dns1123Subdomain');
  requireVolumeMode(spec);
  validateSources(spec, name);
  validateAttributesClass(spec);
}

/** Reports what is wrong with the spec of a volume of a Pod that a CSI driver attaches. */
export function validateInlineVolumeSpec(spec: CheckedObject): void {
  const inInline = 'in the context of inline volumes';
  for (const field of ['claimRef', 'nodeAffinity']) {
    if (spec.get(field)) spec.forbidden(field, `may not be specified ${inInline}`);
  }
  if (Object.keys(spec.in('capacity').value).length > 0) {
    spec.forbidden('capacity', `may not be specified ${inInline}`);
  }
  if (spec.text('storageClassName') !== '') {
    spec.forbidden('storageClassName', `may not be specified ${inInline}`);
  }
  if (!spec.get('csi')) spec.required('csi', `has to be specified ${inInline}`);
  if (!['', 'Retain'].includes(spec.text(POLICY))) {
    spec.forbidden(POLICY, `may only be Retain ${inInline}`);
  }
  if (spec.has('volumeMode') && spec.text('volumeMode') !== 'Filesystem') {
    const why = `may not specify volumeMode other than Filesystem ${inInline}`;
    spec.forbidden('volumeMode', why);
  }
  validateAccessModes(spec);
  validateSources(spec, '');
}

const POLICY = 'persistentVolumeReclaimPolicy';

function validateSources(spec: CheckedObject, name: string): void {
  const [source, ...others] = VOLUME_SOURCES.filter((field) => spec.get(field));
  if (source === undefined) spec.required('', 'must specify a volume type');
  else {
    const at = source === 'gcePersistentDisk' ? 'persistentDisk' : source;
    const checked = new CheckedObject(spec.in(source).value, spec.at(at), spec.errors);
    if (source === 'iscsi') validateIscsi(checked, name);
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
  const isRoot = isRootPath(spec.in('hostPath').text('path'));
  if (isRoot && spec.text(POLICY) === 'Recycle') {
    spec.forbidden(POLICY, "may not be 'recycle' for a hostPath mount of '/'");
  }
}

function validateAttributesClass(spec: CheckedObject): void {
  if (!spec.has('volumeAttributesClassName')) return;
  if (spec.text('volumeAttributesClassName') === '') {
    spec.required('volumeAttributesClassName', 'an empty string is disallowed');
  }
  spec.requireFormat('volumeAttributesClassName', 'dns1123Subdomain');
  const why = 'has to be specified when using volumeAttributesClassName';
  if (!spec.get('csi')) spec.required('csi', why);
}

/** The sources of a volume in the order in which upstream validates them. */
export const VOLUME_SOURCES: readonly string[] =
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

/** A Secret that may be added later. */
export const EXPANSION = 'controllerExpandSecretRef';

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

/** Whether an absolute path is the root, as Go's `filepath.Clean` finds. */
function isRootPath(path: string): boolean {
  let depth = 0;
  for (const part of path.split('/')) {
    if (part === '..') depth = Math.max(0, depth - 1);
    else if (part !== '' && part !== '.') depth++;
  }
  return path.startsWith('/') && depth === 0;
}
