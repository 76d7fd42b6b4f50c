import { validateClaimMetadata } from './template-metadata.ts';
import { plainText } from '../../../api/field-error.ts';
import { utf8Length } from '../../../util/bytes.ts';
import { goQuote } from '../../../util/go-quote.ts';
import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import { compareQuantities } from '../../../api/quantity.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import { MAX_ANNOTATIONS_BYTES } from '../../objects/object-metadata.ts';
import { FIELDS_OF_FILES, validateFieldRef, validateResourceRef } from './container-environment.ts';
import {
  COMMON_SOURCES,
  requireDriverName,
  requireHostPath,
  requireMode,
} from './volume-sources.ts';
import { validateClaimSpec } from '../shared/claim-spec.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';
import { validateLocalPath, validateVolumePath } from '../shared/local-paths.ts';
import { requireSigner, trustBundleNameProblems } from '../shared/signer-names.ts';

/** The sources of a volume in the order in which upstream validates them. */
const SOURCES =
  'emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi ephemeral image'.split(
    ' ',
  );

type Validate = (source: CheckedObject, volume: CheckedObject) => void;

const OF_PODS: Readonly<Record<string, Validate>> = {
  emptyDir: (source) => {
    const limit = source.text('sizeLimit');
    if (limit.startsWith('-') && compareQuantities(limit, '0') < 0) {
      source.forbidden('sizeLimit', 'SizeLimit field must be a valid resource quantity');
    }
  },
  hostPath: requireHostPath,
  gitRepo: (source) => {
    source.requireText('repository');
    validateLocalPath(source, 'directory');
  },
  secret: (source) => {
    source.requireText('secretName');
    validateItems(source);
  },
  configMap: (source) => {
    source.requireText('name');
    validateItems(source);
  },
  persistentVolumeClaim: (source) => source.requireText('claimName'),
  glusterfs: (source) => {
    source.requireText('endpoints');
    source.requireText('path');
  },
  cinder: (source) => {
    source.requireText('volumeID');
    source.get('secretRef')?.requireText('name');
  },
  storageos: (source) => {
    source.requireText('volumeName');
    source.requireFormat('volumeName', 'dns1123Label');
    source.requireFormat('volumeNamespace', 'dns1123Label');
    source.get('secretRef')?.requireText('name');
  },
  azureFile: (source) => {
    source.requireText('secretName');
    source.requireText('shareName');
  },
  downwardAPI: (source) => {
    requireMode(source, 'defaultMode');
    // A server reports the files with the path of the whole source.
    for (const file of source.items('items')) validateFile(file, source);
  },
  projected: validateProjected,
  csi: (source) => {
    requireDriverName(source, 'driver');
    const secret = source.get('nodePublishSecretRef');
    secret?.requireText('name');
    const name = secret?.text('name') ?? '';
    // The path of upstream.
    if (name !== '') source.problems('name', nameProblems(name, 'dns1123Subdomain'), name);
  },
  ephemeral: (source) => {
    const template = source.get('volumeClaimTemplate');
    if (!template) source.required('volumeClaimTemplate');
    else {
      validateClaimMetadata(template);
      validateClaimSpec(template.in('spec'));
    }
  },
  image: (source) => {
    source.requireText('reference');
    source.requireOneOf('pullPolicy', ['Always', 'IfNotPresent', 'Never']);
  },
};

