/**
 * Built-in kinds: descriptors such as `PODS`, which give informers, listers and clients their types, and the types of the objects.
 *
 * @module
 */
export {
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
  REPLICA_SETS,
  SERVICES,
} from './api/builtin.ts';
export type {
  CustomResourceDefinition,
  Deployment,
  Event,
  Lease,
  Namespace,
  Node,
  Pod,
  ReplicaSet,
  Service,
} from './api/builtin.ts';
