/**
 * Debug pages: queues, the causes of syncs, status and caches. `controllerManager` serves them by its option `debug`.
 *
 * @module
 */
export type { FieldPath } from './manager/changed-paths.ts';
export { RunHistory } from './manager/history/run-history.ts';
export type {
  CallRecord,
  KeyHistory,
  RunEndRecord,
  RunHistoryOptions,
  RunRecord,
} from './manager/history/run-history.ts';
export type { Hold } from './manager/holds.ts';
export type { HotLoop } from './manager/hot-loop/loop-evidence.ts';
export type { LeaseSighting } from './manager/lease-sightings.ts';
export type { EndedCall } from './manager/observed-client.ts';
export { cachePage } from './manager/serving/cache-page.ts';
export type { CachedResource } from './manager/serving/cache-page.ts';
export { debugPages } from './manager/serving/debug-pages.ts';
export type { DebuggedController, DebugPagesDeps } from './manager/serving/debug-pages.ts';
export { statusPage } from './manager/serving/status-page.ts';
export type {
  InformerStatus,
  ProcessStatus,
  ShownInformer,
  StatusPageDeps,
} from './manager/serving/status-page.ts';
