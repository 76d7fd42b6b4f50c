// Generated from crds/webapps.jiajunhuang.com.yaml by `npm run generate`. Do not edit.

import type { KubernetesObject } from '../object.ts';
import type { Resource } from '../resource.ts';

/**
 * WebApp runs a web application: a Deployment and a Service in front of it, set up task by task,
 * and taken down in reverse order when the WebApp is deleted.
 */
export interface WebApp extends KubernetesObject {
  /** What is wanted. */
  spec: WebAppSpec;
  /** What the controller has seen. Written by the controller alone. */
  status?: WebAppStatus;
}

/** What is wanted. */
export interface WebAppSpec {
  /**
   * Version of the application. It is a label of the Pods, and the tag of the nginx image that they
   * run unless image says otherwise.
   */
  version: string;
  /** How many replicas run, 0 to 1000. */
  replicas: number;
  /** Image of the Pods, taken as it is. Without it they run nginx, of the given version. */
  image?: string;
}

/** What the controller has seen. Written by the controller alone. */
export interface WebAppStatus {
  /** The metadata.generation that this status was computed from. */
  observedGeneration?: number;
  /** Replicas that there are. */
  replicas?: number;
  /** Those of the replicas that are available. */
  availableReplicas?: number;
  /**
   * Label selector of the Pods, in its string form. The scale subresource hands it to autoscalers.
   */
  selector?: string;
  /**
   * Ready says whether all tasks are done. Reconciling and Stalled appear only while they hold:
   * work is under way, or cannot go on without a change to the WebApp. Each task has a condition of
   * its own, such as DeploymentDone.
   */
  conditions?: WebAppStatusCondition[];
}

/** One aspect of the state of the WebApp. */
export interface WebAppStatusCondition {
  /** The aspect: Ready, Reconciling, Stalled, or a task. */
  type: string;
  /** Whether it holds. Unknown if it could not be told. */
  status: 'True' | 'False' | 'Unknown';
  /** The metadata.generation that the condition was computed from. */
  observedGeneration?: number;
  /** When the status last changed from one value to another. */
  lastTransitionTime: string;
  /** Why, as one word for programs. */
  reason: string;
  /** Why, as a sentence for people. */
  message: string;
  /** Where the WebApp is: Progressing, Available, Failed or Deleting. */
  phase?: string;
}

/** Makes what is asked of informers, listers and clients typed: `informers.for(WEB_APPS)`. */
export const WEB_APPS: Resource<WebApp> = {
  group: 'jiajunhuang.com',
  version: 'v1',
  plural: 'webapps',
  kind: 'WebApp',
  namespaced: true,
};
