// Generated from crds/webapps.jiajunhuang.com.yaml by `npm run generate`. Do not edit.

import type { KubernetesObject } from '../object.ts';
import type { Resource } from '../resource.ts';

/**
 * WebApp runs a web application: a Deployment and a Service in front of it, set up task by task,
 * and taken down in reverse order when the WebApp is deleted.
 */
export interface WebApp extends KubernetesObject {
  /** Desired state. */
  spec: WebAppSpec;
  /** Observed state, written by the controller. */
  status?: WebAppStatus;
}

/** Desired state. */
export interface WebAppSpec {
  /**
   * Version of the application. It is a label of the Pods, and the tag of the nginx image that they
   * run unless image says otherwise.
   */
  version: string;
  /** Number of replicas, 0 to 1000. */
  replicas: number;
  /** Image of the Pods. Defaults to nginx with the given version. */
  image?: string;
}

/** Observed state, written by the controller. */
export interface WebAppStatus {
  /** The metadata.generation that this status was computed from. */
  observedGeneration?: number;
  /** Number of replicas. */
  replicas?: number;
  /** Number of available replicas. */
  availableReplicas?: number;
  /**
   * Label selector of the Pods, in its string form. The scale subresource hands it to autoscalers.
   */
  selector?: string;
  /**
   * Ready is True if all tasks are done. Reconciling and Stalled are present only while they apply:
   * the controller is working, or needs a change to the WebApp. Each task has a condition of its
   * own, such as DeploymentDone.
   */
  conditions?: WebAppStatusCondition[];
}

/** A condition of the WebApp. */
export interface WebAppStatusCondition {
  /** The aspect: Ready, Reconciling, Stalled, or a task. */
  type: string;
  /** True, False or Unknown. */
  status: 'True' | 'False' | 'Unknown';
  /** The metadata.generation that the condition was computed from. */
  observedGeneration?: number;
  /** Time of the last change of the status. */
  lastTransitionTime: string;
  /** Machine-readable reason in CamelCase. */
  reason: string;
  /** Human-readable message. */
  message: string;
  /** Where the WebApp is: Progressing, Available, Failed or Deleting. */
  phase?: string;
}

/** Resource descriptor for typed clients, informers and listers: `informers.for(WEB_APPS)`. */
export const WEB_APPS: Resource<WebApp> = {
  group: 'jiajunhuang.com',
  version: 'v1',
  plural: 'webapps',
  kind: 'WebApp',
  namespaced: true,
};
