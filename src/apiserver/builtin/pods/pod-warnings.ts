import { equalJson } from '../../../api/equal.ts';
import { labelValueProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { profileOfAnnotation } from './pod-creation.ts';
import { pathWarnings } from './volume-path-warnings.ts';
import { ipWarnings } from '../shared/addresses.ts';
import type { Texts } from '../shared/warnings.ts';
import {
  NODE_LABELS,
  VOLUMES,
  addressWarnings,
  annotationWarnings,
  byteWarnings,
  claimWarnings,
  nodeLabelWarnings,
  nodeSelectorWarnings,
} from '../shared/warnings.ts';

const POD_ANNOTATIONS: Texts = {
  'scheduler.alpha.kubernetes.io/critical-pod':
    'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls':
    'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls':
    'non-functional in v1.11+; use the "sysctls" field instead',
};

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Warnings about the values of a label that no node can have. */
function labelValueWarnings(expression: CheckedObject): string[] {
  return expression.list('values').flatMap((value, index) => {
    const at = `${expression.at('values')}[${index}]`;
    const problems = labelValueProblems(String(value));
    return problems.map((problem) => `${at}: ${String(value)} is invalid, ${problem}`);
  });
}

/** Warnings of a Pod or of a template. */
export function podWarnings(pod: CheckedObject): string[] {
  const spec = pod.in('spec');
  const selector = spec.in('nodeSelector');
  const containers = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    spec.items(list),
  );
  const annotations = pod.in('metadata').in('annotations');
  const affinity = spec.in('affinity');
  const spread = spec.items('topologySpreadConstraints');
  const preferred = affinity
    .in('nodeAffinity')
    .items(PREFERRED)
    .flatMap((term) => term.in('preference').items('matchExpressions'));
  const grace = 'terminationGracePeriodSeconds';
  return [
    ...Object.keys(selector.value)
      .filter((key) => Object.hasOwn(NODE_LABELS, key))
      .map((key) => `${selector.path}[${key}]: ${NODE_LABELS[key]}`),
    ...nodeSelectorWarnings(affinity.in('nodeAffinity').in(REQUIRED)),
    ...preferred.flatMap((term) => nodeLabelWarnings(term, 'key').concat(labelValueWarnings(term))),
    ...spread.flatMap((constraint) =>
      nodeLabelWarnings(constraint, 'topologyKey').concat(selectorWarnings([constraint])),
    ),
    ...annotationWarnings(pod, POD_ANNOTATIONS),
    ...spec.items('volumes').flatMap(podVolumeWarnings),
    ...spec.items('volumes').flatMap(pathWarnings),
    ...repeated(spec.items('hostAliases'), 'ip'),
    ...repeated(spec.items('imagePullSecrets'), 'name'),
    ...spec
      .items('imagePullSecrets')
      .filter((secret) => secret.text('name') === '')
      .map((secret) => `${secret.at('name')}: invalid empty name ""`),
    ...byteWarnings(spec, 'overhead', 'memory'),
    ...byteWarnings(spec, 'overhead', 'ephemeral-storage'),
    ...seccompWarnings(spec.in('securityContext'), annotations, POD_SECCOMP),
    ...containers.flatMap((container) => [
      ...seccompWarnings(
        container.in('securityContext'),
        annotations,
        `${CONTAINER_SECCOMP}${container.text('name')}`,
      ),
      ...appArmorWarnings(spec, container, annotations),
      ...containerWarnings(container),
    ]),
    ...containers.flatMap((container) => container.items('ports')).flatMap(hostIpWarnings),
    ...portWarnings(containers.flatMap((container) => container.items('ports'))),
    ...((spec.number(grace) ?? 0) < 0
      ? [`${spec.at(grace)}: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...['podAffinity', 'podAntiAffinity'].flatMap((kind) => podTermWarnings(affinity.in(kind))),
    ...addressWarnings(spec.in('dnsConfig'), 'nameservers', ipWarnings),
    ...spec.items('hostAliases').flatMap((alias) => ipWarnings(alias.at('ip'), alias.text('ip'))),
  ];
}

const POD_SECCOMP = 'seccomp.security.alpha.kubernetes.io/pod';
const CONTAINER_SECCOMP = 'container.seccomp.security.alpha.kubernetes.io/';
const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';

function podVolumeWarnings(volume: CheckedObject): string[] {
  const claim = volume.in('ephemeral').in('volumeClaimTemplate').in('spec');
  return [
    ...Object.entries(VOLUMES)
      .filter(([source]) => volume.has(source))
      .map(([source, text]) => `${volume.at(PATHS[source] ?? source)}: ${text}`),
    ...claimWarnings(claim),
  ];
}

/** Names of volume sources in the paths of messages. */
const PATHS: Texts = { storageos: 'storageOS' };

function seccompWarnings(
  context: CheckedObject,
  annotations: CheckedObject,
  key: string,
): string[] {
  return annotations.has(key) && !context.has('seccompProfile')
    ? [
        `${annotations.path}[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`,
      ]
    : [];
}

/** Those of a new Pod are given when its annotations are set as fields, and one that repeats its profile has none. */
function appArmorWarnings(
  spec: CheckedObject,
  container: CheckedObject,
  annotations: CheckedObject,
): string[] {
  const key = `${APP_ARMOR}${container.text('name')}`;
  if (spec.path === 'spec') return [];
  if (!annotations.has(key) || container.in('securityContext').has('appArmorProfile')) return [];
  const profile = spec.in('securityContext').get('appArmorProfile')?.value;
  if (equalJson(profile, profileOfAnnotation(annotations.text(key)))) return [];
  return [
    `${annotations.path}[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  ];
}

function hostIpWarnings(port: CheckedObject): string[] {
  if (port.text('hostIP') === '' || (port.number('hostPort') ?? 0) !== 0) return [];
  const [name, protocol, ip] = ['name', 'protocol', 'hostIP'].map((field) => port.text(field));
  const fields = `Name:${name} HostPort:0 ContainerPort:${port.number('containerPort')} Protocol:${protocol} HostIP:${ip}`;
  return [`${port.path}: hostIP set without hostPort: {${fields}}`];
}

/** Warnings of affinities to Pods. */
function podTermWarnings(affinity: CheckedObject): string[] {
  const preferred = affinity.items(PREFERRED).map((term) => term.in('podAffinityTerm'));
  return selectorWarnings([...affinity.items(REQUIRED), ...preferred]);
}

/** Warnings of items that match no Pod, because they have no label selector. */
function selectorWarnings(items: readonly CheckedObject[]): string[] {
  return items
    .filter((item) => !item.has('labelSelector'))
    .map((item) => `${item.at('labelSelector')}: a null labelSelector results in matching no pod`);
}

function repeated(items: readonly CheckedObject[], field: string): string[] {
  const values = new Set<string>();
  return items
    .filter((item) => values.size === values.add(item.text(field)).size)
    .map((item) => `${item.at(field)}: duplicate ${field} ${JSON.stringify(item.text(field))}`);
}

function containerWarnings(container: CheckedObject): string[] {
  const resources = container.in('resources');
  const env = container.items('env');
  const names = new Set<string>();
  const hidden = env.filter((each) => {
    const name = each.text('name');
    const isNew = names.size < names.add(name).size;
    const value = each.text('value');
    const extendsPrevious = value !== `$(${name})` && value.includes(`$(${name})`);
    return !isNew && (!extendsPrevious || each.has('valueFrom'));
  });
  return [
    ...['memory', 'ephemeral-storage'].flatMap((resource) =>
      ['limits', 'requests'].flatMap((list) => byteWarnings(resources, list, resource)),
    ),
    ...hidden.map(
      (each) =>
        `${each.path}: hides previous definition of ${JSON.stringify(each.text('name'))}, which may be dropped when using apply`,
    ),
  ];
}

/** Maximum number of pairs of ports that are compared; a response has few warnings. */
const MAX_COMPARISONS = 10_000;

/** Warnings of ports that several containers have. */
function portWarnings(ports: readonly CheckedObject[]): string[] {
  const warnings: string[] = [];
  const hostPort = (port: CheckedObject) => port.number('hostPort') ?? 0;
  const byNumber = new Map<string, CheckedObject[]>();
  let comparisons = 0;
  for (const port of ports) {
    const key = `${port.text('protocol')}/${port.number('containerPort')}`;
    const others = byNumber.get(key) ?? [];
    for (const other of others) {
      if (++comparisons > MAX_COMPARISONS) break;
      const [one, two] = [port.text('hostIP'), other.text('hostIP')];
      const [host, otherHost] = [hostPort(port), hostPort(other)];
      const problem =
        one === two && host === otherHost
          ? 'duplicate'
          : host === 0 || otherHost === 0
            ? 'overlapping'
            : host === otherHost && (one === '') !== (two === '')
              ? 'dangerously ambiguous'
              : undefined;
      if (problem) warnings.push(`${port.path}: ${problem} port definition with ${other.path}`);
    }
    others.push(port);
    byNumber.set(key, others);
  }
  const byName = new Map<string, string>();
  for (const port of ports) {
    const { path } = port;
    const name = port.text('name');
    const other = byName.get(name);
    if (other === undefined) byName.set(name, path);
    if (name === '' || other === undefined) continue;
    warnings.push(
      `${path}: duplicate port name ${JSON.stringify(name)} with ${other}, services and probes that select ports by name will use ${other}`,
    );
  }
  return warnings;
}
