// Generated from crds/foos.samplecontroller.k8s.io.yaml by `npm run generate`. Do not edit.

import type { Condition } from '../conditions.ts';
import type { KubernetesObject } from '../object.ts';
import type { Resource } from '../resource.ts';

/** Foo runs an nginx Deployment with the given name. */
export interface Foo extends KubernetesObject {
  /** Desired state. */
  spec: FooSpec;
  /** Observed state, written by the controller. */
  status?: FooStatus;
}

/** Desired state. */
export interface FooSpec {
  /**
   * Name of the Deployment, a DNS subdomain with room for the suffix of its ReplicaSets. Changing
   * it removes the Deployment of the old name once that of the new one is there.
   */
  deploymentName: string;
  /**
   * Number of replicas of the Deployment, 1 to 10.
   * @default 1
   */
  replicas: number;
}

/** Observed state, written by the controller. */
export interface FooStatus {
  /** The metadata.generation that this status was computed from. */
  observedGeneration?: number;
  /** Replicas of the Deployment that are available. */
  availableReplicas?: number;
  /**
   * Label selector of the Pods, in its string form. The scale subresource hands it to autoscalers.
   */
  selector?: string;
  /**
   * Ready is True if all replicas are available. Reconciling and Stalled are present only while
   * they apply: the controller is working, or needs a change to the Foo.
   */
  conditions?: Condition[];
}

/** Resource descriptor for typed clients, informers and listers: `informers.for(FOOS)`. */
export const FOOS: Resource<Foo> = {
  group: 'samplecontroller.k8s.io',
  version: 'v1alpha1',
  plural: 'foos',
  kind: 'Foo',
  namespaced: true,
};
