// Generated from complex-crd.yaml by hand. Do not edit.

import type { Condition, KubernetesObject, Resource } from 'crd-controller';

/** Ends *\/ its comment early. */
export interface NetworkPolicy extends KubernetesObject {
  spec?: NetworkPolicySpec;
  status?: NetworkPolicyStatus;
}

export interface NetworkPolicySpec {
  /** A number or a name. */
  port: number | string;
  "it's": string;
  nested: (number | string)[][];
  /** @default "On" */
  mode: 'On' | 'Off' | "don't";
  /** More values than fit on a line. */
  verbose?: NetworkPolicySpecVerbose;
  level?: 1 | 2 | null;
  modes?: ('a' | 'b')[];
  labels?: Record<string, string>;
  policies?: NetworkPolicySpecPolicy[] | null;
  byName?: Record<string, NetworkPolicySpecByNameItem>;
  anything?: unknown;
  free?: Record<string, unknown>;
  half?: NetworkPolicySpecHalf;
  template?: NetworkPolicySpecTemplate;
  nothing?: Record<string, never>;
  /** The source. */
  source?: NetworkPolicySpecSource;
  /** At least one of the two. */
  login?: NetworkPolicySpecLogin;
  strategy?: NetworkPolicySpecStrategy;
  /** @default {"cpu":"1"} */
  limits: Record<string, number | string>;
  record?: NetworkPolicySpecRecord;
  __proto__?: string;
  resource?: NetworkPolicySpecResource;
}

/** More values than fit on a line. */
export type NetworkPolicySpecVerbose =
  | 'aaaaaaaaaaaaaaaaaaaaaaa'
  | 'bbbbbbbbbbbbbbbbbbbbbbb'
  | 'ccccccccccccccccccccccc'
  | 'ddddddddddddddddddddddd';

/** A policy. */
export interface NetworkPolicySpecPolicy {
  'max-size'?: number;
}

export interface NetworkPolicySpecByNameItem {
  on?: boolean;
}

export interface NetworkPolicySpecHalf {
  known?: string;
  [field: string]: unknown;
}

export interface NetworkPolicySpecTemplate {
  apiVersion: string;
  kind: string;
  metadata?: Partial<KubernetesObject['metadata']>;
  [field: string]: unknown;
}

/** The source. */
export type NetworkPolicySpecSource =
  NetworkPolicySpecSourceWithGit | NetworkPolicySpecSourceWithImage;

export interface NetworkPolicySpecSourceBase {
  /** The name. */
  name: string;
}

export interface NetworkPolicySpecSourceWithGit extends NetworkPolicySpecSourceBase {
  git: NetworkPolicySpecSourceGit;
  image?: never;
}

export interface NetworkPolicySpecSourceWithImage extends NetworkPolicySpecSourceBase {
  git?: never;
  /** A container image. */
  image: string;
}

export interface NetworkPolicySpecSourceGit {
  url: string;
}

/** At least one of the two. */
export type NetworkPolicySpecLogin =
  NetworkPolicySpecLoginWithToken | NetworkPolicySpecLoginWithPassword;

export interface NetworkPolicySpecLoginWithToken {
  token: string;
  password?: string;
}

export interface NetworkPolicySpecLoginWithPassword {
  token?: string;
  password: string;
}

export type NetworkPolicySpecStrategy =
  NetworkPolicySpecStrategyWithRollingUpdate | NetworkPolicySpecStrategyWithRecreate;

export interface NetworkPolicySpecStrategyWithRollingUpdate {
  type: 'RollingUpdate';
  rollingUpdate?: NetworkPolicySpecStrategyRollingUpdate;
}

export interface NetworkPolicySpecStrategyWithRecreate {
  type: 'Recreate';
  rollingUpdate?: never;
}

export interface NetworkPolicySpecStrategyRollingUpdate {
  surge?: number;
}

export interface NetworkPolicySpecRecord {
  a?: number;
}

export interface NetworkPolicySpecResource {
  b?: boolean;
}

export interface NetworkPolicyStatus {
  conditions?: Condition[];
  /** Similar to conditions, but not the same. */
  steps?: NetworkPolicyStatusStep[];
}

export interface NetworkPolicyStatusStep {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastTransitionTime: string;
  reason: string;
  message: string;
  phase?: string;
}

/** Resource descriptor for typed clients, informers and listers: `informers.for(NETWORK_POLICIES)`. */
export const NETWORK_POLICIES: Resource<NetworkPolicy> = {
  group: 'complex.example.com',
  version: 'v1alpha1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  namespaced: false,
  fields: {},
};
