// Generated from examples/06-library/count-v2/crds/counts.demo.mark8s.io.yaml by `crd-controller generate`. Do not edit.

import type { Condition, KubernetesObject, Resource } from 'crd-controller';

/**
 * Count keeps a number of equal Pods running. They are called after it, with an ordinal:
 * test-count-0, test-count-1 and so on. Keep its name within 63 characters, the limit of a label
 * value and of a host name.
 */
export interface Count extends KubernetesObject {
  /** Desired state. */
  spec: CountSpec;
  /** Observed state, written by the controller. */
  status?: CountStatus;
}

/** Desired state. */
export interface CountSpec {
  /**
   * Image of the Pods, such as nginx or registry.example.com/team/web:1.4. Changing it replaces the
   * Pods.
   */
  image: string;
  /**
   * Number of Pods to keep. Beyond the maximum, use several Counts.
   * @default 1
   */
  replicas: number;
}

/** Observed state, written by the controller. */
export interface CountStatus {
  /** The metadata.generation that this status was computed from. */
  observedGeneration?: number;
  /** True while exactly spec.count Pods of this Count exist and are ready. */
  healthy?: boolean;
  /** Pods of this Count that exist and are neither finished nor being deleted. */
  replicas?: number;
  /** Number of ready replicas. */
  readyReplicas?: number;
  /**
   * Label selector of the Pods, in its string form. The scale subresource hands it to autoscalers.
   */
  selector?: string;
  /**
   * Ready is True if the Pods match the spec. Reconciling and Stalled are present only while they
   * apply: the controller is working, or needs a change to the Count.
   */
  conditions?: Condition[];
}

/** Resource descriptor for typed clients, informers and listers: `informers.for(COUNTS)`. */
export const COUNTS: Resource<Count> = {
  group: 'demo.mark8s.io',
  version: 'v2',
  plural: 'counts',
  kind: 'Count',
  namespaced: true,
};
