import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { pod } from './objects.ts';
import type { Case } from './refusals.ts';
import { refusals, refusedUpdates } from './refusals.ts';

type Tail<F extends (api: Api, ...rest: never[]) => unknown> = F extends (
  api: Api,
  ...rest: infer R
) => unknown
  ? R
  : never;

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

const refuses = (...args: Tail<typeof refusals>) => refusals(api, ...args);
const refusesUpdates = (...args: Tail<typeof refusedUpdates>) => refusedUpdates(api, ...args);

const container = { name: 'c', image: 'i' };

function podOf(spec: Json): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'refused' },
    spec: { containers: [container], ...spec },
  };
}

const PODS = '/api/v1/namespaces/default/pods';

test('the placement of a Pod is validated', async () => {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const nodes = (terms: Json) => ({
    affinity: { nodeAffinity: { [required]: { nodeSelectorTerms: terms } } },
  });
  const atNodes = `spec.affinity.nodeAffinity.${required}.nodeSelectorTerms`;
  const pods = (term: Json) => ({ affinity: { podAffinity: { [required]: [term] } } });
  const atPods = `spec.affinity.podAffinity.${required}[0]`;
  const spread = (constraint: Json) => ({
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', ...constraint },
    ],
  });
  const atSpread = 'spec.topologySpreadConstraints[0]';
  await refuses(
    PODS,
    [
      [nodes([]), `${atNodes} Required`],
      [
        nodes([{ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1', '2'] }] }]),
        `${atNodes}[0].matchExpressions[0].values Required`,
      ],
      [
        nodes([{ matchExpressions: [{ key: 'a b', operator: 'Is' }] }]),
        `${atNodes}[0].matchExpressions[0].key Invalid`,
        `${atNodes}[0].matchExpressions[0].operator Invalid`,
      ],
      [
        nodes([{ matchFields: [{ key: 'metadata.uid', operator: 'In', values: ['a'] }] }]),
        `${atNodes}[0].matchFields[0].key Invalid`,
      ],
      [
        {
          affinity: {
            podAntiAffinity: {
              [preferred]: [{ weight: 101, podAffinityTerm: { topologyKey: 'a' } }],
            },
          },
        },
        `spec.affinity.podAntiAffinity.${preferred}[0].weight Invalid`,
      ],
      [
        pods({ topologyKey: '' }),
        `${atPods}.topologyKey Required`,
        ...Array(2).fill(`${atPods}.topologyKey Invalid`),
      ],
      [pods({ topologyKey: 'a', matchLabelKeys: ['b'] }), `${atPods}.matchLabelKeys Forbidden`],
      [
        pods({
          topologyKey: 'a',
          labelSelector: { matchExpressions: [{ key: 'b', operator: 'Exists', values: ['c'] }] },
        }),
        `${atPods}.labelSelector.matchExpressions[0].values Forbidden`,
      ],
      [spread({})],
      [
        spread({ maxSkew: 0, minDomains: -1 }),
        `${atSpread}.maxSkew Invalid`,
        `${atSpread}.minDomains Invalid`,
      ],
      [spread({ whenUnsatisfiable: 'Maybe' }), `${atSpread}.whenUnsatisfiable NotSupported`],
      [spread({ nodeTaintsPolicy: 'Maybe' }), `${atSpread}.nodeTaintsPolicy NotSupported`],
      [
        {
          tolerations: [
            { key: 'a', operator: 'Is' },
            { key: '_', operator: 'Exists' },
          ],
        },
        'spec.tolerations[0].operator NotSupported',
        'spec.tolerations[1].key Invalid',
      ],
      [{ nodeSelector: { 'a b': 'c' } }, 'spec.nodeSelector Invalid'],
    ],
    podOf,
  );
});

test('the containers of a Pod are validated', async () => {
  const one = (fields: Json, others: Json = {}) => ({
    containers: [{ ...container, ...fields }],
    ...others,
  });
  const at = 'spec.containers[0]';
  const resources = (limits: Json, requests: Json = limits) =>
    one({ resources: { limits, requests } });
  const env = (valueFrom: Json) => one({ env: [{ name: 'a', valueFrom }] });
  const atEnv = `${at}.env[0].valueFrom`;
  const mount = (fields: Json) =>
    one(
      { volumeMounts: [{ name: 'v', mountPath: '/a', ...fields }] },
      { volumes: [{ name: 'v', emptyDir: {} }] },
    );
  await refuses(
    PODS,
    [
      [
        resources({ 'example.com/gpu': '500m' }),
        `${at}.resources.limits[example.com/gpu] Invalid`,
        `${at}.resources.requests[example.com/gpu] Invalid`,
      ],
      [
        resources({ gpu: '1' }, {}),
        ...Array(2).fill(`${at}.resources.limits[gpu] Invalid`),
        ...Array(2).fill(`${at}.resources.requests[gpu] Invalid`),
      ],
      [resources({ 'hugepages-2Mi': '2Mi' }), `${at}.resources Forbidden`],
      [
        resources({ 'hugepages-x': '2Mi', memory: '1' }),
        ...['limits', 'requests'].map((list) => `${at}.resources.${list}[hugepages-x] Invalid`),
      ],
      [one({ resources: { claims: [{ name: 'a' }] } }), `${at}.resources.claims[0] NotFound`],
      [
        env({ resourceFieldRef: { resource: 'limits.cpu', divisor: '2' } }),
        `${atEnv}.resourceFieldRef.divisor Invalid`,
      ],
      [
        env({ resourceFieldRef: { resource: 'limits.gpu' } }),
        `${atEnv}.resourceFieldRef.resource NotSupported`,
      ],
      [
        env({ fieldRef: { fieldPath: 'metadata.labels' } }),
        `${atEnv}.fieldRef.fieldPath NotSupported`,
      ],
      [
        env({ configMapKeyRef: { name: 'A', key: 'a b' } }),
        `${atEnv}.configMapKeyRef.name Invalid`,
        `${atEnv}.configMapKeyRef.key Invalid`,
      ],
      [one({ envFrom: [{}] }), `${at}.envFrom Invalid`],
      [mount({ subPath: '../a' }), `${at}.volumeMounts.subPath Invalid`],
      [
        mount({ mountPropagation: 'Bidirectional' }),
        `${at}.volumeMounts.mountPropagation Forbidden`,
      ],
      [
        one({ volumeDevices: [{ name: 'v', devicePath: '/dev/a' }] }),
        `${at}.volumeDevices[0].name NotFound`,
      ],
      [
        one({
          ports: [
            { containerPort: 1, hostPort: 2 },
            { containerPort: 3, hostPort: 2 },
          ],
        }),
        `${at}.ports[1].hostPort Duplicate`,
      ],
      [
        one({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
        `${at}.securityContext Invalid`,
      ],
      [
        one({ securityContext: { seccompProfile: { type: 'Localhost' } } }),
        `${at}.securityContext.seccompProfile.localhostProfile Required`,
      ],
      [
        one({ securityContext: { runAsUser: -1, procMount: 'None' } }),
        `${at}.securityContext.runAsUser Invalid`,
        `${at}.securityContext.procMount NotSupported`,
      ],
      [
        { ephemeralContainers: [container] },
        'spec.ephemeralContainers Forbidden',
        'spec.ephemeralContainers[0].name Duplicate',
      ],
    ],
    podOf,
  );
});

test('the volumes of a Pod are validated', async () => {
  const one = (source: Json) => ({ volumes: [{ name: 'v', ...source }] });
  const at = 'spec.volumes[0]';
  const item = { key: 'a', path: 'b' };
  const twice = [
    { configMap: { name: 'x', items: [item] } },
    { secret: { name: 'y', items: [item] } },
  ];
  await refuses(
    PODS,
    [
      [one({ emptyDir: { sizeLimit: '-1' } }), `${at}.emptyDir.sizeLimit Forbidden`],
      [
        one({ hostPath: { path: '/a/../b', type: 'Any' } }),
        `${at}.hostPath.path Invalid`,
        `${at}.hostPath.type NotSupported`,
      ],
      [one({ nfs: { server: 'a', path: 'b' } }), `${at}.nfs.path Invalid`],
      [one({ secret: { secretName: 'a', defaultMode: 512 } }), `${at}.secret.defaultMode Invalid`],
      [
        one({ configMap: { name: 'a', items: [{ key: 'b', path: '/c' }] } }),
        `${at}.configMap.items[0].path Invalid`,
      ],
      [one({ projected: { sources: twice } }), `${at}.projected Invalid`],
      [
        one({ projected: { sources: [{ clusterTrustBundle: { path: 'a' } }] } }),
        `${at}.projected.sources[0].clusterTrustBundle Required`,
      ],
      [one({ csi: { driver: '-' } }), `${at}.csi.driver Invalid`],
      [
        one({ downwardAPI: { items: [{ path: '..a' }] } }),
        `${at}.downwardAPI Required`,
        `${at}.downwardAPI.path Invalid`,
      ],
    ],
    podOf,
  );
});

test('the other fields of a Pod are validated', async () => {
  await refuses(
    PODS,
    [
      [{ os: { name: 'dos' } }, 'spec.os NotSupported'],
      [
        { os: { name: 'windows' }, securityContext: { runAsUser: 1 } },
        'spec.securityContext.runAsUser Forbidden',
      ],
      [
        { securityContext: { sysctls: [{ name: 'a' }, { name: 'a' }], supplementalGroups: [-1] } },
        'spec.securityContext.sysctls[1].name Duplicate',
        'spec.securityContext.supplementalGroups[0] Invalid',
      ],
      [
        { securityContext: { windowsOptions: { runAsUserName: 'a\\b\\c' } } },
        'spec.securityContext.windowsOptions.runAsUserName Invalid',
      ],
      [{ dnsPolicy: 'None' }, 'spec.dnsConfig Required'],
      [{ dnsConfig: { searches: ['_a.b', '-'] } }, 'spec.dnsConfig.searches[1] Invalid'],
      [{ hostUsers: false, hostPID: true }, 'spec.HostPID Forbidden'],
      [{ resourceClaims: [{ name: 'a' }] }, 'spec.resourceClaims[0] Invalid'],
      [{ schedulingGates: [{ name: 'a b' }] }, 'spec.schedulingGates[0] Invalid'],
      [
        { readinessGates: [{ conditionType: 'a b' }] },
        'spec.readinessGates[0].conditionType Invalid',
      ],
      [
        { hostAliases: [{ ip: '1.2.3.4', hostnames: ['A'] }] },
        'spec.hostAliases[0].hostnames[0] Invalid',
      ],
    ],
    podOf,
  );
});

test('the labels, the selector and the policies of a Job are validated', async () => {
  const at = 'spec.template.metadata.labels';
  const rule = (fields: Json) => ({
    podFailurePolicy: { rules: [{ action: 'Ignore', ...fields }] },
  });
  const atRule = 'spec.podFailurePolicy.rules[0]';
  await refuses(
    '/apis/batch/v1/namespaces/default/jobs',
    [
      [{ selector: { matchLabels: { a: 'b' } } }, 'spec.selector Invalid', `${at} Invalid`],
      [rule({}), `${atRule} Invalid`],
      [
        rule({ onExitCodes: { operator: 'In', values: [2, 0, 2] } }),
        `${atRule}.onExitCodes.values Invalid`,
        `${atRule}.onExitCodes.values[1] Invalid`,
        `${atRule}.onExitCodes.values[2] Duplicate`,
      ],
      [
        {
          completionMode: 'Indexed',
          completions: 2,
          successPolicy: { rules: [{ succeededIndexes: '1,0' }, {}] },
        },
        'spec.successPolicy.rules[0].succeededIndexes Invalid',
        'spec.successPolicy.rules[1] Required',
      ],
    ],
    (spec) => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'refused' },
      spec: { template: { spec: { restartPolicy: 'Never', containers: [container] } }, ...spec },
    }),
  );
});

test('autoscalers, quotas, Services and volumes are validated', async () => {
  const metric = (fields: Json) => ({ metrics: [fields] });
  const target = { type: 'Value', value: '1' };
  const cpu = (fields: Json) =>
    metric({ type: 'Resource', resource: { name: 'cpu', target: fields } });
  const atCpu = 'spec.metrics[0].resource.target';
  await refuses(
    '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers',
    [
      [cpu({ type: 'Utilization', averageUtilization: 0 }), `${atCpu}.averageUtilization Invalid`],
      [cpu({ type: 'AverageValue', averageValue: '-1' }), `${atCpu}.averageValue Invalid`],
      [cpu({ type: 'Other', averageValue: '1' }), `${atCpu}.type Invalid`],
      [metric({ type: 'Pods' }), 'spec.metrics[0].pods Required'],
      [
        metric({ type: 'External', external: { metric: { name: 'a/b' }, target } }),
        'spec.metrics[0].external.metric.name Invalid',
      ],
      [
        {
          behavior: {
            scaleUp: {
              stabilizationWindowSeconds: 3601,
              policies: [{ type: 'Pods', value: 0, periodSeconds: 1801 }],
            },
          },
        },
        'spec.behavior.scaleUp.stabilizationWindowSeconds Invalid',
        'spec.behavior.scaleUp.policies[0].value Invalid',
        'spec.behavior.scaleUp.policies[0].periodSeconds Invalid',
      ],
    ],
    (spec) => ({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'refused' },
      spec: {
        maxReplicas: 2,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a' },
        ...spec,
      },
    }),
  );
  await refuses(
    '/api/v1/namespaces/default/resourcequotas',
    [
      [{ hard: { pods: '1500m' } }, 'spec.hard[pods] Invalid'],
      [{ hard: { cpu: '-1' } }, 'spec.hard[cpu] Invalid'],
      [{ hard: { pods: '1' }, scopes: ['Terminating', 'NotTerminating'] }, 'spec.scopes Invalid'],
      [
        {
          scopeSelector: {
            matchExpressions: [{ scopeName: 'BestEffort', operator: 'In', values: ['a'] }],
          },
        },
        'spec.scopeSelector.matchExpressions.operator Invalid',
      ],
    ],
    (spec) => ({ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'refused' }, spec }),
  );
  await refuses(
    '/api/v1/namespaces/default/services',
    [
      [{ loadBalancerClass: 'a/b' }, 'spec.loadBalancerClass Forbidden'],
      [{ selector: { 'a b': 'c' } }, 'spec.selector Invalid'],
      [{ internalTrafficPolicy: 'Any' }, 'spec.internalTrafficPolicy NotSupported'],
      [{ trafficDistribution: 'Any' }, 'spec.trafficDistribution NotSupported'],
      [{ ipFamilies: ['IPv4', 'IPv6'] }, 'spec.ipFamilyPolicy Invalid'],
      [{ ipFamilies: ['IPv6'] }, 'spec.ipFamilies[0] Invalid'],
      [{ ipFamilies: ['IPv5'] }, 'spec.ipFamilies[0] NotSupported'],
      [{ ports: [{ port: 1, appProtocol: 'a b' }] }, 'spec.ports[0].appProtocol Invalid'],
    ],
    (spec) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'refused' },
      spec: { ports: [{ port: 1 }], ...spec },
    }),
  );
  await refuses(
    '/api/v1/persistentvolumes',
    [
      [{ local: { path: '/a' } }, 'spec.nodeAffinity Required'],
      [{ csi: { driver: 'a' } }, 'spec.csi.volumeHandle Required'],
      [
        { hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' },
        'spec.persistentVolumeReclaimPolicy Forbidden',
      ],
      [
        { nfs: { server: 'a', path: 'b' }, storageClassName: 'A' },
        'spec.nfs.path Invalid',
        'spec.storageClassName Invalid',
      ],
    ],
    (spec) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'refused' },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec },
    }),
  );
  await refuses(
    '/api/v1/namespaces/default/persistentvolumeclaims',
    [
      [
        { dataSourceRef: { kind: 'Other', name: 'a' } },
        'spec.dataSource Invalid',
        'spec.dataSourceRef Invalid',
      ],
      [{ selector: { matchLabels: { 'a b': 'c' } } }, 'spec.selector.matchLabels Invalid'],
    ],
    (spec) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'refused' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        ...spec,
      },
    }),
  );
});

