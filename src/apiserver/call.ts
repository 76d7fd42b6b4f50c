import type { Clock } from '../util/clock.ts';
import type { HttpHandler, HttpRequest } from '../util/http.ts';
import type { Access } from './access.ts';
import type { User } from './user.ts';
import type { LineCache } from './line-cache.ts';
import type { ListState } from './list-body.ts';
import type { ListRendering, Representation } from './negotiation.ts';
import type { ObjectStore } from './object-store.ts';
import type { Registry } from './registry.ts';
import type { RequestInfo } from './request-info.ts';
import type { HookContext, ResourceDefinition, StoredObject } from './resource-definition.ts';
import type { Watcher } from './watcher.ts';

/** What operations work on. */
export interface Backend {
  readonly store: ObjectStore;
  readonly registry: Registry;
  readonly clock: Clock;
  /** A fresh random UUID. */
  readonly uid: () => string;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Told after each write: what follows from it (a CRD is served, a namespace ends). */
  readonly observer: WriteObserver;
  readonly limits: WatchLimits;
  /** What watches have sent of recent writes. */
  readonly lines: LineCache;
  /** The way to a node's kubelet; undefined if there is none. */
  readonly kubelets: Kubelets;
  /** Who there is, and who may do what. */
  readonly access: Access;
}

/** Logs of Pods, as a kubelet serves them. */
export type Kubelets = (nodeName: string) => HttpHandler | undefined;

export interface WriteObserver {
  written(definition: ResourceDefinition, object: StoredObject): void;
  removed(definition: ResourceDefinition, object: StoredObject): void;
}

export interface WatchLimits {
  /**
   * How often a watch that asked for bookmarks gets one, in milliseconds.
   * @default 60_000
   */
  readonly bookmarkIntervalMs: number;
  /**
   * When a watch ends that did not say, in milliseconds.
   * @default 1_800_000
   */
  readonly watchTimeoutMs: number;
  /**
   * Events that may wait for a slow client before its watch is closed.
   * @default 10_000
   */
  readonly watchBufferLimit: number;
}

/** One request to a resource, on its way through an operation. */
export interface Call {
  readonly backend: Backend;
  readonly request: HttpRequest;
  /** Who sends it. */
  readonly user: User;
  readonly info: RequestInfo;
  readonly definition: ResourceDefinition;
  readonly representation: Representation;
  /** Shown to the user in `Warning` headers; operations add to it. */
  readonly warnings: string[];
}

/** What an operation answers; the handler turns it into a response. */
export type Answer =
  /** One object, to be shown in the representation asked for. */
  | {
      readonly kind: 'object';
      readonly code: number;
      readonly object: StoredObject;
      /** Of what kind it is, if not of the resource in the path. */
      readonly definition?: ResourceDefinition;
    }
  /** A list, encoded while it is sent. */
  | { readonly kind: 'list'; readonly rendering: ListRendering; readonly state: ListState }
  /** JSON that is sent as it is. */
  | { readonly kind: 'json'; readonly code: number; readonly value: object }
  | { readonly kind: 'watch'; readonly watcher: Watcher }
  /** Plain text as it comes. */
  | { readonly kind: 'text'; readonly body: AsyncIterable<Uint8Array> }
  /** Success, and nothing to say. */
  | { readonly kind: 'nothing' };

export function hookContext({ clock, uid }: Backend): HookContext {
  return { now: clock.now(), uid };
}

/** True if the request shall go all the way but leave nothing behind. */
export function isDryRun({ info }: Call): boolean {
  return info.query.getAll('dryRun').includes('All');
}
