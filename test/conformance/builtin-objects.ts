import type { Json } from './api.ts';

/** A built-in kind with a valid and an invalid object. */
export interface Sample {
  /** `apps/v1/deployments`, or `v1/pods`. */
  readonly resource: string;
  readonly kind: string;
  /** True if the objects are in no namespace. */
  readonly cluster?: boolean;
  /** Name of the valid object; `sample` if absent. */
  readonly name?: string;
  readonly valid: Json;
  /** Fields of an object that is rejected; absent if any object is valid. */
  readonly invalid?: Json;
}

const POD_SPEC = { containers: [{ name: 'c', image: 'nginx' }] };
const LABELS = { app: 'sample' };
const SELECTOR = { matchLabels: LABELS };
const TEMPLATE = { metadata: { labels: LABELS }, spec: POD_SPEC };
const JOB_TEMPLATE = { spec: { ...POD_SPEC, restartPolicy: 'Never' } };
const CLAIM_SPEC = {
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1024Mi' } },
};
const RULES = [
  { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] },
];
const WEBHOOK = {
  name: 'pods.example.com',
  admissionReviewVersions: ['v1'],
  sideEffects: 'None',
  failurePolicy: 'Ignore',
  clientConfig: { service: { namespace: 'absent', name: 'absent' } },
  rules: [{ ...RULES[0], apiGroups: ['nothing.example.com'] }],
};
const EVENT = {
  reason: 'Sampled',
  type: 'Normal',
  action: 'Sample',
  eventTime: '2026-01-02T03:04:05.000006Z',
};

