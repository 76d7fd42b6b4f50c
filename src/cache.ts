/**
 * Caches: informers, listers, indexes, and the options of lists and watches.
 *
 * @public
 * @module
 */
export type {
  EventHandler,
  EventHandlerOptions,
  HandlerRegistration,
} from './cache/event-handler.ts';
export type { IndexFunction, IndexFunctions } from './cache/indexer.ts';
export type { CacheSelection, InformerSetOptions } from './cache/informer-set.ts';
export { Informer } from './cache/informer.ts';
export type { InformerOptions } from './cache/informer.ts';
export type {
  InformerRequest,
  InformerScope,
  MetadataRequest,
  PartialObjectMetadata,
  Selectors,
  TweakListOptions,
} from './cache/list-options.ts';
export { listerWatcher } from './cache/lister-watcher.ts';
export type { ListerWatcher } from './cache/lister-watcher.ts';
export type { ListerQuery } from './cache/lister.ts';
export type { Progress } from './cache/progress.ts';
export type { ReflectorOptions } from './cache/reflector-options.ts';
export type { InformerView, SharedInformer } from './cache/shared-informer.ts';
export type { Transform } from './cache/delta-queue.ts';
