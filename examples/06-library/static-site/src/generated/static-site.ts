// Generated from deploy/crds/staticsites.example.com.yaml by `crd-controller generate`. Do not edit.

import type { Condition, KubernetesObject, Resource } from 'crd-controller';

/** StaticSite runs a number of equal Pods with a Deployment of the same name. */
export interface StaticSite extends KubernetesObject {
  /** Desired state. */
  spec: StaticSiteSpec;
  /** Observed state. Written only by the controller. */
  status?: StaticSiteStatus;
}

/** Desired state. */
export interface StaticSiteSpec {
  /** Image of the Pods. */
  image: string;
  /**
   * Desired number of Pods, from 0 to 100.
   * @default 1
   */
  replicas: number;
}

/** Observed state. Written only by the controller. */
export interface StaticSiteStatus {
  /** Number of available replicas. */
  availableReplicas?: number;
  /** The metadata.generation that this status describes. */
  observedGeneration?: number;
  /**
   * Ready is True if the object is in its desired state. Reconciling and Stalled are present only
   * while they are True: the controller is working, or is blocked until a user changes something.
   */
  conditions?: Condition[];
}

/** Resource descriptor for typed clients, informers and listers: `informers.for(STATIC_SITES)`. */
export const STATIC_SITES: Resource<StaticSite> = {
  group: 'example.com',
  version: 'v1alpha1',
  plural: 'staticsites',
  kind: 'StaticSite',
  namespaced: true,
};