/** @returns the valid volumes by their names, which containers may mount */
export function validateVolumes(
  spec: CheckedObject,
  podName: string | undefined,
): ReadonlyMap<string, CheckedObject> {
  const known = new Map<string, CheckedObject>();
  const volumes = spec.items('volumes');
  const ownClaims = new Set(
    volumes
      .filter((volume) => podName && volume.has('ephemeral'))
      .map((volume) => `${podName}-${volume.text('name')}`),
  );
  for (const volume of volumes) {
    const count = spec.errors.length;
    const name = volume.text('name');
    const source = validateSource(volume);
    volume.requireText('name');
    volume.requireFormat('name', 'dns1123Label');
    if (podName && name !== '' && source === 'ephemeral') {
      const claimName = `${podName}-${name}`;
      for (const problem of nameProblems(claimName, 'dns1123Subdomain')) {
        volume.invalid('name', `PVC name ${goQuote(claimName)}: ${problem}`, name);
      }
    }
    const iscsi = volume.in('iscsi');
    const target = `${name}:${iscsi.text('targetPortal')}`;
    if (iscsi.has('initiatorName') && utf8Length(target) > 64) {
      const why =
        'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.';
      volume.invalid('name', why, name);
    }
    if (known.has(name)) volume.duplicate('name');
    if (spec.errors.length === count) known.set(name, volume);
    const claim = volume.get('persistentVolumeClaim');
    if (claim && ownClaims.has(claim.text('claimName'))) {
      const why = 'must not reference a PVC that gets created for an ephemeral volume';
      claim.invalid('claimName', why);
    }
  }
  return known;
}

/** Sources whose errors have other paths, as upstream spells them. */
const PATHS: Readonly<Record<string, string>> = { gcePersistentDisk: 'persistentDisk' };
const PATHS_OF_OTHERS: Readonly<Record<string, string>> = {
  cephfs: 'cephFS',
  downwardAPI: 'downwarAPI',
};

/** @returns the first source */
function validateSource(volume: CheckedObject): string | undefined {
  const [field, ...others] = SOURCES.filter((each) => volume.get(each));
  if (field !== undefined) {
    const { value, errors } = volume.in(field);
    const source = new CheckedObject(value, volume.at(PATHS[field] ?? field), errors);
    (OF_PODS[field] ?? COMMON_SOURCES[field])?.(source, volume);
  }
  for (const other of others) {
    volume.forbidden(PATHS_OF_OTHERS[other] ?? other, 'may not specify more than 1 volume type');
  }
  return field;
}

function validateItems(source: CheckedObject): void {
  requireMode(source, 'defaultMode');
  for (const item of source.items('items')) validateItem(item);
}

function validateItem(item: CheckedObject): void {
  item.requireText('key');
  item.requireText('path');
  validateVolumePath(item, 'path');
  requireMode(item, 'mode');
}

/** @param holder the part whose path is that of the errors */
function validateFile(file: CheckedObject, holder: CheckedObject): void {
  const own = holder.as(file.value);
  own.requireText('path');
  validateVolumePath(own, 'path');
  const field = own.get('fieldRef');
  const resource = own.get('resourceFieldRef');
  if (field) {
    validateFieldRef(field, FIELDS_OF_FILES);
    const why = 'fieldRef and resourceFieldRef can not be specified simultaneously';
    if (resource) own.invalid('', why, 'resource');
  } else if (resource) validateResourceRef(resource, true);
  else own.required('', 'one of fieldRef and resourceFieldRef is required');
  requireMode(own, 'mode');
}

const PROJECTIONS = [
  'secret',
  'configMap',
  'downwardAPI',
  'serviceAccountToken',
  'clusterTrustBundle',
  'podCertificate',
] as const;

function validateProjected(projected: CheckedObject): void {
  requireMode(projected, 'defaultMode');
  const paths = new Set<string>();
  const take = (path: string, value: string = path) => {
    if (paths.has(path)) projected.invalid('', 'conflicting duplicate paths', value);
    paths.add(path);
  };
  for (const source of projected.items('sources')) {
    const present = PROJECTIONS.filter((field) => source.has(field));
    for (const field of present) {
      const part = source.in(field);
      switch (field) {
        case 'secret':
        case 'configMap':
          part.requireText('name');
          for (const item of part.items('items')) {
            validateItem(item);
            if (item.text('path') !== '') take(item.text('path'), part.text('name'));
          }
          break;
        case 'downwardAPI':
          for (const file of part.items('items')) {
            validateFile(file, part);
            if (file.text('path') !== '') take(file.text('path'));
          }
          break;
        case 'serviceAccountToken':
          validateToken(part, projected);
          break;
        case 'clusterTrustBundle':
          validateTrustBundle(part);
          take(part.text('path'));
          break;
        case 'podCertificate':
          validateCertificate(part, take);
          break;
      }
    }
    if (present.length > 1) {
      source.forbidden('', 'may not specify more than 1 volume type per source');
    }
  }
}

