import type { CheckedObject } from '../../objects/checked-object.ts';

const LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;
const SYSTEMS = ['linux', 'windows'];

/** Fields of a Pod that does not run on Windows, and of security contexts of Pods and containers. */
const NOT_WINDOWS = ['hostUsers', 'hostPID', 'hostIPC', 'shareProcessNamespace'];
const NOT_WINDOWS_SECURITY = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
];

function containersOf(spec: CheckedObject): CheckedObject[] {
  return LISTS.flatMap((list) => spec.items(list));
}

/** Reports fields that the operating system of the Pod does not have. */
export function validateOs(spec: CheckedObject): void {
  const os = spec.get('os');
  if (!os) return;
  const name = os.text('name');
  const securities = [spec, ...containersOf(spec)].map((part) => part.in('securityContext'));
  if (name === '') os.required('name');
  else if (!SYSTEMS.includes(name)) spec.notSupported('os', SYSTEMS, name);
  else if (name === 'linux') {
    for (const security of securities) {
      if (!security.has('windowsOptions')) continue;
      security.forbidden('windowsOptions', 'windows options cannot be set for a linux pod');
    }
  } else {
    const [ofPod, ...ofContainers] = securities;
    if (ofPod) forbid(ofPod, NOT_WINDOWS_SECURITY);
    forbid(spec, NOT_WINDOWS);
    for (const security of ofContainers) forbid(security, NOT_WINDOWS_SECURITY);
  }
}

function forbid(part: CheckedObject, fields: readonly string[]): void {
  for (const field of fields) {
    // Go omits these fields if they are false.
    if (!part.has(field)) continue;
    if (['hostPID', 'hostIPC'].includes(field) && part.value[field] !== true) continue;
    part.forbidden(field, 'cannot be set for a windows pod');
  }
}

/** If one container runs as a process of a Windows host, all do. */
export function validateHostProcesses(spec: CheckedObject): void {
  const processOf = (part: CheckedObject) =>
    part.in('securityContext').in('windowsOptions').value['hostProcess'];
  const ofPod = processOf(spec);
  const containers = containersOf(spec);
  let count = 0;
  for (const container of containers) {
    const own = processOf(container);
    if (typeof ofPod === 'boolean' && typeof own === 'boolean' && own !== ofPod) {
      const why = `pod hostProcess value must be identical if both are specified, was ${ofPod}`;
      container.invalid('securityContext.windowsOptions.hostProcess', why, own);
    }
    if ((own ?? ofPod) === true) count++;
  }
  if (count === 0) return;
  if (count !== containers.length) {
    const why =
      'If pod contains any hostProcess containers then all containers must be HostProcess containers';
    spec.invalid('', why, '');
  }
  if (spec.value['hostNetwork'] === true) return;
  const why = 'hostNetwork must be true if pod contains any hostProcess containers';
  spec.invalid('hostNetwork', why, false);
}

/** A Pod with its own users shares no namespace of the host. */
export function validateHostUsers(spec: CheckedObject): void {
  if (spec.value['hostUsers'] !== false) return;
  const why = 'when `hostUsers` is false';
  // A server writes the names so.
  const fields = { hostNetwork: 'hostNetwork', hostPID: 'HostPID', hostIPC: 'HostIPC' };
  for (const [field, shown] of Object.entries(fields)) {
    if (spec.value[field] === true) spec.forbidden(shown, why);
  }
  for (const container of containersOf(spec)) {
    if (container.list('volumeDevices').length > 0) container.forbidden('volumeDevices', why);
  }
}

/** Files with variables are in an emptyDir. */
export function validateFileVolumes(spec: CheckedObject): void {
  const volumes = new Map(spec.items('volumes').map((volume) => [volume.text('name'), volume]));
  for (const variable of containersOf(spec).flatMap((container) => container.items('env'))) {
    const ref = variable.in('valueFrom').get('fileKeyRef');
    if (!ref) continue;
    const volume = volumes.get(ref.text('volumeName'));
    if (!volume) ref.notFound('volumeName', ref.text('volumeName'));
    else if (!volume.get('emptyDir')) {
      ref.invalid('volumeName', 'referenced volume must be of type emptyDir');
    }
  }
}
