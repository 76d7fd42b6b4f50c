/**
 * The work queue, rate limiters and the worker pool. `Controller` uses them; they also work without Kubernetes.
 *
 * @public
 * @module
 */
export { formatCause } from './workqueue/queue-item.ts';
export {
  bucketLimiter,
  exponentialLimiter,
  fastSlowLimiter,
  maxOfLimiter,
  withMaxWait,
} from './workqueue/rate-limiter.ts';
export type { BucketPolicy, FastSlowPolicy, RateLimiter } from './workqueue/rate-limiter.ts';
export type { SyncReport, SyncResult, SyncRun } from './workqueue/sync-report.ts';
export { LOW_PRIORITY, WorkQueue } from './workqueue/work-queue.ts';
export type { AddOptions, TakenItem, WorkQueueOptions } from './workqueue/work-queue.ts';
export { WorkerPool } from './workqueue/worker-pool.ts';
export type { KeyHandler, KeyHandlerContext, WorkerPoolOptions } from './workqueue/worker-pool.ts';
