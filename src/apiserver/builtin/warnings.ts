import { isSet, listIn, objectIn } from '../../util/json-value.ts';
import { goQuote } from '../../util/go-quote.ts';
import { textFromBase64 } from '../../util/bytes.ts';
import { equalJson } from '../../api/equal.ts';
import { compareQuantities } from '../../api/quantity.ts';
import { nameProblems } from '../../api/object-names.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { CheckedObject } from '../objects/checked-object.ts';
import { cidrWarnings, ipWarnings } from './addresses.ts';
import { staticNameWarnings } from './static-names.ts';
import { crdWarnings } from './crd-warnings.ts';
import {
  addressWarnings,
  annotationWarnings,
  claimWarnings,
  NODE_LABELS,
  nodeLabelWarnings,
  nodeSelectorWarnings,
  podWarnings,
  VOLUMES,
} from './pod-warnings.ts';

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
  endpoints: (object) =>
    object.metadata.labels?.['endpoints.kubernetes.io/managed-by'] === 'endpoint-controller'
      ? []
      : new CheckedObject(object)
          .items('subsets')
          .flatMap((subset) =>
            ['addresses', 'notReadyAddresses'].flatMap((list) => subset.items(list)),
          )
          .flatMap((address) => ipWarnings(address.at('ip'), address.text('ip'))),
  nodes: (node) => nodeWarnings(new CheckedObject(node).in('spec')),
  resourcequotas: (quota, previous) =>
    previous ? [] : quotaWarnings(new CheckedObject(quota).in('spec').in('hard')),
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
    return [
      ...annotationWarnings(claim, { [STORAGE_CLASS]: VOLUME_ANNOTATIONS[STORAGE_CLASS] }),
      ...claimWarnings(claim.in('spec')),
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
    ...new CheckedObject(set)
      .in('spec')
      .items('volumeClaimTemplates')
      // The paths of upstream.
      .map((claim) => new CheckedObject(claim.in('spec').value, claim.at(previous ? 'Spec' : '')))
      .flatMap(claimWarnings),
    ...((new CheckedObject(set).in('spec').number('revisionHistoryLimit') ?? 0) < 0
      ? [
          'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended',
        ]
      : []),
  ],
  'batch/cronjobs': (job, previous) => [
    ...jobWarnings('spec.jobTemplate.spec', job, previous),
    ...(previous && new CheckedObject(job).in('spec').text('schedule').includes('TZ')
      ? [
          'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details',
        ]
      : []),
  ],
  'batch/jobs': (job, previous) => jobWarnings('spec', job, previous),
  'apiextensions.k8s.io/customresourcedefinitions': crdWarnings,
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': webhookWarnings,
  'admissionregistration.k8s.io/validatingwebhookconfigurations': webhookWarnings,
  'admissionregistration.k8s.io/mutatingadmissionpolicies': staticNameWarnings,
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': staticNameWarnings,
  'admissionregistration.k8s.io/validatingadmissionpolicies': staticNameWarnings,
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': staticNameWarnings,
  'discovery.k8s.io/endpointslices': (slice, previous) => [
    ...(!previous && slice['addressType'] === 'FQDN'
      ? ['spec.addressType: FQDN endpoints are deprecated']
      : []),
    ...(SLICE_CONTROLLERS.has(
      slice.metadata.labels?.['endpointslice.kubernetes.io/managed-by'] ?? '',
    )
      ? []
      : new CheckedObject(slice)
          .items('endpoints')
          .flatMap((endpoint) => addressWarnings(endpoint, 'addresses', ipWarnings))),
  ],
  'networking.k8s.io/networkpolicies': (policy) => {
    const spec = new CheckedObject(policy).in('spec');
    const peers = [
      ...spec.items('ingress').flatMap((rule) => rule.items('from')),
      ...spec.items('egress').flatMap((rule) => rule.items('to')),
    ];
    return peers
      .flatMap((peer) => peer.get('ipBlock') ?? [])
      .flatMap((block) =>
        cidrWarnings(block.at('cidr'), block.text('cidr')).concat(
          addressWarnings(block, 'except', cidrWarnings),
        ),
      );
  },
  'node.k8s.io/runtimeclasses': (object) => {
    const selector = new CheckedObject(object).in('scheduling').in('nodeSelector');
    return Object.keys(selector.value)
      .filter((key) => Object.hasOwn(NODE_LABELS, key))
      .map((key) => `${selector.path}: ${NODE_LABELS[key]}`);
  },
  'storage.k8s.io/storageclasses': (object) =>
    new CheckedObject(object)
      .items('allowedTopologies')
      .flatMap((topology) => topology.items('matchLabelExpressions'))
      .filter((expression) => Object.hasOwn(NODE_LABELS, expression.text('key')))
      .map((expression) => `${expression.at('key')}: ${NODE_LABELS[expression.text('key')]}`),
  'storage.k8s.io/csistoragecapacities': (object) =>
    labelSelectorWarnings(new CheckedObject(object).in('nodeTopology')),
  'storage.k8s.io/csidrivers': (driver, previous) => {
    const spec = objectIn(driver, 'spec');
    const requests = spec?.['tokenRequests'];
    const isNew = !equalJson(requests, objectIn(previous ?? {}, 'spec')?.['tokenRequests']);
    return isNew && listIn(spec, 'tokenRequests').length > 0 && !isSet(spec, TOKENS_IN_SECRETS)
      ? [
          `spec.${TOKENS_IN_SECRETS} is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes`,
        ]
      : [];
  },
  'resource.k8s.io/resourceslices': (slice) => {
    const driver = new CheckedObject(slice).in('spec').text('driver');
    return driver === driver.toLowerCase()
      ? []
      : [
          `spec.driver: driver names should be lowercase; ${goQuote(driver)} contains uppercase characters`,
        ];
  },
  'networking.k8s.io/ingresses': (ingress, previous) =>
    !previous &&
    ingress.metadata.annotations?.[INGRESS_CLASS] !== undefined &&
    !isSet(objectIn(ingress, 'spec'), 'ingressClassName')
      ? [`annotation "${INGRESS_CLASS}" is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
};

/** Warnings of a write of the status, by group and plural. */
export const STATUS_WARNINGS: Readonly<Record<string, Warnings>> = {
  pods: (pod) =>
    ['podIPs', 'hostIPs']
      .flatMap((list) => new CheckedObject(pod).in('status').items(list))
      .flatMap((each) => ipWarnings(each.at('ip'), each.text('ip'))),
  services: loadBalancerWarnings,
  'networking.k8s.io/ingresses': loadBalancerWarnings,
};

function loadBalancerWarnings(object: StoredObject): string[] {
  const ingresses = new CheckedObject(object).in('status').in('loadBalancer').items('ingress');
  return ingresses.flatMap((ingress) => ipWarnings(ingress.path, ingress.text('ip')));
}

const SLICE_CONTROLLERS: ReadonlySet<string> = new Set([
  'endpointslice-controller.k8s.io',
  'endpointslicemirroring-controller.k8s.io',
]);
const TOKENS_IN_SECRETS = 'serviceAccountTokenInSecrets';
const MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';
const INGRESS_CLASS = 'kubernetes.io/ingress.class';
const STORAGE_CLASS = 'volume.beta.kubernetes.io/storage-class';

const VOLUME_ANNOTATIONS = {
  [STORAGE_CLASS]: 'deprecated since v1.8; use "storageClassName" attribute instead',
  'volume.beta.kubernetes.io/mount-options':
    'deprecated since v1.31; use "mountOptions" attribute instead',
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

/** Warnings of a new template, or of one whose workload has changed. */
function workloadWarnings(path: string, hasName: boolean): Warnings {
  return (object, previous) => {
    if (previous && previous.metadata.generation === object.metadata.generation) return [];
    const ofName = hasName && !previous ? nameWarnings(object, 'Pod names and hostnames') : [];
    return [...ofName, ...podWarnings(partAt(object, path))];
  };
}

/** Warnings of the spec of a job. */
function jobWarnings(path: string, job: StoredObject, previous?: StoredObject): readonly string[] {
  const warnings = workloadWarnings(`${path}.template`, true)(job, previous);
  if (previous && previous.metadata.generation === job.metadata.generation) return warnings;
  const spec = partAt(job, path);
  const [completions, parallelism] = [spec.number('completions'), spec.number('parallelism')];
  const isIndexed = spec.text('completionMode') === 'Indexed';
  return isIndexed && (completions ?? 0) > 100_000 && (parallelism ?? 0) > 10_000
    ? [
        `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail`,
        ...warnings,
      ]
    : warnings;
}

function partAt(object: StoredObject, path: string): CheckedObject {
  const whole: CheckedObject = new CheckedObject(object);
  return path.split('.').reduce((part, field) => part.in(field), whole);
}

function nodeWarnings(spec: CheckedObject): string[] {
  return [
    ...(spec.has('configSource') ? ['spec.configSource: the feature is removed'] : []),
    ...(spec.text('externalID') === ''
      ? []
      : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
    ...addressWarnings(spec, 'podCIDRs', cidrWarnings),
  ];
}

/** Requests of a quota beyond its limits. */
function quotaWarnings(hard: CheckedObject): string[] {
  return ['cpu', 'memory', 'ephemeral-storage'].flatMap((resource) => {
    const names = [`requests.${resource}`, ...(resource === 'ephemeral-storage' ? [] : [resource])];
    const request = names.find((name) => hard.has(name));
    const limit = `limits.${resource}`;
    if (request === undefined || !hard.has(limit)) return [];
    const [less, more] = [hard.text(request), hard.text(limit)];
    return compareQuantities(less, more) > 0
      ? [`ResourceQuota ${request} (${less}) should be less than ${limit} (${more})`]
      : [];
  });
}

function labelSelectorWarnings(selector: CheckedObject): string[] {
  const labels = selector.in('matchLabels');
  const ofLabels = Object.keys(labels.value)
    .filter((key) => Object.hasOwn(NODE_LABELS, key))
    .map((key) => `${labels.at(key)}: ${NODE_LABELS[key]}`);
  const expressions = selector.items('matchExpressions');
  return [
    ...expressions.flatMap((expression) => nodeLabelWarnings(expression, 'key')),
    ...ofLabels,
  ];
}

/** Resources that no webhook is called for. */
const EXCLUDED: ReadonlySet<string> = new Set([
  'selfsubjectreviews.authentication.k8s.io',
  'tokenreviews.authentication.k8s.io',
  'localsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectrulesreviews.authorization.k8s.io',
  'subjectaccessreviews.authorization.k8s.io',
]);

function webhookWarnings(object: StoredObject, previous?: StoredObject): string[] {
  const rules = new CheckedObject(object).items('webhooks').flatMap((hook) => hook.items('rules'));
  const ofRules = rules.flatMap((rule) => {
    const [groups, resources] = [rule.list('apiGroups'), rule.list('resources')];
    if (groups.includes('*') || resources.includes('*')) return [];
    const named = groups.flatMap((group) =>
      resources.map((resource) => `${String(resource)}.${String(group)}`),
    );
    return [...new Set(named)]
      .filter((name) => EXCLUDED.has(name))
      .map(
        (name) =>
          `${rule.path}: ${name} is excluded from admission webhooks; this rule will have no effect`,
      );
  });
  return [...staticNameWarnings(object, previous), ...ofRules];
}

function nameWarnings({ metadata }: { metadata: { name: string } }, use: string): string[] {
  const problems = nameProblems(metadata.name, 'dns1123Label');
  if (problems.length === 0) return [];
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
  ];
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

function serviceWarnings(object: StoredObject): string[] {
  const service = new CheckedObject(object);
  const spec = service.in('spec');
  const type = spec.text('type');
  const isExternal = type === 'ExternalName';
  const isHeadless = type === 'ClusterIP' && spec.text('clusterIP') === 'None';
  const hasAddresses = spec.list('externalIPs').length > 0;
  const isAddress = ['ClusterIP', 'NodePort', 'LoadBalancer'].includes(type) && !isHeadless;
  const rules: readonly (readonly [boolean, string | readonly string[]])[] = [
    [
      service.in('metadata').in('annotations').has('service.kubernetes.io/topology-aware-hints'),
      'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
    ],
    [isAddress, addressWarnings(spec, 'clusterIPs', ipWarnings)],
    [
      isHeadless && spec.text('loadBalancerIP') !== '',
      'spec.loadBalancerIP is ignored for headless services',
    ],
    [isHeadless && hasAddresses, 'spec.externalIPs is ignored for headless services'],
    [
      isHeadless && spec.text('sessionAffinity') !== 'None',
      'spec.SessionAffinity is ignored for headless services',
    ],
    [true, addressWarnings(spec, 'externalIPs', ipWarnings)],
    [
      hasAddresses && !isHeadless && !isExternal,
      'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
    ],
    [
      true,
      [
        ...ipWarnings(spec.at('loadBalancerIP'), spec.text('loadBalancerIP')),
        ...addressWarnings(spec, 'loadBalancerSourceRanges', cidrWarnings),
      ],
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
  return rules.flatMap(([applies, texts]) => (applies ? texts : []));
}

/** The first thing that Go misses when it reads the certificate and the key of a Secret. */
function tlsWarnings(object: StoredObject): string[] {
  const secret = new CheckedObject(object);
  if (secret.text('type') !== 'kubernetes.io/tls') return [];
  const data = secret.in('data');
  const inputs = { certificate: 'tls.crt', key: 'tls.key' };
  const absent = Object.entries(inputs).find(
    ([, key]) => !textFromBase64(data.text(key)).includes('-----BEGIN '),
  );
  return absent ? [`tls: failed to find any PEM data in ${absent[0]} input`] : [];
}
