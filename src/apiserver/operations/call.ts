import type { AdmittedRequest } from '../admission/admit.ts';
import type { WatchHistory } from '../storage/watch-history.ts';
import type { Clock } from '../../util/clock.ts';
import type { ApiServerMetrics } from '../../metrics/api-server-metrics.ts';
import type { HttpResponse } from '../../util/http.ts';
import type { Kubelet } from '../../api/kubelet.ts';
import type { AdmissionChain } from '../admission/attributes.ts';
import type { Authorizer } from '../../api/policy-rule.ts';
import type { ServiceAccountTokens } from '../auth/service-account-tokens.ts';
import type { Authenticator } from '../../api/user.ts';
import type { Connection } from './connection.ts';
import type { CrdConverter } from '../crd/crd-conversion.ts';
import type { LineCache } from './line-cache.ts';
import type { ListRendering, Representation } from '../request/negotiation.ts';
import type { WriteTurns } from '../request/write-turns.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { Registry } from '../objects/registry.ts';
import type {
  ResourceDefinition,
  StoredObject,
  WriteObserver,
} from '../objects/resource-definition.ts';
import type { Watcher } from './watcher.ts';

/** The parts of the server that operations use. */
export interface Backend {
  readonly store: ObjectStore;
  readonly registry: Registry;
  readonly clock: Clock;
  /** Returns a new random UUID. */
  readonly uid: () => string;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Called after each write, for its consequences: a CRD is served, a namespace is deleted. */
  readonly observer: WriteObserver;
  readonly limits: WatchLimits;
  /** Undefined if nothing is recorded. */
  readonly metrics: ApiServerMetrics | undefined;
  /** Encoded watch events of recent writes. */
  readonly lines: LineCache;
  /** Returns the kubelet of a node, or undefined if it has none. */
  readonly kubelets: Kubelets;
  /** Authentication and authorization. */
  readonly access: Authenticator & Authorizer;
  readonly tokens: Pick<ServiceAccountTokens, 'discovery' | 'issue'>;
  /** Webhooks and policies. */
  readonly admission: AdmissionChain;
  /** Conversion between versions of CRDs. */
  readonly converter: CrdConverter;
  readonly turns: WriteTurns;
  /** Resolves after about the time of a write to etcd. Undefined in virtual time, where two writes of a request are one step. */
  readonly betweenWrites: (() => Promise<void>) | undefined;
}

/** Returns the kubelet of a node, which serves the logs of Pods and connections to them. */
export type Kubelets = (nodeName: string) => Kubelet | undefined;

export interface WatchLimits {
  /**
   * Interval of the bookmarks of a watch that requested them, in milliseconds.
   * @default 60_000
   */
  readonly bookmarkIntervalMs: number;
  /**
   * Duration of a watch without `timeoutSeconds`, in milliseconds.
   * @default 1_800_000
   */
  readonly watchTimeoutMs: number;
  /**
   * Maximum number of pending events of a slow client. Beyond it, the watch is closed.
   * @default 10_000
   */
  readonly watchBufferLimit: number;
}

/** One request to a resource. */
export interface Call extends AdmittedRequest {
  readonly backend: Backend;
  readonly representation: Representation;
}

export interface ListState {
  readonly objects: readonly StoredObject[];
  readonly revision: number;
  readonly history: WatchHistory;
}

/** One object, in the requested representation. */
export interface ObjectAnswer {
  readonly kind: 'object';
  readonly code: number;
  readonly object: StoredObject;
  /** Definition of its kind, if it differs from the resource in the path. */
  readonly definition?: ResourceDefinition;
}

/** The result of an operation, which the handler converts to a response. */
export type Answer =
  | ObjectAnswer
  /** A list, encoded during the response. */
  | { readonly kind: 'list'; readonly rendering: ListRendering; readonly state: ListState }
  /** JSON that is sent unchanged. */
  | { readonly kind: 'json'; readonly code: number; readonly value: object }
  /** `isList`: the client lists with the watch, by `sendInitialEvents` and bookmarks. */
  | { readonly kind: 'watch'; readonly watcher: Watcher; readonly isList: boolean }
  /** A stream of plain text. */
  | { readonly kind: 'text'; readonly body: AsyncIterable<Uint8Array> }
  /** A connection to a Pod, for which the client changes the protocol. */
  | { readonly kind: 'connection'; readonly connection: Connection }
  /** The response of another server. */
  | { readonly kind: 'proxied'; readonly response: HttpResponse }
  /** Success without content. */
  | { readonly kind: 'nothing' };

/** The answer of a POST that does not create an object of its own. */
export const SUCCESS: Answer = {
  kind: 'json',
  code: 201,
  value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 },
};
