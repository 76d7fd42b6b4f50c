// Generated from crds/ats.cnat.programming-kubernetes.info.yaml by `npm run generate`. Do not edit.

import type { Condition } from '../conditions.ts';
import type { KubernetesObject } from '../object.ts';
import type { Resource } from '../resource.ts';

/**
 * At runs a command once, at a given time: in a Pod that is called after it, such as
 * example-at-pod. The Pod stays, for its log, until the At is deleted.
 */
export interface At extends KubernetesObject {
  /** Desired state. */
  spec: AtSpec;
  /** Observed state, written by the controller. */
  status?: AtStatus;
}

/** Desired state. */
export interface AtSpec {
  /**
   * When to run: an instant in the form of RFC 3339, such as 2026-11-21T10:12:00Z. One that is past
   * means at once, however late that is.
   */
  schedule: string;
  /**
   * What to run, in a busybox image. It is split into words as a shell does, quotes and backslashes
   * included; nothing is substituted.
   */
  command: string;
}

/** Observed state, written by the controller. */
export interface AtStatus {
  /** The metadata.generation that this status was computed from. */
  observedGeneration?: number;
  /** PENDING until the time has come, RUNNING while the command runs, DONE indefinitely after. */
  phase?: 'PENDING' | 'RUNNING' | 'DONE';
  /** metadata.uid of the one Pod that runs the command. No other is ever created for this At. */
  podUID?: string;
  /**
   * Succeeded is True if the command has run and succeeded; then Ready is True. Reconciling and
   * Stalled are present only while they apply: the At waits for its time or its command, or the
   * controller needs a change to continue.
   */
  conditions?: Condition[];
}

/** Resource descriptor for typed clients, informers and listers: `informers.for(ATS)`. */
export const ATS: Resource<At> = {
  group: 'cnat.programming-kubernetes.info',
  version: 'v1alpha1',
  plural: 'ats',
  kind: 'At',
  namespaced: true,
};