export function validateTokenSeconds(token: CheckedObject): void {
  const seconds = token.number('expirationSeconds') ?? 3600;
  if (seconds < 600) {
    token.invalid('expirationSeconds', 'may not specify a duration less than 10 minutes');
  } else if (seconds > 2 ** 32) {
    token.invalid('expirationSeconds', 'may not specify a duration larger than 2^32 seconds');
  }
}

function validateToken(token: CheckedObject, projected: CheckedObject): void {
  validateTokenSeconds(token);
  if (token.text('path') === '') projected.required('path');
  else validateVolumePath(projected, 'path', token.text('path'));
}

function validateTrustBundle(bundle: CheckedObject): void {
  const name = bundle.text('name');
  if (bundle.has('name') && bundle.has('signerName')) {
    bundle.invalid('', 'only one of name and signerName may be used', bundle.value);
  } else if (bundle.has('name')) {
    if (name === '') bundle.required('name', 'must be a valid object name');
    for (const problem of trustBundleNameProblems(name)) {
      bundle.invalid('name', `not a valid clustertrustbundlename: ${problem}`);
    }
    if (bundle.has('labelSelector')) {
      bundle.invalid('labelSelector', 'labelSelector must be unset if name is specified');
    }
  } else if (bundle.has('signerName')) {
    if (bundle.text('signerName') === '') {
      bundle.required('signerName', 'must be a valid signer name');
    }
    requireSigner(bundle);
    validateLabelSelector(bundle.get('labelSelector'));
  } else bundle.required('', 'either name or signerName must be specified');
  bundle.requireText('path');
  validateVolumePath(bundle, 'path');
}

const KEY_TYPES = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const MIN_SECONDS = 3600;
const DAY_SECONDS = 86_400;

function validateUserAnnotations(certificate: CheckedObject, field: string): void {
  const annotations = Object.entries(certificate.in(field).value);
  for (const key of annotations.map(([each]) => each.toLowerCase())) {
    const problems = key === '' ? [] : qualifiedNameProblems(key);
    if (key === '') certificate.required(field);
    else if (problems.length > 0) certificate.problems(field, problems, key);
    else if (!key.includes('/')) {
      certificate.invalid(field, 'must be a domain-prefixed key (such as "acme.io/foo")', key);
    }
  }
  if (
    annotations.reduce((sum, each) => sum + utf8Length(each.join('')), 0) > MAX_ANNOTATIONS_BYTES
  ) {
    certificate.tooLong(field, MAX_ANNOTATIONS_BYTES);
  }
}

function validateCertificate(certificate: CheckedObject, take: (path: string) => void): void {
  requireSigner(certificate);
  validateUserAnnotations(certificate, 'userAnnotations');
  const type = certificate.text('keyType');
  if (!KEY_TYPES.includes(type)) {
    certificate.notSupported('keyType', KEY_TYPES, plainText(type));
  }
  const seconds = certificate.number('maxExpirationSeconds') ?? MIN_SECONDS;
  const isOwn = certificate.text('signerName').startsWith('kubernetes.io/');
  const max = (isOwn ? 1 : 91) * DAY_SECONDS;
  if (seconds < MIN_SECONDS || seconds > max) {
    const bound = seconds < MIN_SECONDS ? `>= ${MIN_SECONDS}` : `<= ${max}`;
    const why = `if provided, maxExpirationSeconds must be ${bound}`;
    certificate.invalid('maxExpirationSeconds', why);
  }
  const fields = ['credentialBundlePath', 'keyPath', 'certificateChainPath'];
  const present = fields.filter((field) => certificate.text(field) !== '');
  for (const field of present) {
    validateVolumePath(certificate, field);
    take(certificate.text(field));
  }
  if (present.length > 0) return;
  const why = 'specify at least one of credentialBundlePath, keyPath, and certificateChainPath';
  certificate.required('', why);
}
