/**
 * Debug pages: queues, the causes of syncs, status and caches. `controllerManager` serves them by its option `debug`.
 *
 * @experimental
 * @module
 */
export type { FieldPath } from './api/field-path.ts';
export { SyncHistory } from './manager/sync-history.ts';
export type {
  CallRecord,
  KeyHistory,
  SyncResultRecord,
  SyncHistoryOptions,
  SyncRecord,
  Postponement,
} from './manager/sync-history.ts';
export type { HotLoop } from './manager/hot-loop/written-object.ts';
export type { DebugLease as ObservedLease } from './serving/debug-pages.ts';
export type { FinishedCall } from './client/observed-client.ts';
export { cachePage } from './serving/debug-pages.ts';
export type { CachedResource } from './serving/debug-pages.ts';
export { queuePages } from './serving/queue-pages.ts';
export type { ControllerView, KeyOwner, QueuePagesDeps } from './serving/controller-view.ts';
export { statusPage } from './serving/debug-pages.ts';
export type {
  InformerStatus,
  ProcessStatus,
  ProcessUsage,
  ShownInformer,
  StatusPageDeps,
} from './serving/debug-pages.ts';
export { objectPage } from './serving/object-page.ts';
export type {
  CachedObjects,
  ObjectNode,
  ObjectPageDeps,
  ObjectReport,
  ShownEvent,
} from './serving/object-page.ts';
export { debugPage } from './serving/page/debug-page.ts';
export type { PagePart } from './serving/page/debug-page.ts';
