import { goQuote } from '../../../util/go-quote.ts';
import { isRecord } from '../../../util/values.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn, textsIn } from '../../../util/json-value.ts';
import type { CheckedPod, PodViolation, CheckPod } from './checked-pod.ts';
import {
  containersOf,
  securityOf,
  containerNamesWhere,
  quotedNames,
  sortedUnique,
  pluralOfNoun,
  nounWithNames,
  settersOf,
  usersOf,
} from './checked-pod.ts';

/** Returns who sets profiles that are neither the default of the runtime nor of the node, and their types. */
function otherProfiles(spec: JsonObject, field: 'appArmorProfile' | 'seccompProfile') {
  const types: string[] = [];
  const isOther = (security: JsonObject | undefined) => {
    const profile = objectIn(security, field);
    const type = textIn(profile, 'type');
    if (!profile || type === 'RuntimeDefault' || type === 'Localhost') return false;
    types.push(type);
    return true;
  };
  const setters = settersOf(isOther(securityOf(spec)), containerNamesWhere(spec, isOther));
  return { setters, types: sortedUnique(types) };
}

const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';

export function appArmorProfile({ metadata, spec }: CheckedPod): PodViolation | undefined {
  const { setters, types } = otherProfiles(spec, 'appArmorProfile');
  const annotations = Object.entries(metadata.annotations ?? {})
    .filter(
      ([name, profile]) =>
        name.startsWith(APP_ARMOR) && !/^(?:$|runtime\/default$|localhost\/)/.test(profile),
    )
    .map(([name, profile]) => `${name}=${goQuote(profile)}`)
    .sort();
  const values = [...types, ...annotations];
  if (values.length === 0) return undefined;
  const all = [
    ...(setters === undefined ? [] : [setters]),
    ...(annotations.length === 0 ? [] : [pluralOfNoun('annotation', annotations.length)]),
  ];
  return {
    reason: pluralOfNoun('forbidden AppArmor profile', values.length),
    detail: `${all.join(' and ')} must not set AppArmor profile type to ${quotedNames(values)}`,
  };
}

const DEFAULT_CAPABILITIES: ReadonlySet<string> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

/** Text of the containers that add capabilities which are not allowed, or undefined if there are none. */
export function addedCapabilities(
  spec: JsonObject,
  isAllowed: (capability: string) => boolean,
): string | undefined {
  const added: string[] = [];
  const names = containerNamesWhere(spec, (security) => {
    const bad = textsIn(objectIn(security, 'capabilities'), 'add').filter(
      (each) => !isAllowed(each),
    );
    for (const each of bad) added.push(each);
    return bad.length > 0;
  });
  if (names.length === 0) return undefined;
  return `${nounWithNames('container', names)} must not include ${quotedNames(sortedUnique(added))} in securityContext.capabilities.add`;
}

export function defaultCapabilities({ spec }: CheckedPod): PodViolation | undefined {
  const detail = addedCapabilities(spec, (each) => DEFAULT_CAPABILITIES.has(each));
  return detail === undefined ? undefined : { reason: 'non-default capabilities', detail };
}

export function hostNamespaces({ spec }: CheckedPod): PodViolation | undefined {
  const used = ['hostNetwork', 'hostPID', 'hostIPC'].filter((field) => spec[field] === true);
  if (used.length === 0) return undefined;
  return { reason: 'host namespaces', detail: used.map((field) => `${field}=true`).join(', ') };
}

export function hostPathVolumes({ spec }: CheckedPod): PodViolation | undefined {
  const names = objectsIn(spec, 'volumes')
    .filter((volume) => isRecord(volume['hostPath']))
    .map((volume) => textIn(volume, 'name'));
  if (names.length === 0) return undefined;
  return { reason: 'hostPath volumes', detail: nounWithNames('volume', names) };
}

export function hostPorts({ spec }: CheckedPod): PodViolation | undefined {
  const ports: string[] = [];
  const names = containerNamesWhere(spec, (_, container) => {
    const own = objectsIn(container, 'ports').flatMap(({ hostPort }) =>
      typeof hostPort === 'number' && hostPort !== 0 ? [String(hostPort)] : [],
    );
    for (const port of own) ports.push(port);
    return own.length > 0;
  });
  if (names.length === 0) return undefined;
  const used = sortedUnique(ports);
  const detail = `${usersOf('container', names)} ${pluralOfNoun('hostPort', used.length)} ${used.join(', ')}`;
  return { reason: 'hostPort', detail };
}

export function hostsOfProbes({ spec }: CheckedPod): PodViolation | undefined {
  const hosts: string[] = [];
  const names = containerNamesWhere(spec, (_, container) => {
    const lifecycle = objectIn(container, 'lifecycle');
    const handlers = [
      ...['livenessProbe', 'readinessProbe', 'startupProbe'].map((field) => container[field]),
      ...['postStart', 'preStop'].map((field) => lifecycle?.[field]),
    ];
    const own = handlers
      .filter(isRecord)
      .flatMap((handler) =>
        ['httpGet', 'tcpSocket']
          .map((field) => textIn(objectIn(handler as JsonObject, field), 'host'))
          .filter((host) => host !== ''),
      );
    for (const host of own) hosts.push(host);
    return own.length > 0;
  });
  if (names.length === 0) return undefined;
  const [users, used] = [sortedUnique(names), sortedUnique(hosts)];
  const detail = `${usersOf('container', users)} ${nounWithNames('probe or lifecycle host', used)}`;
  return { reason: 'probe or lifecycle host', detail };
}

