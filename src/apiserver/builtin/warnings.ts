import { isSet, objectIn } from '../../util/json-value.ts';
import { equalJson } from '../../api/equal.ts';
import { quantityNanos } from '../../api/quantity.ts';
import { labelValueProblems, nameProblems } from '../../api/object-names.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { CheckedObject } from '../objects/checked-object.ts';

type Warnings = NonNullable<ResourceDefinition['warnings']>;
type Texts = Readonly<Record<string, string>>;

/** Warnings of valid objects by group and plural. */
export const WARNINGS: Readonly<Record<string, Warnings>> = {
  // As upstream, an update of a Pod has none.
  pods: (pod, previous) =>
    previous
      ? []
      : [...nameWarnings(pod, "the Pod's hostname"), ...podWarnings(new CheckedObject(pod))],
  podtemplates: (template) => podWarnings(new CheckedObject(template).in('template')),
  replicationcontrollers: workloadWarnings('spec.template', true),
  secrets: tlsWarnings,
  serviceaccounts: (account, previous) =>
    previous?.metadata.annotations?.[MOUNTABLE_SECRETS] === undefined
      ? annotationWarnings(new CheckedObject(account), {
          [MOUNTABLE_SECRETS]:
            'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets',
        })
      : [],
  services: serviceWarnings,
  persistentvolumes: (volume) => volumeWarnings(new CheckedObject(volume)),
  persistentvolumeclaims: (object) => {
    const claim = new CheckedObject(object);
    const resources = claim.in('spec').in('resources');
    return [
      ...annotationWarnings(claim, { [STORAGE_CLASS]: VOLUME_ANNOTATIONS[STORAGE_CLASS] }),
      ...byteWarnings(resources, 'requests', 'storage'),
      ...byteWarnings(resources, 'limits', 'storage'),
    ];
  },
  'apps/daemonsets': (set, previous) =>
    previous &&
    equalJson(objectIn(set, 'spec')?.['template'], objectIn(previous, 'spec')?.['template'])
      ? []
      : workloadWarnings('spec.template', false)(set, undefined),
  'apps/deployments': workloadWarnings('spec.template', true),
  'apps/replicasets': workloadWarnings('spec.template', true),
  'apps/statefulsets': (set, previous) => [
    ...workloadWarnings('spec.template', false)(set, previous),
    ...((new CheckedObject(set).in('spec').number('revisionHistoryLimit') ?? 0) < 0
      ? [
          'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended',
        ]
      : []),
  ],
  'batch/cronjobs': workloadWarnings('spec.jobTemplate.spec.template', true),
  'batch/jobs': workloadWarnings('spec.template', true),
  'networking.k8s.io/ingresses': (ingress, previous) =>
    !previous &&
    ingress.metadata.annotations?.[INGRESS_CLASS] !== undefined &&
    !isSet(objectIn(ingress, 'spec'), 'ingressClassName')
      ? [`annotation "${INGRESS_CLASS}" is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
};

const MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';
const INGRESS_CLASS = 'kubernetes.io/ingress.class';
const STORAGE_CLASS = 'volume.beta.kubernetes.io/storage-class';

const VOLUME_ANNOTATIONS = {
  [STORAGE_CLASS]: 'deprecated since v1.8; use "storageClassName" attribute instead',
  'volume.beta.kubernetes.io/mount-options':
    'deprecated since v1.31; use "mountOptions" attribute instead',
};

const POD_ANNOTATIONS: Texts = {
  'scheduler.alpha.kubernetes.io/critical-pod':
    'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls':
    'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls':
    'non-functional in v1.11+; use the "sysctls" field instead',
};

const NODE_LABELS: Texts = {
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

const VOLUMES: Texts = {
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

/** The sources of PersistentVolumes among them, with their names in messages. */
const PERSISTENT_SOURCES: Texts = {
  cephfs: 'cephfs',
  photonPersistentDisk: 'photonPersistentDisk',
  scaleIO: 'scaleIO',
  storageos: 'storageOS',
  glusterfs: 'glusterfs',
  rbd: 'rbd',
};

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Warnings of a new template, or of one whose workload has changed. */
function workloadWarnings(path: string, hasName: boolean): Warnings {
  return (object, previous) => {
    if (previous && previous.metadata.generation === object.metadata.generation) return [];
    const whole = new CheckedObject(object);
    const template = path.split('.').reduce<CheckedObject>((part, field) => part.in(field), whole);
    const ofName = hasName && !previous ? nameWarnings(object, 'Pod names and hostnames') : [];
    return [...ofName, ...podWarnings(template)];
  };
}

function nameWarnings({ metadata }: { metadata: { name: string } }, use: string): string[] {
  const problems = nameProblems(metadata.name, 'dns1123Label');
  if (problems.length === 0) return [];
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
  ];
}

function annotationWarnings(object: CheckedObject, texts: Texts): string[] {
  const annotations = object.in('metadata').in('annotations');
  return Object.entries(texts)
    .filter(([key]) => annotations.has(key))
    .map(([key, text]) => `${annotations.path}[${key}]: ${text}`);
}

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

function nodeSelectorWarnings(selector: CheckedObject): string[] {
  const expressions = selector
    .items('nodeSelectorTerms')
    .flatMap((term) => term.items('matchExpressions'));
  return expressions.flatMap((expression) => nodeLabelWarnings(expression, 'key'));
}

/** The warning about the label of nodes in a field, if it is deprecated. */
function nodeLabelWarnings(parent: CheckedObject, field: string): string[] {
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
function podWarnings(pod: CheckedObject): string[] {
  const spec = pod.in('spec');
  const selector = spec.in('nodeSelector');
  const containers = ['initContainers', 'containers'].flatMap((list) => spec.items(list));
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
    ...spec.items('volumes').flatMap((volume) =>
      Object.entries(VOLUMES)
        .filter(([source]) => volume.has(source))
        .map(([source, text]) => `${volume.at(source)}: ${text}`),
    ),
    ...repeated(spec.items('hostAliases'), 'ip'),
    ...repeated(spec.items('imagePullSecrets'), 'name'),
    ...containers.flatMap(containerWarnings),
    ...portWarnings(containers.flatMap((container) => container.items('ports'))),
    ...((spec.number(grace) ?? 0) < 0
      ? [`${spec.at(grace)}: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...selectorWarnings(affinity.in('podAffinity').items(REQUIRED)),
    ...selectorWarnings(affinity.in('podAntiAffinity').items(REQUIRED)),
  ];
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

function byteWarnings(resources: CheckedObject, list: string, name: string): string[] {
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

function serviceWarnings(object: StoredObject): string[] {
  const service = new CheckedObject(object);
  const spec = service.in('spec');
  const type = spec.text('type');
  const isExternal = type === 'ExternalName';
  const isHeadless = type === 'ClusterIP' && spec.text('clusterIP') === 'None';
  const hasAddresses = spec.list('externalIPs').length > 0;
  const rules: readonly (readonly [boolean, string])[] = [
    [
      service.in('metadata').in('annotations').has('service.kubernetes.io/topology-aware-hints'),
      'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
    ],
    [
      isHeadless && spec.text('loadBalancerIP') !== '',
      'spec.loadBalancerIP is ignored for headless services',
    ],
    [isHeadless && hasAddresses, 'spec.externalIPs is ignored for headless services'],
    [
      isHeadless && spec.text('sessionAffinity') !== 'None',
      'spec.SessionAffinity is ignored for headless services',
    ],
    [
      hasAddresses && !isHeadless && !isExternal,
      'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
    ],
    [isExternal && hasAddresses, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    [
      !isExternal && spec.text('externalName') !== '',
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ],
    [
      spec.text('trafficDistribution') === 'PreferClose',
      'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ],
  ];
  return rules.flatMap(([applies, text]) => (applies ? [text] : []));
}

/** The first thing that Go misses when it reads the certificate and the key of a Secret. */
function tlsWarnings(object: StoredObject): string[] {
  const secret = new CheckedObject(object);
  if (secret.text('type') !== 'kubernetes.io/tls') return [];
  const data = secret.in('data');
  const inputs = { certificate: 'tls.crt', key: 'tls.key' };
  const absent = Object.entries(inputs).find(
    ([, key]) => !Buffer.from(data.text(key), 'base64').includes('-----BEGIN '),
  );
  return absent ? [`tls: failed to find any PEM data in ${absent[0]} input`] : [];
}