test('the rules of admission are validated', async () => {
  const rule = {
    apiGroups: ['*', 'a'],
    apiVersions: ['v1', ''],
    operations: ['CREATE'],
    resources: ['b'],
  };
  await refuses(
    '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies',
    [
      [
        {},
        'spec.matchConstraints Required',
        'spec.mutations Required',
        'spec.reinvocationPolicy Required',
      ],
    ],
    (spec) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicy',
      metadata: { name: 'refused' },
      spec,
    }),
  );
  const clientConfig = { service: { namespace: 'a', name: 'b', path: 'cA/' } };
  await refuses(
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    [
      [
        { rules: [rule] },
        'webhooks[0].rules[0].apiGroups Invalid',
        'webhooks[0].rules[0].apiVersions[1] Required',
      ],
      [{ clientConfig }, ...Array(2).fill('webhooks[0].clientConfig.service.path Invalid')],
      [{ clientConfig: { url: 'https://a b/' } }, 'webhooks[0].clientConfig.url Required'],
      [{ clientConfig: { url: 'https://a/%zz' } }, 'webhooks[0].clientConfig.url Required'],
      [{ clientConfig: { url: 'https://a:b/' } }, 'webhooks[0].clientConfig.url Required'],
    ],
    (fields) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'refused' },
      webhooks: [
        {
          name: 'a.b.c',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          clientConfig: { url: 'https://a' },
          ...fields,
        },
      ],
    }),
  );
});

