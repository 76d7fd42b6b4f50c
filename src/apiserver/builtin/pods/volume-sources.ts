import { plainText } from '../../../api/field-error.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { requireNoBacksteps } from '../shared/local-paths.ts';

/** Reports a mode of files that is none. */
export function requireMode(holder: CheckedObject, field: string): void {
  const mode = holder.number(field) ?? 0;
  if (mode >= 0 && mode <= 0o777) return;
  holder.invalid(field, 'must be a number between 0 and 0777 (octal), both inclusive');
}

/**
 * Reports a name of a driver that is missing or malformed.
 *
 * @param format of the message; a driver always may have capital letters
 */
export function requireDriverName(
  holder: CheckedObject,
  field: string,
  format: 'dns1123Subdomain' | 'dns1123SubdomainCaseless' = 'dns1123Subdomain',
): void {
  const name = holder.text(field);
  if (name === '') {
    holder.required(field);
    return;
  }
  const isDeclared = format === 'dns1123SubdomainCaseless';
  if (name.length > 63) holder.tooLong(field, 63, isDeclared ? 'character' : 'byte');
  holder.problems(field, nameProblems(name.toLowerCase(), format), name);
}

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

export function requireHostPath(source: CheckedObject): void {
  if (source.text('path') === '') {
    source.required('path');
    return;
  }
  requireNoBacksteps(source, 'path');
  source.requireOneOf('type', HOST_PATH_TYPES);
}

type Validate = (source: CheckedObject, volume: CheckedObject) => void;

/** The rules of sources that volumes of Pods and PersistentVolumes share. */
export const COMMON_SOURCES: Readonly<Record<string, Validate>> = {
  gcePersistentDisk: (source) => requireDisk(source, 'pdName'),
  awsElasticBlockStore: (source) => requireDisk(source, 'volumeID'),
  nfs: (source) => {
    source.requireText('server');
    source.requireText('path');
    if (!source.text('path').startsWith('/')) {
      source.invalid('path', 'must be an absolute path', source.text('path'));
    }
  },
  iscsi: (source) =>
    validateIscsiTarget(source, 'must be valid format starting with iqn, eui, or naa'),
  flocker: (source) => {
    const [name, uuid] = [source.text('datasetName'), source.text('datasetUUID')];
    if (name === '' && uuid === '') {
      source.required('', 'one of datasetName and datasetUUID is required');
    } else if (name !== '' && uuid !== '') {
      const why = 'datasetName and datasetUUID can not be specified simultaneously';
      source.invalid('', why, 'resource');
    }
    if (name.includes('/')) source.invalid('datasetName', "must not contain '/'");
  },
  rbd: (source) => {
    if (source.list('monitors').length === 0) source.required('monitors');
    source.requireText('image');
  },
  cephfs: (source) => {
    if (source.list('monitors').length === 0) source.required('monitors');
  },
  quobyte: (source) => {
    const why = 'must be a host:port pair or multiple pairs separated by commas';
    const registry = source.text('registry');
    if (registry === '') source.required('registry', why);
    else if (source.text('tenant').length > 64) {
      const detail = 'must be a UUID and may not exceed a length of 64 characters';
      source.required('tenant', detail);
    } else {
      for (const pair of registry.split(',')) {
        if (!/^(?:[^:[\]]*|\[[^[\]]*\]):[^:[\]]*$/.test(pair)) source.invalid('registry', why);
      }
    }
    source.requireText('volume');
  },
  fc: (source) => {
    const [names, ids] = [source.list('targetWWNs').length, source.list('wwids').length];
    if (names === 0 && ids === 0) {
      source.required('targetWWNs', 'must specify either targetWWNs or wwids, but not both');
    } else if (names > 0 && ids > 0) {
      source.invalid('targetWWNs', 'targetWWNs and wwids can not be specified simultaneously');
    }
    if (names === 0) return;
    if (source.has('lun')) requireLun(source);
    else source.required('lun', 'lun is required if targetWWNs is specified');
  },
  flexVolume: (source) => {
    source.requireText('driver');
    for (const key of Object.keys(source.in('options').value)) {
      const domain = `.${key.split('/', 1)[0]?.toLowerCase()}`;
      if (!domain.endsWith('.kubernetes.io') && !domain.endsWith('.k8s.io')) continue;
      const why = 'kubernetes.io and k8s.io namespaces are reserved';
      source.invalid(`options[${key}]`, why, key);
    }
  },
  vsphereVolume: (source) => source.requireText('volumePath'),
  photonPersistentDisk: (source) => source.requireText('pdID'),
  portworxVolume: (source) => source.requireText('volumeID'),
  azureDisk: (source) => {
    source.requireText('diskName');
    source.requireText('diskURI');
    source.requireSupported('cachingMode', ['None', 'ReadOnly', 'ReadWrite']);
    source.requireSupported('kind', ['Dedicated', 'Managed', 'Shared']);
    const isManaged = source.text('kind') === 'Managed';
    const prefix = isManaged ? '/subscriptions/' : 'https://';
    if (!source.has('kind') || source.text('diskURI').startsWith(prefix)) return;
    const shown = plainText(source.text('diskURI'));
    source.notSupported('diskURI', [isManaged ? MANAGED_DISK : BLOB], shown);
  },
  scaleIO: (source) => {
    for (const field of ['gateway', 'system', 'volumeName']) source.requireText(field);
  },
};

const MANAGED_DISK =
  '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}';

const BLOB = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd';

function requireDisk(source: CheckedObject, field: string): void {
  source.requireText(field);
  const partition = source.number('partition') ?? 0;
  if (partition >= 0 && partition <= 255) return;
  source.invalid('partition', 'must be between 1 and 255, inclusive');
}

function requireLun(source: CheckedObject): void {
  const lun = source.number('lun') ?? 0;
  if (lun < 0 || lun > 255) source.invalid('lun', 'must be between 0 and 255, inclusive');
}

const INITIATORS: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.[a-zA-Z0-9.-]+:[^,;*&$|\s]+$/,
  eui: /^eui.[a-zA-Z0-9]{16}$/,
  naa: /^naa.[a-zA-Z0-9]{32}$/,
};

/** @param prefixProblem what is wrong with a name of an initiator that starts otherwise */
export function validateIscsiTarget(source: CheckedObject, prefixProblem: string): void {
  source.requireText('targetPortal');
  if (source.text('iqn') === '') source.required('iqn');
  else requireInitiator(source, 'iqn', source.text('iqn'), prefixProblem);
  requireLun(source);
  const hasSession = ['chapAuthDiscovery', 'chapAuthSession'].some((field) => source.value[field]);
  if (hasSession && !source.has('secretRef')) source.required('secretRef');
  if (!source.has('initiatorName')) return;
  requireInitiator(source, 'initiatorname', source.text('initiatorName'), prefixProblem);
}

function requireInitiator(
  source: CheckedObject,
  field: string,
  name: string,
  prefixProblem: string,
): void {
  const pattern = INITIATORS[name.slice(0, 3)];
  if (!pattern) source.invalid(field, prefixProblem, name);
  else if (!pattern.test(name)) source.invalid(field, 'must be valid format', name);
}
