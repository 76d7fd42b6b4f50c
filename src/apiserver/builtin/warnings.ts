import { equalJson } from '../../api/equal.ts';
import { quantityNanos } from '../../api/quantity.ts';
import { nameProblems } from '../object-names.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isSet, listIn, numberIn, objectIn, objectsIn, textIn } from './fields.ts';

type Warnings = NonNullable<ResourceDefinition['warnings']>;
type Texts = Readonly<Record<string, string>>;

/** Warnings of valid objects by group and plural. */
export const WARNINGS: Readonly<Record<string, Warnings>> = {
  // As upstream, an update of a Pod has none.
  pods: (pod, previous) =>
    previous ? [] : [...nameWarnings(pod, "the Pod's hostname"), ...podWarnings(pod, '')],
  podtemplates: (template) => podWarnings(objectIn(template, 'template') ?? {}, 'template.'),
  replicationcontrollers: workloadWarnings('spec.template', true),
  secrets: tlsWarnings,
  serviceaccounts: (account, previous) =>
    previous?.metadata.annotations?.[MOUNTABLE_SECRETS] === undefined
      ? annotationWarnings(account, '', {
          [MOUNTABLE_SECRETS]:
            'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets',
        })
      : [],
  services: serviceWarnings,
  persistentvolumes: (volume) => annotationWarnings(volume, '', VOLUME_ANNOTATIONS),
  persistentvolumeclaims: (claim) => {
    const resources = objectIn(objectIn(claim, 'spec'), 'resources') ?? {};
    return [
      ...annotationWarnings(claim, '', { [STORAGE_CLASS]: VOLUME_ANNOTATIONS[STORAGE_CLASS] }),
      ...byteWarnings(resources, 'requests', 'spec.resources', ['storage']),
      ...byteWarnings(resources, 'limits', 'spec.resources', ['storage']),
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
    ...((numberIn(objectIn(set, 'spec'), 'revisionHistoryLimit') ?? 0) < 0
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

/** Warnings of a new template, or of one whose workload has changed. */
function workloadWarnings(path: string, hasName: boolean): Warnings {
  return (object, previous) => {
    if (previous && previous.metadata.generation === object.metadata.generation) return [];
    const template = path.split('.').reduce<JsonObject | undefined>(objectIn, object);
    const ofName = hasName && !previous ? nameWarnings(object, 'Pod names and hostnames') : [];
    return [...ofName, ...podWarnings(template ?? {}, `${path}.`)];
  };
}

function nameWarnings({ metadata }: { metadata: { name: string } }, use: string): string[] {
  const problems = nameProblems(metadata.name, 'dns1123Label');
  if (problems.length === 0) return [];
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
  ];
}

function annotationWarnings(object: JsonObject, path: string, texts: Texts): string[] {
  const annotations = objectIn(objectIn(object, 'metadata'), 'annotations');
  return Object.entries(texts)
    .filter(([key]) => isSet(annotations, key))
    .map(([key, text]) => `${path}metadata.annotations[${key}]: ${text}`);
}

/** Warnings of a Pod or of a template at a path that ends with a dot. */
function podWarnings(pod: JsonObject, path: string): string[] {
  const spec = objectIn(pod, 'spec') ?? {};
  const at = `${path}spec`;
  const selector = Object.keys(objectIn(spec, 'nodeSelector') ?? {});
  const containers = ['initContainers', 'containers'].flatMap((list) =>
    objectsIn(spec, list).map(
      (container, index) => [container, `${at}.${list}[${index}]`] as const,
    ),
  );
  return [
    ...selector
      .filter((key) => Object.hasOwn(NODE_LABELS, key))
      .map((key) => `${at}.nodeSelector[${key}]: ${NODE_LABELS[key]}`),
    ...selectorWarnings(spec, at, 'topologySpreadConstraints'),
    ...annotationWarnings(pod, path, POD_ANNOTATIONS),
    ...objectsIn(spec, 'volumes').flatMap((volume, index) =>
      Object.entries(VOLUMES)
        .filter(([source]) => isSet(volume, source))
        .map(([source, text]) => `${at}.volumes[${index}].${source}: ${text}`),
    ),
    ...repeated(objectsIn(spec, 'hostAliases'), 'ip', `${at}.hostAliases`),
    ...repeated(objectsIn(spec, 'imagePullSecrets'), 'name', `${at}.imagePullSecrets`),
    ...containers.flatMap(([container, at]) => containerWarnings(container, at)),
    ...portWarnings(containers),
    ...((numberIn(spec, 'terminationGracePeriodSeconds') ?? 0) < 0
      ? [
          `${at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
        ]
      : []),
    ...selectorWarnings(
      spec,
      at,
      'affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution',
    ),
    ...selectorWarnings(
      spec,
      at,
      'affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution',
    ),
  ];
}

/** Warnings of items of a list that match no Pod, because they have no label selector. */
function selectorWarnings(spec: JsonObject, path: string, list: string): string[] {
  const parents = list.split('.');
  const last = parents.pop() ?? '';
  const items = objectsIn(parents.reduce<JsonObject | undefined>(objectIn, spec), last);
  return items.flatMap((item, index) =>
    isSet(item, 'labelSelector')
      ? []
      : [
          `${path}.${list}[${index}].labelSelector: a null labelSelector results in matching no pod`,
        ],
  );
}

function repeated(items: readonly JsonObject[], field: string, path: string): string[] {
  const values = items.map((item) => textIn(item, field));
  return values.flatMap((value, index) =>
    values.indexOf(value) < index
      ? [`${path}[${index}].${field}: duplicate ${field} ${JSON.stringify(value)}`]
      : [],
  );
}

function containerWarnings(container: JsonObject, path: string): string[] {
  const resources = objectIn(container, 'resources') ?? {};
  const env = objectsIn(container, 'env');
  const names = env.map((each) => textIn(each, 'name'));
  return [
    ...['memory', 'ephemeral-storage'].flatMap((resource) =>
      ['limits', 'requests'].flatMap((list) =>
        byteWarnings(resources, list, `${path}.resources`, [resource]),
      ),
    ),
    ...env.flatMap((each, index) => {
      const name = names[index] ?? '';
      const value = textIn(each, 'value');
      const extendsPrevious = value !== `$(${name})` && value.includes(`$(${name})`);
      return names.indexOf(name) === index || (extendsPrevious && !isSet(each, 'valueFrom'))
        ? []
        : [
            `${path}.env[${index}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`,
          ];
    }),
  ];
}

function byteWarnings(
  resources: JsonObject,
  list: string,
  path: string,
  names: readonly string[],
): string[] {
  const values = objectIn(resources, list);
  return names.flatMap((name) => {
    const value = textIn(values, name);
    return (quantityNanos(value) ?? 0n) % 1_000_000_000n === 0n
      ? []
      : [
          `${path}.${list}[${name}]: fractional byte value ${JSON.stringify(value)} is invalid, must be an integer`,
        ];
  });
}

/** Warnings of ports that several containers have. */
function portWarnings(containers: readonly (readonly [JsonObject, string])[]): string[] {
  const ports = containers.flatMap(([container, at]) =>
    objectsIn(container, 'ports').map((port, index) => ({ port, at: `${at}.ports[${index}]` })),
  );
  const warnings: string[] = [];
  const hostPort = (port: JsonObject) => numberIn(port, 'hostPort') ?? 0;
  for (const [index, { port, at }] of ports.entries()) {
    for (const other of ports.slice(0, index)) {
      const isSame = ['containerPort', 'protocol'].every(
        (field) => port[field] === other.port[field],
      );
      if (!isSame) continue;
      const [one, two] = [textIn(port, 'hostIP'), textIn(other.port, 'hostIP')];
      const [host, otherHost] = [hostPort(port), hostPort(other.port)];
      const problem =
        one === two && host === otherHost
          ? 'duplicate'
          : host === 0 || otherHost === 0
            ? 'overlapping'
            : host === otherHost && (one === '') !== (two === '')
              ? 'dangerously ambiguous'
              : undefined;
      if (problem) warnings.push(`${at}: ${problem} port definition with ${other.at}`);
    }
  }
  for (const [index, { port, at }] of ports.entries()) {
    const name = textIn(port, 'name');
    const first = ports.findIndex((other) => textIn(other.port, 'name') === name);
    const other = ports[first]?.at;
    if (name === '' || first === index) continue;
    warnings.push(
      `${at}: duplicate port name ${JSON.stringify(name)} with ${other}, services and probes that select ports by name will use ${other}`,
    );
  }
  return warnings;
}

function serviceWarnings(service: JsonObject): string[] {
  const spec = objectIn(service, 'spec') ?? {};
  const type = textIn(spec, 'type');
  const isExternal = type === 'ExternalName';
  const isHeadless = type === 'ClusterIP' && textIn(spec, 'clusterIP') === 'None';
  const hasAddresses = listIn(spec, 'externalIPs').length > 0;
  const rules: readonly (readonly [boolean, string])[] = [
    [
      isSet(
        objectIn(objectIn(service, 'metadata'), 'annotations'),
        'service.kubernetes.io/topology-aware-hints',
      ),
      'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
    ],
    [
      isHeadless && textIn(spec, 'loadBalancerIP') !== '',
      'spec.loadBalancerIP is ignored for headless services',
    ],
    [isHeadless && hasAddresses, 'spec.externalIPs is ignored for headless services'],
    [
      isHeadless && textIn(spec, 'sessionAffinity') !== 'None',
      'spec.SessionAffinity is ignored for headless services',
    ],
    [
      hasAddresses && !isHeadless && !isExternal,
      'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
    ],
    [isExternal && hasAddresses, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    [
      !isExternal && textIn(spec, 'externalName') !== '',
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ],
    [
      textIn(spec, 'trafficDistribution') === 'PreferClose',
      'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ],
  ];
  return rules.flatMap(([applies, text]) => (applies ? [text] : []));
}

/** The first thing that Go misses when it reads the certificate and the key of a Secret. */
function tlsWarnings(secret: JsonObject): string[] {
  if (textIn(secret, 'type') !== 'kubernetes.io/tls') return [];
  const data = objectIn(secret, 'data');
  const inputs = { certificate: 'tls.crt', key: 'tls.key' };
  const absent = Object.entries(inputs).find(
    ([, key]) => !Buffer.from(textIn(data, key), 'base64').includes('-----BEGIN '),
  );
  return absent ? [`tls: failed to find any PEM data in ${absent[0]} input`] : [];
}
