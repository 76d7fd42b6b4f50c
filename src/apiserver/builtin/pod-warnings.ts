import { equalJson } from '../../api/equal.ts';
import { quantityNanos } from '../../api/quantity.ts';
import { labelValueProblems } from '../../api/object-names.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import { ipWarnings } from './addresses.ts';
import { pathWarnings } from './volume-path-warnings.ts';

type Texts = Readonly<Record<string, string>>;

const POD_ANNOTATIONS: Texts = {
  'scheduler.alpha.kubernetes.io/critical-pod':
    'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls':
    'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls':
    'non-functional in v1.11+; use the "sysctls" field instead',
};

export const NODE_LABELS: Texts = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region':
    'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone':
    'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type':
    'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods':
    'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
};

export const VOLUMES: Texts = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11, and disabled by default in v1.33+',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

export function annotationWarnings(object: CheckedObject, texts: Texts): string[] {
  const annotations = object.in('metadata').in('annotations');
  return Object.entries(texts)
    .filter(([key]) => annotations.has(key))
    .map(([key, text]) => `${annotations.path}[${key}]: ${text}`);
}

export function nodeSelectorWarnings(selector: CheckedObject): string[] {
  const expressions = selector
    .items('nodeSelectorTerms')
    .flatMap((term) => term.items('matchExpressions'));
  return expressions.flatMap((expression) => nodeLabelWarnings(expression, 'key'));
}

/** The warning about the label of nodes in a field, if it is deprecated. */
export function nodeLabelWarnings(parent: CheckedObject, field: string): string[] {
  const key = parent.text(field);
  return Object.hasOwn(NODE_LABELS, key)
    ? [`${parent.at(field)}: ${key} is ${NODE_LABELS[key]}`]
    : [];
}

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

/** Warnings of the texts in a list. */
export function addressWarnings(
  holder: CheckedObject,
  list: string,
  warningsOf: (path: string, text: string) => string[],
): string[] {
  return holder
    .list(list)
    .flatMap((text, index) => warningsOf(`${holder.at(list)}[${index}]`, String(text)));
}

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

/** Warnings of the spec of a PersistentVolumeClaim. */
export function claimWarnings(spec: CheckedObject): string[] {
  const resources = spec.in('resources');
  return ['requests', 'limits'].flatMap((list) => byteWarnings(resources, list, 'storage'));
}

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

/** An annotation that only repeats the profile of the Pod has no warning. */
function appArmorWarnings(
  spec: CheckedObject,
  container: CheckedObject,
  annotations: CheckedObject,
): string[] {
  const key = `${APP_ARMOR}${container.text('name')}`;
  if (!annotations.has(key) || container.in('securityContext').has('appArmorProfile')) return [];
  const profile = spec.in('securityContext').get('appArmorProfile')?.value;
  if (equalJson(profile, appArmorProfile(annotations.text(key)))) return [];
  return [
    `${annotations.path}[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  ];
}

function appArmorProfile(annotation: string): object | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' };
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' };
  const [, localhostProfile] = /^localhost\/(.+)$/s.exec(annotation) ?? [];
  return localhostProfile === undefined ? undefined : { type: 'Localhost', localhostProfile };
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

export function byteWarnings(resources: CheckedObject, list: string, name: string): string[] {
  const value = resources.in(list).text(name);
  if ((quantityNanos(value) ?? 0n) % 1_000_000_000n === 0n) return [];
  return [
    `${resources.at(list)}[${name}]: fractional byte value ${JSON.stringify(value)} is invalid, must be an integer`,
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
