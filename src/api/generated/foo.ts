// Generated from crds/foos.samplecontroller.k8s.io.yaml by `npm run generate`. Do not edit.

import type { Condition } from '../conditions.ts';
import type { KubernetesObject } from '../object.ts';
import type { Resource } from '../resource.ts';

/** Foo keeps a Deployment of nginx, under a name of your choice. */
export interface Foo extends KubernetesObject {
  /** What is wanted. */
  spec: FooSpec;
  /** What the controller has seen. Written by the controller alone. */
  status?: FooStatus;
}

/** What is wanted. */
export interface FooSpec {
  /**
   * Name of the Deployment, a DNS subdomain with room for the suffix of its ReplicaSets. Changing
   * it removes the Deployment of the old name once that of the new one is there.
   */
  deploymentName: string;
  /**
   * How many replicas the Deployment has, 1 to 10.
   * @default 1
   */
  replicas: number;
}

/** What the controller has seen. Written by the controller alone. */
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
   * Ready says whether all replicas are available. Reconciling and Stalled appear only while they
   * hold: work is under way, or cannot go on without a change to the Foo.
   */
  conditions?: Condition[];
}

/** Makes what is asked of informers, listers and clients typed: `informers.for(FOOS)`. */
export const FOOS: Resource<Foo> = {
  group: 'samplecontroller.k8s.io',
  version: 'v1alpha1',
  plural: 'foos',
  kind: 'Foo',
  namespaced: true,
};
