import { objectIn, textIn } from '../../../util/json-value.ts';
import type { CheckedPod, PodViolation, CheckPod } from './checked-pod.ts';
import {
  appArmorProfile,
  defaultCapabilities,
  hostNamespaces,
  hostPathVolumes,
  hostPorts,
  hostsOfProbes,
  privileged,
  procMount,
  seLinuxOptions,
  seccompAnnotations,
  seccompProfile,
  sysctls,
  hostProcess,
  SYSCTLS,
  SELINUX_TYPES,
} from './baseline.ts';
import {
  privilegeEscalation,
  restrictedCapabilities,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
  restrictedSeccomp,
} from './restricted.ts';

/** Levels of the Pod Security Standards that restrict Pods. */
export type RestrictedLevel = 'baseline' | 'restricted';

interface Check {
  readonly id: string;
  readonly level: RestrictedLevel;
  /** Forms of the check by the minor version of Kubernetes that has introduced them, in order. */
  readonly forms: readonly (readonly [minor: number, check: CheckPod])[];
  /** The check of the level `baseline` that it replaces. */
  readonly replaces?: string;
}

/** Returns why the Pod is not allowed on a level, as it was defined in a minor version of Kubernetes. */
export function violationsOf(
  pod: CheckedPod,
  level: RestrictedLevel,
  minor: number,
): readonly PodViolation[] {
  const formOf = ({ forms }: Check) => forms.findLast(([since]) => since <= minor)?.[1];
  const applied = CHECKS.filter(
    (check) => (level === 'restricted' || check.level === level) && formOf(check),
  );
  const replaced = new Set(applied.map(({ replaces }) => replaces));
  return applied
    .filter(({ id }) => !replaced.has(id))
    .flatMap((check) => formOf(check)?.(pod) ?? []);
}

const isWindows = ({ spec }: CheckedPod) => textIn(objectIn(spec, 'os'), 'name') === 'windows';

const hasOwnUsers = ({ spec }: CheckedPod) => spec['hostUsers'] === false;

function unless(isExempt: (pod: CheckedPod) => boolean, check: CheckPod): CheckPod {
  return (pod) => (isExempt(pod) ? undefined : check(pod));
}

/** The checks of Kubernetes 1.37, in the order of their reports: by level and id. */
const CHECKS: readonly Check[] = [
  { id: 'appArmorProfile', level: 'baseline', forms: [[0, appArmorProfile]] },
  { id: 'capabilities_baseline', level: 'baseline', forms: [[0, defaultCapabilities]] },
  { id: 'hostNamespaces', level: 'baseline', forms: [[0, hostNamespaces]] },
  { id: 'hostPathVolumes', level: 'baseline', forms: [[0, hostPathVolumes]] },
  { id: 'hostPorts', level: 'baseline', forms: [[0, hostPorts]] },
  { id: 'hostProbesAndHostLifecycle', level: 'baseline', forms: [[34, hostsOfProbes]] },
  { id: 'privileged', level: 'baseline', forms: [[0, privileged]] },
  {
    id: 'procMount',
    level: 'baseline',
    forms: [
      [0, procMount],
      [35, unless(hasOwnUsers, procMount)],
    ],
  },
  {
    id: 'seLinuxOptions',
    level: 'baseline',
    forms: [
      [0, seLinuxOptions(SELINUX_TYPES)],
      [31, seLinuxOptions([...SELINUX_TYPES, 'container_engine_t'])],
    ],
  },
  {
    id: 'seccompProfile_baseline',
    level: 'baseline',
    forms: [
      [0, seccompAnnotations],
      [19, seccompProfile],
    ],
  },
  {
    id: 'sysctls',
    level: 'baseline',
    forms: SYSCTLS.map(([minor]) => [minor, sysctls(minor)] as const),
  },
  { id: 'windowsHostProcess', level: 'baseline', forms: [[0, hostProcess]] },
  {
    id: 'allowPrivilegeEscalation',
    level: 'restricted',
    forms: [
      [8, privilegeEscalation],
      [25, unless(isWindows, privilegeEscalation)],
    ],
  },
  {
    id: 'capabilities_restricted',
    level: 'restricted',
    forms: [
      [22, restrictedCapabilities],
      [25, unless(isWindows, restrictedCapabilities)],
    ],
    replaces: 'capabilities_baseline',
  },
  {
    id: 'procMount_restricted',
    level: 'restricted',
    forms: [[35, procMount]],
    replaces: 'procMount',
  },
  {
    id: 'restrictedVolumes',
    level: 'restricted',
    forms: [[0, restrictedVolumes]],
    replaces: 'hostPathVolumes',
  },
  {
    id: 'runAsNonRoot',
    level: 'restricted',
    forms: [
      [0, runAsNonRoot],
      [35, unless(hasOwnUsers, runAsNonRoot)],
    ],
  },
  {
    id: 'runAsUser',
    level: 'restricted',
    forms: [
      [23, runAsUser],
      [35, unless(hasOwnUsers, runAsUser)],
    ],
  },
  {
    id: 'seccompProfile_restricted',
    level: 'restricted',
    forms: [
      [19, restrictedSeccomp],
      [25, unless(isWindows, restrictedSeccomp)],
    ],
    replaces: 'seccompProfile_baseline',
  },
];
