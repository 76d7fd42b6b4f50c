import type {
  CoreV1Event,
  V1CertificateSigningRequest,
  V1ConfigMap,
  V1ControllerRevision,
  V1CronJob,
  V1CustomResourceDefinition,
  V1DaemonSet,
  V1Deployment,
  V1Endpoints,
  V1EndpointSlice,
  V1Job,
  V1Lease,
  V1ServiceAccount,
  V1Namespace,
  V1Node,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1ReplicaSet,
  V1ResourceQuota,
  V1Scale,
  V1Service,
  V1StatefulSet,
} from '@kubernetes/client-node';
import type { Builtin } from './object.ts';
import type { Resource } from './resource.ts';

/** A Pod of v1. */
export type Pod = Builtin<V1Pod>;
/** An Event of v1. */
export type Event = Builtin<CoreV1Event>;
/** A Namespace of v1. */
export type Namespace = Builtin<V1Namespace>;
/** A Node of v1. */
export type Node = Builtin<V1Node>;
/** A Service of v1. */
export type Service = Builtin<V1Service>;
/** A Deployment of apps/v1. */
export type Deployment = Builtin<V1Deployment>;
/** A ReplicaSet of apps/v1. */
export type ReplicaSet = Builtin<V1ReplicaSet>;
/** A StatefulSet of apps/v1. */
export type StatefulSet = Builtin<V1StatefulSet>;
/** A DaemonSet of apps/v1. */
export type DaemonSet = Builtin<V1DaemonSet>;
/** A ControllerRevision of apps/v1. */
export type ControllerRevision = Builtin<V1ControllerRevision>;
/** A PersistentVolumeClaim of v1. */
export type PersistentVolumeClaim = Builtin<V1PersistentVolumeClaim>;
/** A Lease of coordination.k8s.io/v1. */
export type Lease = Builtin<V1Lease>;
export type Scale = Builtin<V1Scale>;
/** A CustomResourceDefinition of apiextensions.k8s.io/v1. */
export type CustomResourceDefinition = Builtin<V1CustomResourceDefinition>;

/** A PodDisruptionBudget of policy/v1. */
export type PodDisruptionBudget = Builtin<V1PodDisruptionBudget>;

/** A CronJob of batch/v1. */
export type CronJob = Builtin<V1CronJob>;
/** A Job of batch/v1. */
export type Job = Builtin<V1Job>;
/** A ServiceAccount of v1. */
export type ServiceAccount = Builtin<V1ServiceAccount>;
/** A CertificateSigningRequest of certificates.k8s.io/v1. */
export type CertificateSigningRequest = Builtin<V1CertificateSigningRequest>;
/** A ConfigMap of v1. */
export type ConfigMap = Builtin<V1ConfigMap>;
/** An Endpoints object of v1. */
export type Endpoints = Builtin<V1Endpoints>;
/** An EndpointSlice of discovery.k8s.io/v1. */
export type EndpointSlice = Builtin<V1EndpointSlice>;
/** A ResourceQuota of v1. */
export type ResourceQuota = Builtin<V1ResourceQuota>;

/** Descriptor of Pods. */
export const PODS: Resource<Pod> = core('pods', 'Pod');
/** Descriptor of Events. */
export const EVENTS: Resource<Event> = core('events', 'Event');
/** Descriptor of Services. */
export const SERVICES: Resource<Service> = core('services', 'Service');
/** Descriptor of Namespaces. */
export const NAMESPACES: Resource<Namespace> = {
  ...core('namespaces', 'Namespace'),
  namespaced: false,
};
/** Descriptor of Nodes. */
export const NODES: Resource<Node> = { ...core('nodes', 'Node'), namespaced: false };
/** Descriptor of Deployments. */
export const DEPLOYMENTS: Resource<Deployment> = apps('deployments', 'Deployment');
/** Descriptor of ReplicaSets. */
export const REPLICA_SETS: Resource<ReplicaSet> = apps('replicasets', 'ReplicaSet');
/** Descriptor of StatefulSets. */
export const STATEFUL_SETS: Resource<StatefulSet> = apps('statefulsets', 'StatefulSet');
/** Descriptor of DaemonSets. */
export const DAEMON_SETS: Resource<DaemonSet> = apps('daemonsets', 'DaemonSet');
/** Descriptor of ControllerRevisions. */
export const CONTROLLER_REVISIONS: Resource<ControllerRevision> = apps(
  'controllerrevisions',
  'ControllerRevision',
);
/** Descriptor of PersistentVolumeClaims. */
export const PERSISTENT_VOLUME_CLAIMS: Resource<PersistentVolumeClaim> = core(
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
);
/** Descriptor of PodDisruptionBudgets. */
export const POD_DISRUPTION_BUDGETS: Resource<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  namespaced: true,
};
/** Descriptor of CronJobs. */
export const CRON_JOBS: Resource<CronJob> = {
  group: 'batch',
  version: 'v1',
  plural: 'cronjobs',
  kind: 'CronJob',
  namespaced: true,
};
/** Descriptor of Jobs. */
export const JOBS: Resource<Job> = {
  group: 'batch',
  version: 'v1',
  plural: 'jobs',
  kind: 'Job',
  namespaced: true,
};
/** Descriptor of ServiceAccounts. */
export const SERVICE_ACCOUNTS: Resource<ServiceAccount> = core('serviceaccounts', 'ServiceAccount');
/** Descriptor of ConfigMaps. */
export const CONFIG_MAPS: Resource<ConfigMap> = core('configmaps', 'ConfigMap');
/** Descriptor of Endpoints. */
export const ENDPOINTS: Resource<Endpoints> = core('endpoints', 'Endpoints');
/** Descriptor of EndpointSlices. */
export const ENDPOINT_SLICES: Resource<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  namespaced: true,
};
/** Descriptor of ResourceQuotas. */
export const RESOURCE_QUOTAS: Resource<ResourceQuota> = core('resourcequotas', 'ResourceQuota');
/** Descriptor of CertificateSigningRequests. */
export const CERTIFICATE_SIGNING_REQUESTS: Resource<CertificateSigningRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};
/** Descriptor of Leases. */
export const LEASES: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};
/** Descriptor of CustomResourceDefinitions. */
export const CUSTOM_RESOURCE_DEFINITIONS: Resource<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};

function core(plural: string, kind: string): Omit<Resource, 'objectType'> {
  return { group: '', version: 'v1', plural, kind, namespaced: true };
}

function apps(plural: string, kind: string): Omit<Resource, 'objectType'> {
  return { group: 'apps', version: 'v1', plural, kind, namespaced: true };
}