export const SAMPLES: readonly Sample[] = [
  {
    resource: 'v1/configmaps',
    kind: 'ConfigMap',
    valid: { data: { a: 'b' } },
    invalid: { data: { '?': 'b' } },
  },
  {
    resource: 'v1/endpoints',
    kind: 'Endpoints',
    valid: { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }] },
  },
  {
    resource: 'v1/events',
    kind: 'Event',
    valid: {
      ...EVENT,
      involvedObject: { kind: 'Pod', name: 'p', namespace: 'NAMESPACE' },
      message: 'said',
      reportingComponent: 'example.com/sampler',
      reportingInstance: 'sampler-1',
    },
    invalid: { ...EVENT, involvedObject: { namespace: 'NAMESPACE' } },
  },
  {
    resource: 'v1/limitranges',
    kind: 'LimitRange',
    valid: {
      spec: { limits: [{ type: 'Container', max: { cpu: '2000m' }, min: { cpu: '0.1' } }] },
    },
  },
  {
    resource: 'v1/namespaces',
    kind: 'Namespace',
    cluster: true,
    name: 'sample-namespace',
    valid: {},
  },
  { resource: 'v1/nodes', kind: 'Node', cluster: true, name: 'sample-node', valid: {} },
  {
    resource: 'v1/persistentvolumeclaims',
    kind: 'PersistentVolumeClaim',
    valid: { spec: CLAIM_SPEC },
    invalid: { spec: { accessModes: ['Sometimes'] } },
  },
  {
    resource: 'v1/persistentvolumes',
    kind: 'PersistentVolume',
    cluster: true,
    valid: {
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        hostPath: { path: '/tmp' },
      },
    },
    invalid: { spec: { capacity: { storage: '1Gi' } } },
  },
  {
    resource: 'v1/pods',
    kind: 'Pod',
    valid: { spec: POD_SPEC },
    invalid: { spec: { containers: [] } },
  },
  {
    resource: 'v1/podtemplates',
    kind: 'PodTemplate',
    valid: { template: TEMPLATE },
    invalid: { template: { spec: { containers: [] } } },
  },
  {
    resource: 'v1/replicationcontrollers',
    kind: 'ReplicationController',
    valid: { spec: { template: TEMPLATE } },
    invalid: { spec: { replicas: -1, selector: { app: 'other' }, template: TEMPLATE } },
  },
  {
    resource: 'v1/resourcequotas',
    kind: 'ResourceQuota',
    valid: { spec: { hard: { pods: '10', 'requests.cpu': '1000m' } } },
  },
  { resource: 'v1/secrets', kind: 'Secret', valid: { stringData: { a: 'b' } } },
  {
    resource: 'v1/services',
    kind: 'Service',
    valid: { spec: { clusterIP: 'None', selector: LABELS, ports: [{ port: 80 }] } },
    invalid: { spec: { ports: [] } },
  },
  { resource: 'v1/serviceaccounts', kind: 'ServiceAccount', valid: {} },
  {
    resource: 'admissionregistration.k8s.io/v1/mutatingadmissionpolicies',
    kind: 'MutatingAdmissionPolicy',
    cluster: true,
    valid: {
      spec: {
        matchConstraints: { resourceRules: [{ ...RULES[0], apiGroups: ['nothing.example.com'] }] },
        mutations: [
          {
            patchType: 'ApplyConfiguration',
            applyConfiguration: { expression: 'Object{}' },
          },
        ],
        reinvocationPolicy: 'Never',
      },
    },
  },
  {
    resource: 'admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings',
    kind: 'MutatingAdmissionPolicyBinding',
    cluster: true,
    valid: { spec: { policyName: 'absent' } },
  },
  {
    resource: 'admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
    kind: 'MutatingWebhookConfiguration',
    cluster: true,
    valid: { webhooks: [WEBHOOK] },
    invalid: { webhooks: [{ ...WEBHOOK, name: 'short', sideEffects: 'Some' }] },
  },
  {
    resource: 'admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    kind: 'ValidatingAdmissionPolicy',
    cluster: true,
    valid: {
      spec: {
        matchConstraints: { resourceRules: [{ ...RULES[0], apiGroups: ['nothing.example.com'] }] },
        validations: [{ expression: 'true' }],
      },
    },
  },
  {
    resource: 'admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
    kind: 'ValidatingAdmissionPolicyBinding',
    cluster: true,
    valid: { spec: { policyName: 'absent', validationActions: ['Audit'] } },
  },
  {
    resource: 'admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    kind: 'ValidatingWebhookConfiguration',
    cluster: true,
    valid: { webhooks: [WEBHOOK] },
    invalid: { webhooks: [{ ...WEBHOOK, clientConfig: {}, timeoutSeconds: 31 }] },
  },
  {
    resource: 'apps/v1/controllerrevisions',
    kind: 'ControllerRevision',
    valid: { revision: 3, data: { spec: { any: [1, 'x'] } } },
  },
  {
    resource: 'apps/v1/daemonsets',
    kind: 'DaemonSet',
    valid: { spec: { selector: SELECTOR, template: TEMPLATE } },
    invalid: { spec: { selector: { matchLabels: { app: 'other' } }, template: TEMPLATE } },
  },
  {
    resource: 'apps/v1/deployments',
    kind: 'Deployment',
    valid: { spec: { selector: SELECTOR, template: TEMPLATE } },
    invalid: { spec: { selector: { matchLabels: { app: 'other' } }, template: TEMPLATE } },
  },
  {
    resource: 'apps/v1/replicasets',
    kind: 'ReplicaSet',
    valid: { spec: { selector: SELECTOR, template: TEMPLATE } },
    invalid: { spec: { replicas: -1, selector: SELECTOR, template: TEMPLATE } },
  },
  {
    resource: 'apps/v1/statefulsets',
    kind: 'StatefulSet',
    valid: {
      spec: {
        serviceName: 'sample',
        selector: SELECTOR,
        template: TEMPLATE,
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: CLAIM_SPEC }],
      },
    },
    invalid: { spec: { podManagementPolicy: 'Any', selector: SELECTOR, template: TEMPLATE } },
  },
  {
    resource: 'autoscaling/v1/horizontalpodautoscalers',
    kind: 'HorizontalPodAutoscaler',
    valid: {
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
        maxReplicas: 3,
        targetCPUUtilizationPercentage: 50,
      },
    },
    invalid: { spec: { scaleTargetRef: { kind: 'Deployment', name: 'x' }, maxReplicas: 0 } },
  },
  {
    resource: 'autoscaling/v2/horizontalpodautoscalers',
    kind: 'HorizontalPodAutoscaler',
    valid: {
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
        maxReplicas: 3,
        behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
      },
    },
    invalid: {
      spec: { scaleTargetRef: { kind: 'Deployment', name: 'x' }, minReplicas: 4, maxReplicas: 3 },
    },
  },
  {
    resource: 'batch/v1/cronjobs',
    kind: 'CronJob',
    valid: { spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: JOB_TEMPLATE } } } },
    invalid: {
      spec: { schedule: '61 * * * *', jobTemplate: { spec: { template: JOB_TEMPLATE } } },
    },
  },
  {
    resource: 'batch/v1/jobs',
    kind: 'Job',
    valid: { spec: { template: JOB_TEMPLATE } },
    invalid: { spec: { parallelism: -1, template: { spec: POD_SPEC } } },
  },
  {
    resource: 'coordination.k8s.io/v1/leases',
    kind: 'Lease',
    valid: { spec: { holderIdentity: 'me', leaseDurationSeconds: 15 } },
    invalid: { spec: { leaseDurationSeconds: 0 } },
  },
  {
    resource: 'discovery.k8s.io/v1/endpointslices',
    kind: 'EndpointSlice',
    valid: {
      addressType: 'IPv4',
      ports: [{ port: 80 }],
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
    },
    invalid: { endpoints: [] },
  },
  {
    resource: 'events.k8s.io/v1/events',
    kind: 'Event',
    name: 'newer',
    valid: {
      ...EVENT,
      regarding: { kind: 'Pod', name: 'p', namespace: 'NAMESPACE' },
      note: 'said',
      reportingController: 'example.com/sampler',
      reportingInstance: 'sampler-1',
    },
    invalid: { reason: 'Sampled', regarding: { namespace: 'NAMESPACE' } },
  },
  {
    resource: 'flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',
    kind: 'PriorityLevelConfiguration',
    cluster: true,
    valid: {
      spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
    },
  },
  {
    resource: 'networking.k8s.io/v1/ingressclasses',
    kind: 'IngressClass',
    cluster: true,
    valid: { spec: { controller: 'example.com/ingress' } },
  },
  {
    resource: 'networking.k8s.io/v1/ingresses',
    kind: 'Ingress',
    valid: {
      spec: {
        rules: [
          {
            host: 'example.com',
            http: {
              paths: [
                {
                  path: '/',
                  pathType: 'Prefix',
                  backend: { service: { name: 'web', port: { number: 80 } } },
                },
              ],
            },
          },
        ],
      },
    },
    invalid: {
      spec: {
        rules: [
          { host: '1.2.3.4', http: { paths: [{ path: 'x', pathType: 'Exact', backend: {} }] } },
        ],
      },
    },
  },
  {
    resource: 'networking.k8s.io/v1/networkpolicies',
    kind: 'NetworkPolicy',
    valid: { spec: { podSelector: SELECTOR, ingress: [{ ports: [{ port: 80 }] }] } },
    invalid: { spec: { podSelector: {}, policyTypes: ['Sideways'] } },
  },
  {
    resource: 'node.k8s.io/v1/runtimeclasses',
    kind: 'RuntimeClass',
    cluster: true,
    valid: { handler: 'runc' },
    invalid: {},
  },
  {
    resource: 'policy/v1/poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    valid: { spec: { minAvailable: 1, selector: SELECTOR } },
    invalid: { spec: { minAvailable: 1, maxUnavailable: 1 } },
  },
  {
    resource: 'rbac.authorization.k8s.io/v1/clusterrolebindings',
    kind: 'ClusterRoleBinding',
    cluster: true,
    valid: {
      roleRef: { kind: 'ClusterRole', name: 'view', apiGroup: 'rbac.authorization.k8s.io' },
      subjects: [{ kind: 'User', name: 'jane' }],
    },
    invalid: { roleRef: { kind: 'Role', name: 'x' } },
  },
  {
    resource: 'rbac.authorization.k8s.io/v1/clusterroles',
    kind: 'ClusterRole',
    cluster: true,
    valid: { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
    invalid: { rules: [{ verbs: [] }] },
  },
  {
    resource: 'resource.k8s.io/v1/deviceclasses',
    kind: 'DeviceClass',
    cluster: true,
    valid: { spec: {} },
  },
  {
    resource: 'resource.k8s.io/v1/resourceclaims',
    kind: 'ResourceClaim',
    valid: {
      spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } },
    },
  },
  {
    resource: 'resource.k8s.io/v1/resourceclaimtemplates',
    kind: 'ResourceClaimTemplate',
    valid: { spec: { spec: {} } },
  },
  {
    resource: 'scheduling.k8s.io/v1/priorityclasses',
    kind: 'PriorityClass',
    cluster: true,
    valid: { value: 7 },
    invalid: { value: 7, preemptionPolicy: 'Maybe' },
  },
  {
    resource: 'storage.k8s.io/v1/csidrivers',
    kind: 'CSIDriver',
    cluster: true,
    valid: { spec: {} },
  },
  {
    resource: 'storage.k8s.io/v1/csinodes',
    kind: 'CSINode',
    cluster: true,
    valid: { spec: { drivers: [{ name: 'example.com', nodeID: 'n', topologyKeys: ['zone'] }] } },
  },
  {
    resource: 'storage.k8s.io/v1/csistoragecapacities',
    kind: 'CSIStorageCapacity',
    valid: { storageClassName: 'fast', capacity: '1024Mi' },
  },
  {
    resource: 'storage.k8s.io/v1/storageclasses',
    kind: 'StorageClass',
    cluster: true,
    valid: { provisioner: 'example.com/disk' },
    invalid: { volumeBindingMode: 'Later', provisioner: 'example.com/disk' },
  },
  {
    resource: 'storage.k8s.io/v1/volumeattachments',
    kind: 'VolumeAttachment',
    cluster: true,
    valid: {
      spec: { attacher: 'example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } },
    },
    invalid: { spec: { attacher: 'example.com', nodeName: 'n', source: {} } },
  },
  {
    resource: 'storage.k8s.io/v1/volumeattributesclasses',
    kind: 'VolumeAttributesClass',
    cluster: true,
    valid: { driverName: 'example.com', parameters: { a: 'b' } },
    invalid: { driverName: 'example.com' },
  },
];