export function privileged({ spec }: CheckedPod): PodViolation | undefined {
  const names = containerNamesWhere(spec, (security) => security?.['privileged'] === true);
  if (names.length === 0) return undefined;
  const detail = `${nounWithNames('container', names)} must not set securityContext.privileged=true`;
  return { reason: 'privileged', detail };
}

export function procMount({ spec }: CheckedPod): PodViolation | undefined {
  const types: string[] = [];
  const names = containerNamesWhere(spec, (security) => {
    const type = textIn(security, 'procMount');
    if (type === '' || type === 'Default') return false;
    types.push(type);
    return true;
  });
  if (names.length === 0) return undefined;
  const detail = `${nounWithNames('container', names)} must not set securityContext.procMount to ${quotedNames(sortedUnique(types))}`;
  return { reason: 'procMount', detail };
}

export const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t'];

export function seLinuxOptions(allowed: readonly string[]): CheckPod {
  return ({ spec }) => {
    const types: string[] = [];
    const set = new Set<string>();
    const isBad = (security: JsonObject | undefined) => {
      const options = objectIn(security, 'seLinuxOptions');
      const type = textIn(options, 'type');
      const isOther = !allowed.includes(type);
      if (isOther) types.push(type);
      const own = ['user', 'role'].filter((field) => textIn(options, field) !== '');
      for (const field of own) set.add(field);
      return isOther || own.length > 0;
    };
    const setters = settersOf(isBad(securityOf(spec)), containerNamesWhere(spec, isBad));
    if (setters === undefined) return undefined;
    const data = [
      ...(types.length === 0 ? [] : [nounWithNames('type', sortedUnique(types))]),
      ...['user', 'role']
        .filter((field) => set.has(field))
        .map((field) => `${field} may not be set`),
    ];
    return {
      reason: 'seLinuxOptions',
      detail: `${setters} set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`,
    };
  };
}

const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';

const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';

export function seccompAnnotations({ metadata, spec }: CheckedPod): PodViolation | undefined {
  const names = [
    SECCOMP_POD,
    ...containersOf(spec).map((container) => SECCOMP_CONTAINER + textIn(container, 'name')),
  ];
  const bad = sortedUnique(
    names.flatMap((name) => {
      const profile = metadata.annotations?.[name];
      const isAllowed =
        profile === undefined || /^(?:(?:runtime|docker)\/default$|localhost\/)/.test(profile);
      return isAllowed ? [] : [`${name}=${goQuote(profile)}`];
    }),
  );
  if (bad.length === 0) return undefined;
  const detail = `forbidden ${pluralOfNoun('annotation', bad.length)} ${bad.join(', ')}`;
  return { reason: 'seccompProfile', detail };
}

export function seccompProfile({ spec }: CheckedPod): PodViolation | undefined {
  const { setters, types } = otherProfiles(spec, 'seccompProfile');
  if (setters === undefined) return undefined;
  const detail = `${setters} must not set securityContext.seccompProfile.type to ${quotedNames(types)}`;
  return { reason: 'seccompProfile', detail };
}

/** Safe sysctls by the minor version in which they were allowed. */
export const SYSCTLS: readonly (readonly [minor: number, names: readonly string[]])[] = [
  [
    0,
    [
      'kernel.shm_rmid_forced',
      'net.ipv4.ip_local_port_range',
      'net.ipv4.tcp_syncookies',
      'net.ipv4.ping_group_range',
      'net.ipv4.ip_unprivileged_port_start',
    ],
  ],
  [27, ['net.ipv4.ip_local_reserved_ports']],
  [
    29,
    [
      'net.ipv4.tcp_keepalive_time',
      'net.ipv4.tcp_fin_timeout',
      'net.ipv4.tcp_keepalive_intvl',
      'net.ipv4.tcp_keepalive_probes',
    ],
  ],
  [32, ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem']],
  [37, ['net.ipv4.tcp_slow_start_after_idle', 'net.ipv4.tcp_notsent_lowat']],
];

export function sysctls(minor: number): CheckPod {
  const allowed = new Set(SYSCTLS.flatMap(([since, names]) => (since <= minor ? names : [])));
  return ({ spec }) => {
    const names = objectsIn(securityOf(spec), 'sysctls')
      .map((sysctl) => textIn(sysctl, 'name'))
      .filter((name) => !allowed.has(name));
    return names.length === 0
      ? undefined
      : { reason: 'forbidden sysctls', detail: names.join(', ') };
  };
}

export function hostProcess({ spec }: CheckedPod): PodViolation | undefined {
  const isSet = (security: JsonObject | undefined) =>
    objectIn(security, 'windowsOptions')?.['hostProcess'] === true;
  const setters = settersOf(isSet(securityOf(spec)), containerNamesWhere(spec, isSet));
  if (setters === undefined) return undefined;
  const detail = `${setters} must not set securityContext.windowsOptions.hostProcess=true`;
  return { reason: 'hostProcess', detail };
}
