import type { KubernetesObject } from '../../api/object.ts';
import type { Freshness } from './freshness.ts';
import type { WatchConnection } from './watch-connection.ts';

/** A state in which the reflector works. A connection exists only where it is read from. */
export type Working<T extends KubernetesObject> =
  /** Fetching the state through a watch (WatchList). */
  | { readonly phase: 'streaming'; readonly freshness: Freshness }
  /** Fetching the state page by page. */
  | { readonly phase: 'listing'; readonly freshness: Freshness }
  | Watching<T>;

export interface Watching<T extends KubernetesObject> {
  readonly phase: 'watching';
  /** Where to begin. */
  readonly resourceVersion: string;
  /** Whether the server has reached the resourceVersion is asked first. */
  readonly verify?: boolean;
  /** Open already, when the stream that brought the state goes on as the watch. */
  readonly connection?: WatchConnection<T>;
}

/** Pausing after a failure. */
export interface Waiting<T extends KubernetesObject> {
  readonly phase: 'waiting';
  readonly delayMs: number;
  readonly reason: string;
  readonly next: Working<T>;
}

/** What a reflector does next. */
export type ReflectorState<T extends KubernetesObject> = Working<T> | Waiting<T>;
