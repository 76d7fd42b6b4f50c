import type { ApiError } from './api-error.ts';
import type { KubernetesObject } from './object.ts';

/** One thing that a watch says. */
export type WatchEvent<T extends KubernetesObject> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: T }
  | {
      readonly type: 'bookmark';
      readonly resourceVersion: string;
      /** The initial state asked for with `sendInitialEvents` is complete. */
      readonly initialEventsEnd: boolean;
    }
  | { readonly type: 'error'; readonly error: ApiError };
