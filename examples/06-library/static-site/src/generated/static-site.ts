// Generated from crds/staticsites.example.com.yaml by `crd-controller generate`. Do not edit.

import type { Condition, KubernetesObject, Resource } from 'crd-controller';

/** StaticSite keeps a number of equal Pods running, by a Deployment of its name. */
export interface StaticSite extends KubernetesObject {
  /** What is wanted. */
  spec: StaticSiteSpec;
  /** What the controller has seen. Written by the controller alone. */
  status?: StaticSiteStatus;
}

/** What is wanted. */
export interface StaticSiteSpec {
  /** Image that the Pods run. */
  image: string;
  /**
   * How many Pods there are, 0 to 100.
   * @default 1
   */
  replicas: number;
}

/** What the controller has seen. Written by the controller alone. */
export interface StaticSiteStatus {
  /** The metadata.generation that this status was computed from. */
  observedGeneration?: number;
  /** Replicas that are available. */
  availableReplicas?: number;
  /**
   * Ready says whether all replicas are available. Reconciling and Stalled appear only while they
   * hold: work is under way, or cannot go on without somebody's help.
   */
  conditions?: Condition[];
}

/** Makes what is asked of informers, listers and clients typed: `informers.for(STATIC_SITES)`. */
export const STATIC_SITES: Resource<StaticSite> = {
  group: 'example.com',
  version: 'v1alpha1',
  plural: 'staticsites',
  kind: 'StaticSite',
  namespaced: true,
};