/** Kinds whose objects are refused with the causes at their right. */
const KINDS: readonly (readonly [path: string, base: Json, cases: readonly Case[]])[] = [
  [
    '/api/v1/namespaces/default/services',
    { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 1 }] } },
    [
      [{ spec: { clusterIP: '1.2.3.4', clusterIPs: ['1.2.3.5'] } }, 'spec.clusterIPs Invalid'],
      [{ spec: { clusterIPs: ['10.0.0.9'] } }, 'spec.clusterIPs Invalid'],
      [{ spec: { clusterIP: '10.0.0.9', ipFamilies: ['IPv6'] } }, 'spec.clusterIPs[0] Invalid'],
      [{ spec: { clusterIP: '::1' } }, 'spec.clusterIPs[0] Invalid'],
      [{ spec: { ports: [{ port: 1, nodePort: 1 }] } }, 'spec.ports[0].nodePort Forbidden'],
      [{ spec: { type: 'NodePort', ports: [{ port: 1, nodePort: 1 }] } }],
      [
        { spec: { loadBalancerSourceRanges: ['1.0.0.0/8'] } },
        'spec.LoadBalancerSourceRanges Forbidden',
      ],
      [
        {
          metadata: {
            annotations: { 'service.beta.kubernetes.io/load-balancer-source-ranges': 'a' },
          },
        },
        ...(['Forbidden', 'Invalid'] as const).map(
          (reason) =>
            `metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges] ${reason}` as const,
        ),
      ],
    ],
  ],
  [
    PODS,
    { apiVersion: 'v1', kind: 'Pod', spec: { containers: [container] } },
    [
      [{ spec: { nodeName: 'a', schedulingGates: [{ name: 'b' }] } }, 'spec.nodeName Forbidden'],
      [{ spec: { evictionResponders: [{ name: 'a' }] } }],
      [
        { metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/d': 'x' } } },
        ...Array(2).fill(
          'metadata.annotations[container.apparmor.security.beta.kubernetes.io/d] Invalid',
        ),
      ],
      [
        {
          metadata: { annotations: { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' } },
          spec: { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
        },
        'spec.securityContext.seccompProfile.type Forbidden',
      ],
      [
        {
          spec: {
            resources: { requests: { cpu: '1' }, limits: { cpu: '3', memory: '1Mi' } },
            containers: [{ ...container, resources: { requests: { cpu: '2', memory: '2Mi' } } }],
          },
        },
        'spec.resources.requests Invalid',
        'spec.resources.requests[cpu] Invalid',
      ],
    ],
  ],
  [
    '/apis/apps/v1/namespaces/default/daemonsets',
    { apiVersion: 'apps/v1', kind: 'DaemonSet' },
    [
      [
        { spec: { template: { spec: { containers: [container] } } } },
        'spec.template.metadata.labels Invalid',
      ],
    ],
  ],
  [
    '/apis/apps/v1/namespaces/default/statefulsets',
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
    [
      [
        {
          spec: {
            selector: { matchLabels: { a: 'b' } },
            template: {
              metadata: { labels: { a: 'b' } },
              spec: { hostname: 'A', containers: [container] },
            },
          },
        },
      ],
    ],
  ],
  [
    '/apis/networking.k8s.io/v1/ingressclasses',
    { apiVersion: 'networking.k8s.io/v1', kind: 'IngressClass', spec: { controller: 'a.b/c' } },
    [
      [{ spec: { controller: 'a' } }, 'spec.controller Invalid'],
      [
        { spec: { parameters: { kind: 'A/B', name: '', namespace: 'c' } } },
        'spec.parameters.kind Invalid',
        'spec.parameters.name Required',
        'spec.parameters.namespace Forbidden',
      ],
    ],
  ],
  [
    '/apis/networking.k8s.io/v1/servicecidrs',
    { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR' },
    [
      [{ spec: { cidrs: ['1.2.3.4/8'] } }, 'spec.cidrs[0] Invalid'],
      [{ spec: { cidrs: ['1.0.0.0/8', '2.0.0.0/8'] } }, 'spec.cidrs Invalid'],
    ],
  ],
  [
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
    { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'FQDN' },
    [
      [{ addressType: 'IP', endpoints: [] }, 'addressType NotSupported'],
      [
        { endpoints: [{ addresses: ['a'], hints: { forZones: [{ name: 'z' }, { name: 'z' }] } }] },
        'endpoints[0].addresses[0] Invalid',
        'endpoints[0].hints.forZones[1].name Duplicate',
      ],
      [
        { endpoints: [], ports: [{ port: 1 }, { port: 2, appProtocol: '-' }] },
        'ports[1].appProtocol Invalid',
        'ports[1].name Duplicate',
      ],
    ],
  ],
  [
    '/api/v1/nodes',
    { apiVersion: 'v1', kind: 'Node' },
    [
      [
        { spec: { taints: [{ key: 'a b', value: 'c d', effect: '' }] } },
        'metadata.taints[0].effect Required',
        'metadata.taints[0].key Invalid',
        'metadata.taints[0].value Invalid',
      ],
      [
        { status: { capacity: { 'a.b/c': '1m' } } },
        ...(['allocatable', 'capacity'] as const).map(
          (list) => `status.${list}.a.b/c Invalid` as const,
        ),
      ],
    ],
  ],
  [
    '/apis/node.k8s.io/v1/runtimeclasses',
    { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', handler: 'a' },
    [
      [{ handler: 'A' }, 'handler Invalid'],
      [{ scheduling: { nodeSelector: { 'a b': 'c' } } }, 'scheduling.nodeSelector Invalid'],
    ],
  ],
  [
    '/apis/storage.k8s.io/v1/storageclasses',
    { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', provisioner: 'a' },
    [
      [
        { provisioner: 'a b', reclaimPolicy: 'Recycle' },
        'provisioner Invalid',
        'reclaimPolicy NotSupported',
      ],
      [
        { allowedTopologies: [{ matchLabelExpressions: [{ key: 'a', values: ['b', 'b'] }] }] },
        'allowedTopologies[0].matchLabelExpressions[0].values[1] Duplicate',
      ],
    ],
  ],
  [
    '/apis/storage.k8s.io/v1/csidrivers',
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver' },
    [
      [
        { spec: { fsGroupPolicy: 'Any', tokenRequests: [{ audience: '', expirationSeconds: 1 }] } },
        'spec.fsGroupPolicy NotSupported',
        'spec.tokenRequests[0].expirationSeconds Invalid',
      ],
    ],
  ],
  [
    '/apis/storage.k8s.io/v1/csinodes',
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode' },
    [
      [
        { spec: { drivers: [{ name: '-', nodeID: '', topologyKeys: [''] }] } },
        ...Array(2).fill('spec.drivers[0] Invalid'),
        'spec.drivers[0] Required',
        'spec.drivers[0].name Invalid',
        'spec.drivers[0].nodeID Required',
      ],
    ],
  ],
  [
    '/apis/storage.k8s.io/v1/volumeattachments',
    { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment' },
    [
      [
        { spec: { attacher: '', nodeName: 'A', source: { persistentVolumeName: 'B' } } },
        'spec.attacher Required',
        'spec.nodeName Invalid',
        'spec.source.persistentVolumeName Invalid',
      ],
    ],
  ],
  [
    '/api/v1/namespaces/default/limitranges',
    { apiVersion: 'v1', kind: 'LimitRange' },
    [
      [{ spec: { limits: null } }],
      [
        {
          spec: {
            limits: [
              {
                type: 'Pod',
                min: { cpu: '1' },
                max: { cpu: '2' },
                maxLimitRequestRatio: { cpu: '3' },
              },
            ],
          },
        },
        'spec.limits[0].maxLimitRequestRatio[cpu] Invalid',
      ],
    ],
  ],
  [
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
    { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration' },
    [
      [
        {
          webhooks: [
            {
              name: 'a.b.c',
              sideEffects: 'None',
              admissionReviewVersions: ['v1', '1v', 'v1'],
              clientConfig: { url: 'https://u@a/?q#f' },
              rules: [
                {
                  apiGroups: ['*'],
                  apiVersions: ['*'],
                  operations: ['CREATE'],
                  resources: ['*', 'a/*', 'a/x', 'b'],
                },
              ],
              matchConditions: [
                { name: '', expression: '6' },
                { name: 'a b', expression: ' ' },
              ],
            },
          ],
        },
        ...([1, 2] as const).map(
          (at) => `webhooks[0].admissionReviewVersions[${at}] Invalid` as const,
        ),
        ...Array(3).fill('webhooks[0].clientConfig.url Invalid'),
        'webhooks[0].matchConditions[0].expression Invalid',
        'webhooks[0].matchConditions[0].name Required',
        'webhooks[0].matchConditions[1].expression Required',
        'webhooks[0].matchConditions[1].name Invalid',
        'webhooks[0].rules[0].resources Invalid',
        'webhooks[0].rules[0].resources[2] Invalid',
      ],
    ],
  ],
  [
    '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies',
    { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingAdmissionPolicy' },
    [
      [
        {
          spec: {
            reinvocationPolicy: 'Never',
            paramKind: { apiVersion: 'A/V', kind: 'a b' },
            variables: [{ name: 'in', expression: '1' }],
            matchConstraints: {
              matchPolicy: 'Any',
              resourceRules: [
                {
                  apiGroups: ['*'],
                  apiVersions: ['*'],
                  operations: ['DELETE'],
                  resources: ['*'],
                  resourceNames: ['a', 'a'],
                },
              ],
            },
            mutations: [
              { patchType: 'JSONPatch', applyConfiguration: { expression: 'Object{}' } },
              { patchType: 'ApplyConfiguration', applyConfiguration: { expression: '1 < 2' } },
            ],
          },
        },
        'spec.matchConstraints.matchPolicy NotSupported',
        'spec.matchConstraints.resourceRules.operations NotSupported',
        'spec.matchConstraints.resourceRules[0].resourceNames[1] Duplicate',
        'spec.mutations[0].applyConfiguration Invalid',
        'spec.mutations[0].jsonPatch Required',
        'spec.mutations[1].applyConfiguration.expression Invalid',
        ...Array(2).fill('spec.paramKind.apiVersion Invalid'),
        'spec.paramKind.kind Invalid',
        'spec.variables[0].name Invalid',
      ],
    ],
  ],
  [
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      spec: { policyName: 'a', validationActions: ['Deny'] },
    },
    [
      [
        { spec: { validationActions: ['Deny', 'Warn'], paramRef: { name: 'a', selector: {} } } },
        'spec.paramRef.name Forbidden',
        'spec.paramRef.parameterNotFoundAction Required',
        'spec.paramRef.selector Forbidden',
        'spec.validationActions Invalid',
      ],
    ],
  ],
  [
    '/apis/certificates.k8s.io/v1/clustertrustbundles',
    { apiVersion: 'certificates.k8s.io/v1', kind: 'ClusterTrustBundle' },
    [
      [{ spec: { trustBundle: 'a' } }, 'spec.trustBundle Invalid'],
      [
        {
          spec: {
            signerName: 'a.b/c',
            trustBundle:
              '-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n',
          },
        },
        'metadata.name Invalid',
        ...Array(2).fill('spec.trustBundle Invalid'),
      ],
    ],
  ],
  [
    '/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests',
    {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'PodCertificateRequest',
      spec: { signerName: 'a.b/c', podName: 'a', podUID: 'b', serviceAccountName: 'c' },
    },
    [
      [
        { spec: { serviceAccountUID: 'd', nodeName: 'E', nodeUID: '', maxExpirationSeconds: 1 } },
        'spec Invalid',
        'spec.maxExpirationSeconds Invalid',
        'spec.nodeName Invalid',
        'spec.nodeUID Invalid',
      ],
    ],
  ],
  [
    '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas',
    {
      apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
      kind: 'FlowSchema',
      spec: { priorityLevelConfiguration: { name: 'a' } },
    },
    [
      [
        {
          spec: {
            matchingPrecedence: 1,
            rules: [
              { subjects: [{ kind: 'User', group: { name: 'b' } }] },
              {
                subjects: [{ kind: 'User', user: { name: 'c' } }],
                resourceRules: [{ verbs: ['a'], apiGroups: ['*', 'b'], resources: ['*'] }],
                nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['a'] }],
              },
            ],
          },
        },
        'spec.matchingPrecedence Invalid',
        'spec.rules[0] Required',
        'spec.rules[0].subjects[0].group Forbidden',
        'spec.rules[0].subjects[0].user Required',
        'spec.rules[1].nonResourceRules[0].nonResourceURLs[0] Invalid',
        'spec.rules[1].resourceRules[0].apiGroups Invalid',
        'spec.rules[1].resourceRules[0].namespaces Required',
        'spec.rules[1].resourceRules[0].verbs NotSupported',
      ],
    ],
  ],
  [
    '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',
    { apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind: 'PriorityLevelConfiguration' },
    [
      [{ spec: { type: 'Exempt' } }, 'spec.type Invalid'],
      [{ spec: { type: 'Limited' } }, 'spec.limited Required'],
      [
        { spec: { type: 'Other', limited: { limitResponse: { type: 'Reject' } }, exempt: {} } },
        'spec.exempt Forbidden',
        'spec.limited Forbidden',
        'spec.type NotSupported',
      ],
      [
        {
          spec: {
            type: 'Limited',
            limited: {
              lendablePercent: 101,
              limitResponse: {
                type: 'Queue',
                queuing: { queues: 512, handSize: 8, queueLengthLimit: -1 },
              },
            },
          },
        },
        'spec.limited.lendablePercent Invalid',
        'spec.limited.limitResponse.queuing.handSize Invalid',
        'spec.limited.limitResponse.queuing.queueLengthLimit Invalid',
      ],
    ],
  ],
  [
    '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims',
    { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim' },
    [
      [
        {
          spec: {
            devices: {
              requests: [
                { name: 'a', exactly: { deviceClassName: '', allocationMode: 'All', count: 1 } },
                {
                  name: 'a',
                  firstAvailable: [
                    {
                      name: 'B',
                      deviceClassName: 'c',
                      tolerations: [{ operator: 'Exists', value: 'd' }],
                    },
                  ],
                },
              ],
              constraints: [{ requests: ['a/x'], matchAttribute: 'y' }],
              config: [{ requests: ['z'] }],
            },
          },
        },
        'spec.devices.config[0].opaque Required',
        'spec.devices.config[0].requests[0] Invalid',
        'spec.devices.constraints[0].matchAttribute Invalid',
        'spec.devices.constraints[0].requests[0] Invalid',
        'spec.devices.requests[0].exactly.count Invalid',
        'spec.devices.requests[0].exactly.deviceClassName Required',
        'spec.devices.requests[1] Duplicate',
        'spec.devices.requests[1].firstAvailable[0].name Invalid',
        'spec.devices.requests[1].firstAvailable[0].tolerations[0].value Invalid',
      ],
    ],
  ],
  [
    '/apis/resource.k8s.io/v1/deviceclasses',
    { apiVersion: 'resource.k8s.io/v1', kind: 'DeviceClass' },
    [
      [
        { spec: { selectors: [{}], extendedResourceName: 'a' } },
        'spec.extendedResourceName Invalid',
        'spec.selectors[0].cel Required',
      ],
    ],
  ],
  [
    '/apis/resource.k8s.io/v1/resourceslices',
    { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceSlice', spec: { driver: 'a' } },
    [
      [
        {
          spec: {
            nodeName: 'a',
            allNodes: true,
            pool: { name: '', resourceSliceCount: 0, generation: -1 },
            devices: [
              {
                name: 'A',
                attributes: { 'b c': {}, d: { version: '1' } },
                bindingConditions: ['e'],
              },
              ...[
                { default: '2', validValues: ['1', '900m', '10'] },
                { default: '3', validRange: { min: '0', max: '4', step: '2' } },
                { validRange: { min: '1' } },
                { default: '1', validValues: ['1'], validRange: { min: '1' } },
                { default: '1', validRange: { min: '2', max: '1', step: '0' } },
              ].map((requestPolicy, index) => ({
                name: `a${index}`,
                allowMultipleAllocations: true,
                capacity: { c: { value: '4', requestPolicy } },
              })),
            ],
          },
        },
        'spec Invalid',
        'spec.devices[0].attributes Invalid',
        'spec.devices[0].attributes[b c] Invalid',
        'spec.devices[0].attributes[d].version Invalid',
        'spec.devices[0].bindingFailureConditions Invalid',
        'spec.devices[0].name Invalid',
        'spec.devices[1].capacity[c].requestPolicy.validValues Invalid',
        'spec.devices[1].capacity[c].requestPolicy.validValues[1] Duplicate',
        'spec.devices[1].capacity[c].requestPolicy.validValues[1] Invalid',
        'spec.devices[1].capacity[c].requestPolicy.validValues[2] Invalid',
        'spec.devices[2].capacity[c].requestPolicy.validRange.step Invalid',
        'spec.devices[3].capacity[c].requestPolicy.default Required',
        'spec.devices[4].capacity[c].requestPolicy Forbidden',
        'spec.devices[5].capacity[c].requestPolicy.validRange.default Invalid',
        'spec.devices[5].capacity[c].requestPolicy.validRange.max Invalid',
        'spec.devices[5].capacity[c].requestPolicy.validRange.step Invalid',
        'spec.pool.generation Invalid',
        'spec.pool.name Required',
        'spec.pool.resourceSliceCount Invalid',
      ],
    ],
  ],
  [
    '/api/v1/persistentvolumes',
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      spec: { accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } },
    },
    [
      [
        { spec: { capacity: { storage: '-0.5' } } },
        ...Array(2).fill('spec.capacity[storage] Invalid'),
      ],
    ],
  ],
];

for (const [path, base, cases] of KINDS) {
  test(`a ${base.kind} is validated`, () =>
    refuses(path, cases, ({ metadata, spec, ...fields }) => ({
      ...base,
      metadata: { name: 'refused', ...metadata },
      ...((base.spec || spec) && { spec: { ...base.spec, ...spec } }),
      ...fields,
    })));
}

test('updates are validated', async () => {
  const cidr = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: 'kept' },
  };
  await refusesUpdates(
    '/apis/networking.k8s.io/v1/servicecidrs',
    { ...cidr, spec: { cidrs: ['172.20.0.0/24'] } },
    [
      [{ spec: { cidrs: ['172.20.0.0/24', 'fd00::/112'] } }],
      [{ spec: { cidrs: ['172.21.0.0/24'] } }, 'spec.cidrs[0] Invalid'],
    ],
  );
  const gated = podOf({ nodeSelector: { a: 'b' }, schedulingGates: [{ name: 'c' }] });
  await refusesUpdates(PODS, { ...gated, metadata: { name: 'gated' } }, [
    [{ spec: { ...gated.spec, nodeSelector: { a: 'b', d: 'e' } } }],
    [{ spec: { ...gated.spec, nodeSelector: { d: 'e' } } }, 'spec.nodeSelector Invalid'],
    [
      { metadata: { annotations: { 'kubernetes.io/config.mirror': 'f' } } },
      ...(['Forbidden', 'Invalid'] as const).map(
        (reason) => `metadata.annotations[kubernetes.io/config.mirror] ${reason}` as const,
      ),
    ],
  ]);
  await refusesUpdates(
    PODS,
    { ...podOf({}), metadata: { name: 'reported' } },
    [
      [
        {
          status: {
            nominatedNodeName: 'A',
            observedGeneration: -1,
            resourceClaimStatuses: [{ name: 'b' }],
            containerStatuses: [
              {
                name: 'c',
                ready: true,
                restartCount: 0,
                image: '',
                imageID: '',
                user: { linux: { uid: -1, gid: 1 } },
              },
            ],
          },
        },
        'status.containerStatuses[0].user.linux.uid Invalid',
        'status.nominatedNodeName Invalid',
        'status.observedGeneration Invalid',
        'status.resourceClaimStatuses[0].name Invalid',
      ],
    ],
    '/status',
  );
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'kept' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  };
  const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
  await refusesUpdates(CLAIMS, claim, [[{ spec: { ...claim.spec, storageClassName: 'late' } }]]);
  await refusesUpdates(
    CLAIMS,
    { ...claim, metadata: { name: 'sized' } },
    [
      [
        {
          status: { allocatedResources: { cpu: '1' }, allocatedResourceStatuses: { storage: 'A' } },
        },
        'status.allocatedResourceStatuses NotSupported',
        'status.allocatedResources NotSupported',
      ],
    ],
    '/status',
  );
});

test('what the system has reserved, and raw data, are validated', async () => {
  const at = (path: string, apiVersion: string, kind: string, cases: readonly Case[]) =>
    refuses(path, cases, (change) => ({ apiVersion, kind, metadata: { name: 'raw' }, ...change }));
  await at(
    '/apis/apps/v1/namespaces/default/controllerrevisions',
    'apps/v1',
    'ControllerRevision',
    [
      [{ revision: 1 }, 'data Required'],
      ...[1, 'text', false, ['a']].map((data): Case => [{ revision: 1, data }, 'data Required']),
      [{ revision: 1, data: { a: 1 } }],
    ],
  );
  const avoid = 'scheduler.alpha.kubernetes.io/preferAvoidPods';
  const node = (value: Json) => ({
    metadata: { name: 'raw', annotations: { [avoid]: JSON.stringify(value) } },
  });
  const signed = (podController: Json) => ({ podSignature: { podController } });
  await at('/api/v1/nodes', 'v1', 'Node', [
    [
      node({ preferAvoidPods: [signed({ controller: true }), { reason: 'a' }] }),
      `metadata.annotations.${avoid}[1].PodSignature Required`,
    ],
    [
      node({ preferAvoidPods: [signed({ kind: 'A', controller: false })] }),
      `metadata.annotations.${avoid}[0].PodSignature.PodController.Controller Invalid`,
    ],
    [node([]), 'metadata.annotations.AvoidPods Invalid'],
    [node({})],
  ]);
  const FLOWS = '/apis/flowcontrol.apiserver.k8s.io/v1';
  const GROUP = 'flowcontrol.apiserver.k8s.io/v1';
  const limited = { nominalConcurrencyShares: 5, limitResponse: { type: 'Reject' } };
  await at(`${FLOWS}/prioritylevelconfigurations`, GROUP, 'PriorityLevelConfiguration', [
    [
      { metadata: { name: 'exempt' }, spec: { type: 'Limited', limited } },
      'spec Invalid',
      'spec.type Invalid',
    ],
    [
      {
        metadata: { name: 'catch-all' },
        spec: { type: 'Limited', limited: { ...limited, nominalConcurrencyShares: 6 } },
      },
      'spec Invalid',
    ],
  ]);
  const subjects = [{ kind: 'User', user: { name: 'a' } }];
  const rules = [{ subjects, nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }] }];
  const reserved = ['exempt', 'catch-all'].map((name): Case => {
    const spec = { priorityLevelConfiguration: { name }, rules };
    return [{ metadata: { name }, spec }, 'spec Invalid'];
  });
  await at(`${FLOWS}/flowschemas`, GROUP, 'FlowSchema', reserved);
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
  await at(classes, 'scheduling.k8s.io/v1', 'PriorityClass', [
    [{ metadata: { name: 'system-node-critical' }, value: 5 }, 'metadata.name Forbidden'],
    [{ metadata: { name: 'system-a' }, value: 5 }, 'metadata.name Forbidden'],
  ]);
  const known = { metadata: { name: 'system-cluster-critical' }, value: 2_000_000_000 };
  assert.equal((await api.post(classes, known)).status, 409);
  const scaleIO = { gateway: 'g', system: 's', volumeName: 'v', secretRef: null };
  const volumes = [{ name: 'v', scaleIO }];
  await refuses(PODS, [[{ volumes }]], podOf);
  const unknown = await api.post(PODS, podOf({ runtimeClassName: 'a/b' }));
  assert.match(unknown.text, /^\W*invalid resource name|"invalid resource name/);
  const target = { kind: 'Node', name: 'No Node' };
  const metadata = { name: 'absent' };
  assert.equal((await api.post(`${PODS}/absent/binding`, { metadata, target })).status, 500);
});

test('the class of an Ingress is a DNS subdomain', async () => {
  const space = await api.namespace();
  await refuses(
    `/apis/networking.k8s.io/v1/namespaces/${space}/ingresses`,
    [
      [{ ingressClassName: 'a.b' }],
      [{ ingressClassName: 'A_' }, 'spec.ingressClassName Invalid'],
      [{ ingressClassName: '' }, 'spec.ingressClassName Invalid'],
    ],
    (spec) => ({
      metadata: { name: 'a' },
      spec: { defaultBackend: { resource: { kind: 'A', name: 'b' } }, ...spec },
    }),
  );
});

test('the selectors of an aggregated ClusterRole are label selectors', async () => {
  const at = 'aggregationRule.clusterRoleSelectors[0]';
  await refuses(
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    [
      [{ matchLabels: { a: 'b' } }],
      [{ matchLabels: { 'a b': 'c' } }, `${at} Invalid`, `${at}.matchLabels Invalid`],
      [
        { matchExpressions: [{ key: 'a', operator: 'X' }] },
        `${at} Invalid`,
        `${at}.matchExpressions[0].operator Invalid`,
      ],
    ],
    (selector) => ({
      metadata: { name: 'a' },
      aggregationRule: { clusterRoleSelectors: [selector] },
    }),
  );
});

test('a budget has any name and a label selector, and the type of a limit is a qualified name', async () => {
  const space = await api.namespace();
  await refuses(
    `/apis/policy/v1/namespaces/${space}/poddisruptionbudgets`,
    [[{ name: 'Upper' }], [{ name: 'a/b' }, 'metadata.name Invalid']],
    (metadata) => ({ metadata, spec: { minAvailable: 1 } }),
  );
  await refuses(
    `/apis/policy/v1/namespaces/${space}/poddisruptionbudgets`,
    [
      [{ matchLabels: { a: 'b' } }],
      [{ matchLabels: { 'a b': 'c' } }, 'spec.selector.matchLabels Invalid'],
      [
        { matchExpressions: [{ key: 'a', operator: 'In' }] },
        'spec.selector.matchExpressions[0].values Required',
      ],
    ],
    (selector) => ({ metadata: { name: 'a' }, spec: { selector } }),
  );
  const at = 'spec.limits[0].type';
  await refuses(
    `/api/v1/namespaces/${space}/limitranges`,
    [
      [{ type: 'example.com/a' }],
      [{ type: 'Other' }, `${at} Invalid`],
      [{ type: 'a b' }, `${at} Invalid`],
      [{}, `${at} Invalid`, `${at} Invalid`],
    ],
    (limit) => ({ metadata: { name: 'a' }, spec: { limits: [limit] } }),
  );
});

test('an empty text is not a value of an enumeration that may be absent', async () => {
  const space = await api.namespace();
  const template = { spec: { ...pod('a').spec, restartPolicy: 'Never' } };
  const backend = { service: { name: 'a', port: { number: 1 } } };
  const webhook = {
    name: 'a.example.com',
    clientConfig: { url: 'https://a.example.com' },
    admissionReviewVersions: ['v1'],
  };
  for (const [path, body, cause] of [
    [
      `/apis/batch/v1/namespaces/${space}/jobs`,
      { spec: { template, completionMode: '' } },
      'spec.completionMode Not',
    ],
    [
      `/api/v1/namespaces/${space}/services`,
      { spec: { ports: [{ port: 1 }], internalTrafficPolicy: '' } },
      'spec.internalTrafficPolicy Not',
    ],
    [
      `/apis/networking.k8s.io/v1/namespaces/${space}/ingresses`,
      { spec: { rules: [{ http: { paths: [{ path: '/', pathType: '', backend }] } }] } },
      'spec.rules[0].http.paths[0].pathType Not',
    ],
    [
      '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
      { webhooks: [{ ...webhook, sideEffects: '' }] },
      'webhooks[0].sideEffects Not',
    ],
    [
      '/apis/scheduling.k8s.io/v1/priorityclasses',
      { value: 1, preemptionPolicy: '' },
      'preemptionPolicy Required',
    ],
  ] as const) {
    const reply = await api.post(`${path}?dryRun=All`, { metadata: { name: 'a' }, ...body });
    assert.equal(reply.status, 422, path);
    const { field, message } = reply.body.details.causes[0];
    const expected = cause.replace(/Not$/, 'Unsupported value');
    assert.ok(`${field} ${message}`.startsWith(expected), reply.text);
  }
  const pods = `/api/v1/namespaces/${space}/pods?dryRun=All`;
  const { status } = await api.post(pods, {
    ...pod('a'),
    spec: { ...pod('a').spec, preemptionPolicy: '' },
  });
  assert.equal(status, 403);
});

test('only an image whose reference is valid is the latest one', async () => {
  const space = await api.namespace();
  const path = `/api/v1/namespaces/${space}/pods?dryRun=All`;
  const digest = `sha256:${'a'.repeat(64)}`;
  for (const [image, policy] of [
    ['a', 'Always'],
    ['h:5000/a/b_c', 'Always'],
    ['H.example.com/a:latest', 'Always'],
    [`a:latest@${digest}`, 'Always'],
    [`a@${digest}`, 'IfNotPresent'],
    ['a:b', 'IfNotPresent'],
    ['A', 'IfNotPresent'],
    ['a b', 'IfNotPresent'],
    ['a:', 'IfNotPresent'],
    ['a..b', 'IfNotPresent'],
    ['c'.repeat(64), 'IfNotPresent'],
  ] as const) {
    const spec = { containers: [{ name: 'a', image }] };
    const { body } = await api.post(path, { metadata: { name: 'a' }, spec });
    assert.equal(body.spec.containers[0].imagePullPolicy, policy, image);
  }
});

test('a flow schema has a precedence, and an autoscaler the API group of its target', async () => {
  const space = await api.namespace();
  const schemas = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas?dryRun=All';
  const flow = { matchingPrecedence: 0, priorityLevelConfiguration: { name: 'exempt' } };
  const { spec } = await api.made(api.post(schemas, { metadata: { name: 'a' }, spec: flow }));
  assert.equal(spec.matchingPrecedence, 1000);
  await refuses(
    `/apis/autoscaling/v2/namespaces/${space}/horizontalpodautoscalers`,
    [
      [{ apiVersion: 'apps/v1' }],
      [{ apiVersion: '/v1' }, 'spec.scaleTargetRef.apiVersion Invalid'],
      [{ apiVersion: 'v1' }, 'spec.scaleTargetRef.apiVersion Invalid'],
    ],
    (target) => ({
      metadata: { name: 'a' },
      spec: { scaleTargetRef: { kind: 'A', name: 'a', ...target }, maxReplicas: 1 },
    }),
  );
  const review = (value: string) => ({
    spec: {
      user: 'a',
      resourceAttributes: {
        verb: 'get',
        labelSelector: { requirements: [{ key: 'a', operator: 'In', values: [value] }] },
      },
    },
  });
  const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  assert.equal((await api.post(reviews, review('b'))).status, 201);
  assert.equal((await api.post(reviews, review('b c'))).status, 422);
});

test('a bound claim grows if its storage class permits it', async () => {
  const space = await api.namespace();
  const classes = '/apis/storage.k8s.io/v1/storageclasses';
  const name = `${space}-grows`;
  const grows = { metadata: { name }, provisioner: 'a', allowVolumeExpansion: true };
  await api.made(api.post(classes, grows));
  const path = `/api/v1/namespaces/${space}/persistentvolumeclaims`;
  const of = (storage: string) => ({ spec: { resources: { requests: { storage } } } });
  for (const [claim, storageClassName, status] of [
    ['a', name, 200],
    ['b', `${space}-none`, 403],
    ['c', '', 403],
  ] as const) {
    const { spec } = of('1Gi');
    const accessModes = ['ReadWriteOnce'];
    await api.made(
      api.post(path, {
        metadata: { name: claim },
        spec: { ...spec, accessModes, storageClassName, volumeName: 'v' },
      }),
    );
    await api.made(
      api.patch(`${path}/${claim}/status`, {
        status: { phase: 'Bound', capacity: { storage: '1Gi' } },
      }),
    );
    await api.until('the storage class is known', async () => {
      const reply = await api.patch(`${path}/${claim}`, of('2Gi'));
      return reply.status === status;
    });
  }
  await api.made(api.delete(`${classes}/${name}`));
});

test('the host of an Ingress has a wildcard only as its first label', async () => {
  const space = await api.namespace();
  const path = `/apis/networking.k8s.io/v1/namespaces/${space}/ingresses?dryRun=All`;
  for (const [host, problem] of [
    ['*.a.b', undefined],
    ['*', 'a wildcard DNS-1123 subdomain must start with'],
    ['a.*.b', 'a wildcard DNS-1123 subdomain must start with'],
    ['A', 'a lowercase RFC 1123 subdomain must consist of'],
    ['1.2.3', undefined],
    ['01.2.3.4', 'must be a DNS name, not an IP address'],
    ['fe80::1', 'must be a DNS name, not an IP address'],
  ] as const) {
    const { status, body } = await api.post(path, {
      metadata: { name: 'a' },
      spec: { defaultBackend: { resource: { kind: 'A', name: 'b' } }, rules: [{ host }] },
    });
    assert.equal(status, problem === undefined ? 201 : 422, host);
    if (problem !== undefined) assert.ok(body.message.includes(problem), body.message);
  }
});

test('an APIService has the name of its group version, and priorities in a range', async () => {
  await refuses(
    '/apis/apiregistration.k8s.io/v1/apiservices',
    [
      [{}],
      [{ version: 'v2' }, 'metadata.name Invalid'],
      [{ groupPriorityMinimum: 20_001 }, 'spec.groupPriorityMinimum Invalid'],
      [{ versionPriority: 0 }, 'spec.versionPriority Invalid'],
      [{ insecureSkipTLSVerify: true }, 'spec.insecureSkipTLSVerify Invalid'],
      [
        { service: { port: 0 } },
        'spec.service.name Required',
        'spec.service.namespace Required',
        'spec.service.port Invalid',
      ],
    ],
    (spec) => ({
      metadata: { name: 'v1.example.com' },
      spec: {
        group: 'example.com',
        version: 'v1',
        groupPriorityMinimum: 1,
        versionPriority: 1,
        ...spec,
      },
    }),
  );
});

test('finalizers of some kinds need no domain', async () => {
  const space = await api.namespace();
  const metadata = { name: 'a', finalizers: ['a'] };
  for (const [path, fields, status] of [
    [`/apis/policy/v1/namespaces/${space}/poddisruptionbudgets`, { spec: {} }, 201],
    [`/api/v1/namespaces/${space}/events`, { involvedObject: { namespace: space } }, 201],
    ['/apis/node.k8s.io/v1/runtimeclasses', { handler: 'h' }, 201],
    [`/api/v1/namespaces/${space}/configmaps`, {}, 422],
  ] as const) {
    const reply = await api.post(`${path}?dryRun=All`, { metadata, ...fields });
    assert.equal(reply.status, status, `${path}: ${reply.text}`);
  }
});

test('names of resources and finalizers, and references by kind and name, are validated', async () => {
  const limits = '/api/v1/namespaces/default/limitranges';
  const ofPod = { type: 'Pod', max: { cpu: '1' } };
  const limitRange = (limit: Json) => ({ metadata: { name: 'a' }, spec: { limits: [limit] } });
  await refuses(
    limits,
    [
      [ofPod],
      [
        { ...ofPod, min: { a: '1' } },
        'spec.limits[0].min[a] Invalid',
        'spec.limits[0].min[a] Invalid',
      ],
      [
        { type: 'example.com/a', max: { 'a b': '1' }, default: { storage: '1' } },
        'spec.limits[0].max[a b] Invalid',
      ],
      // The defaults of a Pod are not compared with its limits.
      [{ ...ofPod, default: { cpu: '2' } }, 'spec.limits[0].default Forbidden'],
    ],
    limitRange,
  );
  await refuses(
    '/api/v1/namespaces',
    [
      [['example.com/a', 'kubernetes']],
      [['a', 'a'], 'spec.finalizers Invalid'],
      [['/a'], 'spec.finalizers Invalid'],
    ],
    (finalizers) => ({ metadata: { name: 'refused' }, spec: { finalizers } }),
  );
  const at = 'spec.defaultBackend.resource';
  await refuses(
    '/apis/networking.k8s.io/v1/namespaces/default/ingresses',
    [
      [{ kind: 'A', name: 'b', apiGroup: 'example.com' }],
      [{ kind: 'A/', name: '..' }, `${at}.kind Invalid`, `${at}.name Invalid`],
      [{ apiGroup: 'A_' }, `${at}.apiGroup Invalid`, `${at}.kind Required`, `${at}.name Required`],
    ],
    (resource) => ({ metadata: { name: 'a' }, spec: { defaultBackend: { resource } } }),
  );
});

test('the selectors of a webhook are validated', async () => {
  await refuses(
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    [
      [{ namespaceSelector: { matchLabels: { a: 'b' } } }],
      [
        { namespaceSelector: { matchExpressions: [{ key: '%', operator: 'Exists' }] } },
        'webhooks[0].namespaceSelector.matchExpressions[0].key Invalid',
      ],
      [
        { objectSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
        'webhooks[0].objectSelector.matchExpressions[0].values Required',
      ],
    ],
    (selector) => ({
      metadata: { name: 'refused' },
      webhooks: [
        {
          name: 'a.example.com',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { url: 'https://example.com' },
          ...selector,
        },
      ],
    }),
  );
});

test('an error about a whole list is reported once, and nothing inside a forbidden field', async () => {
  const envFrom = [{}, {}, { prefix: 'a=' }];
  await refuses(
    PODS,
    [
      [
        envFrom,
        'spec.containers[0].envFrom Invalid',
        'spec.containers[0].envFrom[2].prefix Invalid',
      ],
    ],
    () => podOf({ containers: [{ ...container, envFrom }] }),
  );
  await refuses('/api/v1/persistentvolumes', [[{ csi: {} }, 'spec.csi Forbidden']], (sources) => ({
    metadata: { name: 'refused' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      hostPath: { path: '/tmp' },
      ...sources,
    },
  }));
});

test('the metadata of the template of a ResourceClaim is validated', async () => {
  await refuses(
    '/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates',
    [
      [{ labels: { a: 'b' } }],
      [{ labels: { a: '-' } }, 'spec.metadata.labels Invalid'],
      [{ annotations: { 'A B': '' } }, 'spec.metadata.annotations Invalid'],
    ],
    (metadata) => ({ metadata: { name: 'a' }, spec: { metadata, spec: {} } }),
  );
});

test('a new handler of a RuntimeClass is refused, with its format', async () => {
  const path = '/apis/node.k8s.io/v1/runtimeclasses';
  const made = await api.made(api.post(path, { metadata: { name: 'refused' }, handler: 'a' }));
  for (const [handler, count] of [
    ['a', 0],
    ['b', 1],
    ['-', 2],
  ] as const) {
    const { body } = await api.put(`${path}/refused?dryRun=All`, { ...made, handler });
    assert.equal(body.details?.causes.length ?? 0, count, handler);
  }
  await api.delete(`${path}/refused`);
});

test('fields that a server does not keep are dropped', async () => {
  const account = await api.post('/api/v1/namespaces/default/serviceaccounts?dryRun=All', {
    metadata: { name: 'a' },
    secrets: [{ name: 'b', kind: 'Secret', uid: 'c' }],
  });
  assert.deepEqual(account.body.secrets, [{ name: 'b' }]);
  const job = {
    scheduling: { schedulingConstraints: { topology: [{ key: 'a' }] } },
    template: { spec: { containers: [container], restartPolicy: 'Never' } },
  };
  const batch = '/apis/batch/v1/namespaces/default';
  const { spec } = await api.made(
    api.post(`${batch}/jobs?dryRun=All`, { metadata: { name: 'a' }, spec: job }),
  );
  const cronJob = await api.made(
    api.post(`${batch}/cronjobs?dryRun=All`, {
      metadata: { name: 'a' },
      spec: { schedule: '@daily', jobTemplate: { spec: job } },
    }),
  );
  assert.deepEqual(
    [spec.scheduling, cronJob.spec.jobTemplate.spec.scheduling],
    [undefined, undefined],
  );
});

test('the template of a workload is not validated if its selector is no selector', async () => {
  const spec = {
    selector: { matchLabels: { a: '/' } },
    template: {
      metadata: { labels: { a: 'b' } },
      spec: { containers: [container], nodeName: '*' },
    },
  };
  for (const [plural, ...causes] of [
    ['deployments', 'spec.selector Invalid'],
    ['replicasets', 'spec.selector Invalid'],
    ['daemonsets', 'spec.template.spec.nodeName Invalid'],
  ] as const) {
    await refuses(
      `/apis/apps/v1/namespaces/default/${plural}`,
      [[plural, 'spec.selector.matchLabels Invalid', ...causes]],
      () => ({ metadata: { name: 'a' }, spec }),
    );
  }
});
