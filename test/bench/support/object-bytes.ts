/**
 * Objects as kube-apiserver sends them: sorted keys and managedFields. Rendered without JSON.stringify, which would take
 * longer than the benchmark.
 */
export interface ObjectKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly path: string;
  /** Returns the name of the object with this number. */
  readonly name: (number: number) => string;
  /** Returns the object with this number at this resourceVersion. */
  readonly json: (number: number, resourceVersion: number, annotations?: string) => string;
}

export type KindName = 'foos' | 'pods';

/** resourceVersion of a list or an initial stream. */
export const LIST_VERSION = 10_000_000;

const NAMESPACES = 40;
const APPS = 250;

export function namespaceOf(number: number): string {
  return `tenant-${number % NAMESPACES}`;
}

const FOO_FIELDS = [
  '{"apiVersion":"samplecontroller.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{".":{},"f:deploymentName":{},"f:replicas":{}}},"manager":"kubectl","operation":"Update","time":"2026-03-01T09:30:00Z"}',
  '{"apiVersion":"samplecontroller.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:availableReplicas":{}}},"manager":"sample-controller","operation":"Update","subresource":"status","time":"2026-03-01T09:30:05Z"}',
];

function fooName(number: number): string {
  return `foo-${number}`;
}

function podName(number: number): string {
  return `app-${number % APPS}-7c5ddbdf54-${number}`;
}

/** 650 to 900 bytes. Half of the objects have never been synced. */
function fooJson(number: number, resourceVersion: number, annotations = ''): string {
  const name = fooName(number);
  const synced = number % 2 === 0;
  const managedFields = synced ? FOO_FIELDS.join(',') : FOO_FIELDS[0];
  const status = synced ? `,"status":{"availableReplicas":${resourceVersion % 10}}` : '';
  return (
    `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{${annotations}` +
    `"creationTimestamp":"2026-03-01T09:30:00Z","generation":${1 + (resourceVersion % 7)},` +
    `"labels":{"app":"app-${number % APPS}"},"managedFields":[${managedFields}],` +
    `"name":"${name}","namespace":"${namespaceOf(number)}",` +
    `"resourceVersion":"${resourceVersion}","uid":"${uid(number)}"},` +
    `"spec":{"deploymentName":"${name}-deployment","replicas":${1 + (resourceVersion % 9)}}${status}}`
  );
}

export const KINDS: Readonly<Record<KindName, ObjectKind>> = {
  foos: {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'Foo',
    group: 'samplecontroller.k8s.io',
    version: 'v1alpha1',
    plural: 'foos',
    path: '/apis/samplecontroller.k8s.io/v1alpha1/foos',
    name: fooName,
    json: fooJson,
  },
  pods: {
    apiVersion: 'v1',
    kind: 'Pod',
    group: '',
    version: 'v1',
    plural: 'pods',
    path: '/api/v1/pods',
    name: podName,
    json: podJson,
  },
};

const POD_FIELDS = [
  '{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\\"uid\\":\\"5e0c7d1e-0000-4a00-8b00-000000000000\\"}":{}}},"f:spec":{"f:containers":{"k:{\\"name\\":\\"app\\"}":{".":{},"f:env":{".":{},"k:{\\"name\\":\\"POD_NAME\\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\\"containerPort\\":8080,\\"protocol\\":\\"TCP\\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-03-01T09:30:00Z"}',
  '{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\\"type\\":\\"ContainersReady\\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\\"type\\":\\"Initialized\\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\\"type\\":\\"Ready\\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\\"ip\\":\\"10.1.0.1\\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"manager":"kubelet","operation":"Update","subresource":"status","time":"2026-03-01T09:30:05Z"}',
].join(',');

/** A running Pod of a Deployment, about 5 kB. */
function podJson(number: number, resourceVersion: number, annotations = ''): string {
  const app = `app-${number % APPS}`;
  const ip = `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
  const id = uid(number);
  const condition = (type: string) =>
    `{"lastProbeTime":null,"lastTransitionTime":"2026-03-01T09:30:05Z","observedGeneration":1,"status":"True","type":"${type}"}`;
  const env = Array.from(
    { length: 8 },
    (_, index) => `{"name":"SETTING_${index}","value":"value-${index}-of-${app}"}`,
  ).join(',');
  return (
    `{"apiVersion":"v1","kind":"Pod","metadata":{${annotations}` +
    `"creationTimestamp":"2026-03-01T09:30:00Z","generateName":"${app}-7c5ddbdf54-","generation":1,` +
    `"labels":{"app":"${app}","pod-template-hash":"7c5ddbdf54"},"managedFields":[${POD_FIELDS}],` +
    `"name":"${podName(number)}","namespace":"${namespaceOf(number)}",` +
    `"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"${app}-7c5ddbdf54","uid":"${uid(number % APPS)}"}],` +
    `"resourceVersion":"${resourceVersion}","uid":"${id}"},` +
    `"spec":{"containers":[{"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},${env}],` +
    `"image":"registry.example.com/${app}:1.4.2","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},` +
    `"name":"app","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},` +
    `"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-x7k2p","readOnly":true}]}],` +
    `"dnsPolicy":"ClusterFirst","enableServiceLinks":true,"nodeName":"node-${number % 100}","preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"serviceAccount":"default","serviceAccountName":"default","terminationGracePeriodSeconds":30,` +
    `"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}],` +
    `"volumes":[{"name":"kube-api-access-x7k2p","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]},` +
    `"status":{"conditions":[${['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition).join(',')}],` +
    `"containerStatuses":[{"containerID":"containerd://${id.replaceAll('-', '')}${id.replaceAll('-', '')}","image":"registry.example.com/${app}:1.4.2","imageID":"registry.example.com/${app}@sha256:${id.replaceAll('-', '')}${id.replaceAll('-', '')}","lastState":{},"name":"app","ready":true,"restartCount":${resourceVersion % 5},"started":true,"state":{"running":{"startedAt":"2026-03-01T09:30:04Z"}}}],` +
    `"hostIP":"192.168.0.${number % 100}","hostIPs":[{"ip":"192.168.0.${number % 100}"}],"observedGeneration":1,"phase":"Running","podIP":"${ip}","podIPs":[{"ip":"${ip}"}],"qosClass":"Burstable","startTime":"2026-03-01T09:30:00Z"}}`
  );
}

/** Returns the number of the object that an event changes: uniformly distributed, in no order. */
export function changedBy(event: number, objects: number): number {
  return (event * 7919) % objects;
}

function uid(number: number): string {
  const hex = ((number + 1) * 2_654_435_761).toString(16).padStart(12, '0').slice(-12);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-4a${hex.slice(0, 2)}-8b${hex.slice(2, 4)}-${hex}`;
}
