import { typedText } from '../../../api/field-error.ts';
import { utf8Length } from '../../../util/bytes.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateWindowsOptions } from './windows-options.ts';
import { validateLocalPath } from '../shared/local-paths.ts';

const MAX_INT32 = 2 ** 31 - 1;
const PROFILES = ['Localhost', 'RuntimeDefault', 'Unconfined'];
const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

const NOT_A_SYSCTL =
  'must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$';

/** Reports user and group ids that the kernel does not have. */
function requireIds(holder: CheckedObject, ...fields: readonly string[]): void {
  for (const field of fields) {
    const id = holder.number(field) ?? 0;
    if (id >= 0 && id <= MAX_INT32) continue;
    holder.invalid(field, `must be between 0 and ${MAX_INT32}, inclusive`);
  }
}

/** Reports what is wrong with the security context of a Pod or of a template. */
export function validatePodSecurity(spec: CheckedObject): void {
  const security = spec.get('securityContext');
  if (!security) return;
  requireIds(security, 'fsGroup', 'runAsUser', 'runAsGroup');
  for (const [index, id] of security.list('supplementalGroups').entries()) {
    if (typeof id === 'number' && id >= 0 && id <= MAX_INT32) continue;
    const why = `must be between 0 and ${MAX_INT32}, inclusive`;
    security.invalid(`supplementalGroups[${index}]`, why, id);
  }
  validateSysctls(security, spec);
  security.requireSupported('fsGroupChangePolicy', ['Always', 'OnRootMismatch']);
  validateProfiles(security);
  security.requireSupported('supplementalGroupsPolicy', ['Merge', 'Strict']);
  security.requireSupported('seLinuxChangePolicy', ['MountOption', 'Recursive']);
}

/** Sysctls of the namespaces that a Pod may share with its host, by the field of the spec. */
const OF_HOST: Readonly<Record<string, RegExp>> = {
  hostNetwork: /^net\./,
  hostIPC:
    /^(?:kernel\.(?:sem|shm|shmall|shmmax|shmmni|shm_rmid_forced|msg|msgmax|msgmnb|msgmni)$|fs\.mqueue\.)/,
};

/** Returns a sysctl with dots between its parts, also if the first separator is a slash. */
function dotted(name: string): string {
  if (!/^[^./]*\//.test(name)) return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}

function validateSysctls(security: CheckedObject, spec: CheckedObject): void {
  const names = new Set<string>();
  for (const sysctl of security.items('sysctls')) {
    const name = sysctl.text('name');
    if (name === '') sysctl.required('name');
    else if (name.length > 253 || !SYSCTL.test(name)) sysctl.invalid('name', NOT_A_SYSCTL, name);
    else if (names.has(name)) sysctl.duplicate('name');
    for (const [field, pattern] of Object.entries(OF_HOST)) {
      if (spec.value[field] !== true || !pattern.test(dotted(name).replace(/\*.*$/s, ''))) continue;
      sysctl.invalid('name', `may not be specified when '${field}' is true`, name);
    }
    names.add(name);
  }
}

/** Reports what is wrong with the security context of a container. */
export function validateContainerSecurity(security: CheckedObject, hasHostUsers: boolean): void {
  requireIds(security, 'runAsUser', 'runAsGroup');
  security.requireSupported('procMount', ['Default', 'Unmasked']);
  if (hasHostUsers && security.text('procMount') === 'Unmasked') {
    security.invalid('procMount', '`hostUsers` must be false to use `Unmasked`');
  }
  if (security.value['allowPrivilegeEscalation'] === false) {
    const cannot = (why: string) =>
      security.invalid(
        '',
        `cannot set \`allowPrivilegeEscalation\` to false and ${why}`,
        security.value,
      );
    if (security.value['privileged'] === true) cannot('`privileged` to true');
    for (const capability of security.in('capabilities').list('add')) {
      if (capability === 'CAP_SYS_ADMIN') cannot('`capabilities.Add` CAP_SYS_ADMIN');
    }
  }
  validateProfiles(security);
}

function validateProfiles(security: CheckedObject): void {
  const seccomp = security.get('seccompProfile');
  if (seccomp) validateSeccomp(seccomp);
  const windows = security.get('windowsOptions');
  if (windows) validateWindowsOptions(windows);
  const appArmor = security.get('appArmorProfile');
  if (appArmor) validateAppArmor(appArmor);
}

function validateSeccomp(profile: CheckedObject): void {
  const type = profile.text('type');
  if (type === '') profile.required('type', 'type is required when seccompProfile is set');
  else profile.requireOneOf('type', PROFILES);
  const field = 'localhostProfile';
  if (type === 'Localhost') {
    if (profile.has(field)) validateLocalPath(profile, field);
    else profile.required(field, 'must be set when seccomp type is Localhost');
  } else if (profile.has(field)) {
    profile.invalid(field, 'can only be set when seccomp type is Localhost', profile.value);
  }
}

export function validateAppArmor(profile: CheckedObject): void {
  const field = 'localhostProfile';
  const path = profile.text(field);
  switch (profile.text('type')) {
    case 'Localhost':
      if (path === '') profile.required(field, 'must be set when AppArmor type is Localhost');
      else if (path !== path.trim()) {
        profile.invalid(field, 'must not be padded with whitespace');
      }
      if (utf8Length(path) > 4095) profile.tooLong(field, 4095);
      return;
    case 'RuntimeDefault':
    case 'Unconfined':
      if (!profile.has(field)) return;
      profile.invalid(field, 'can only be set when AppArmor type is Localhost', typedText(path));
      return;
    case '':
      profile.required('type', 'type is required when appArmorProfile is set');
      return;
    default:
      profile.notSupported('type', PROFILES);
  }
}
