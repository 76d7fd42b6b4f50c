import type {
  CoreV1Event,
  V1CustomResourceDefinition,
  V1Deployment,
  V1Lease,
  V1Namespace,
  V1Node,
  V1Pod,
  V1ReplicaSet,
  V1Scale,
  V1Service,
} from '@kubernetes/client-node';
import type { Builtin } from './object.ts';
import type { Resource } from './resource.ts';

export type Pod = Builtin<V1Pod>;
export type Event = Builtin<CoreV1Event>;
export type Namespace = Builtin<V1Namespace>;
export type Node = Builtin<V1Node>;
export type Service = Builtin<V1Service>;
export type Deployment = Builtin<V1Deployment>;
export type ReplicaSet = Builtin<V1ReplicaSet>;
export type Lease = Builtin<V1Lease>;
export type Scale = Builtin<V1Scale>;
export type CustomResourceDefinition = Builtin<V1CustomResourceDefinition>;

export const PODS: Resource<Pod> = core('pods', 'Pod');
export const EVENTS: Resource<Event> = core('events', 'Event');
export const SERVICES: Resource<Service> = core('services', 'Service');
export const NAMESPACES: Resource<Namespace> = {
  ...core('namespaces', 'Namespace'),
  namespaced: false,
};
export const NODES: Resource<Node> = { ...core('nodes', 'Node'), namespaced: false };
export const DEPLOYMENTS: Resource<Deployment> = apps('deployments', 'Deployment');
export const REPLICA_SETS: Resource<ReplicaSet> = apps('replicasets', 'ReplicaSet');
export const LEASES: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};
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
