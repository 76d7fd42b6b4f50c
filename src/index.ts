/**
 * The library: client-go and controller-runtime for Node.js. `Controller` connects informers, a work queue and a sync handler;
 * `runControllers` runs controllers with caches, events and leader election. Parts that most programs do not need directly are in
 * the other entry points, such as `crd-controller/cache`.
 *
 * @public
 * @module
 */
export { ApiError, isApiError } from './api/api-error.ts';
export type { Condition } from './api/conditions.ts';
export { labelValue } from './api/label-selector.ts';
export {
  controllerOf,
  controllerReference,
  hasFinalizer,
  isControlledBy,
  withFinalizer,
  withoutFinalizer,
} from './api/metadata.ts';
export { keyOf, objectKey, splitKey } from './api/object-key.ts';
export type { ObjectKey, ObjectName } from './api/object-key.ts';
export type { DeepReadonly, Draft, KubernetesObject } from './api/object.ts';
export { readinessByCondition, readinessOf } from './api/kstatus.ts';
export { isReady, withReadiness } from './api/readiness.ts';
export type { Readiness } from './api/readiness.ts';
export type { Resource } from './api/resource.ts';
export { finishedCondition } from './api/workloads.ts';
export { InformerSet } from './cache/informer-set.ts';
export type { Lister } from './cache/lister.ts';
export type { Client } from './client/client.ts';
export { connectCluster } from './client/cluster-connection.ts';
export type { ClusterConnection } from './client/cluster-connection.ts';
export { HttpClient } from './client/http-client.ts';
export { loadClusterConfig } from './client/kube-config/kube-config.ts';
export { retryOnConflict } from './client/retry-on-conflict.ts';
export { callService, ServiceError } from './manager/call-service.ts';
export type { ServiceCall, ServiceCallOptions, ServiceContext } from './manager/call-service.ts';
export { deleteOwnedObject, ensureOwnedObject } from './manager/owned-object.ts';
export type { OwnedObjectOutcome } from './manager/owned-object.ts';
export { Controller } from './manager/controller.ts';
export type { ControllerOptions, SyncContext, SyncHandler } from './manager/controller-options.ts';
export { mapByName, mapToOwner, OWNER_INDEX, ownerIndexers } from './manager/enqueue.ts';
export { Finalizer } from './manager/finalizer.ts';
export type { FinalizedSync } from './manager/finalizer.ts';
export { KeyChannel } from './manager/key-channel.ts';
export { objectController } from './manager/object-controller.ts';
export type { ObjectControllerOptions, Reconciled } from './manager/object-controller.ts';
export { objectTask, objectTimer } from './manager/object-tasks.ts';
export type {
  ObjectTaskContext,
  ObjectTaskOptions,
  ObjectTimerOptions,
} from './manager/object-tasks.ts';
export { OwnedObjects } from './manager/owned-objects.ts';
export type { OwnedNode } from './manager/owned-graph.ts';
export type { OwnedDraft } from './manager/owned-object.ts';
export type { OwnedGraphResult, OwnedKindOptions } from './manager/owned-objects.ts';
export { predicates } from './manager/predicate.ts';
export type { Predicate } from './manager/predicate.ts';
export { FlightRecorder } from './replay/flight-recorder.ts';
export type { FlightRecorderOptions, RecordedProgram } from './replay/flight-recorder.ts';
export { controllerManager, runControllers } from './manager/run-controllers.ts';
export type {
  ControllerKit,
  ControllerManagerOptions,
  LeaderElectionOptions,
  RunControllersOptions,
} from './manager/run-controllers.ts';
export { terminationSignal } from './manager/signals.ts';
export { StatusWriter } from './manager/status-writer.ts';
export type { EventRecorder } from './record/event-recorder.ts';
export { systemClock } from './util/clock.ts';
export type { Clock } from './util/clock.ts';
export { CronSchedule } from './util/cron-schedule.ts';
export { silentLogger } from './util/logger.ts';
export type { Logger } from './util/logger.ts';
export { runAll } from './util/runnable.ts';
export type { Runnable } from './util/runnable.ts';
export { textLogger } from './util/text-logger.ts';
export { TimeoutError, withinTimeout } from './util/within-timeout.ts';
export type { TimeLimit } from './util/within-timeout.ts';
export {
  done,
  postpone,
  requeueAfter,
  requeueAt,
  SyncError,
  TerminalError,
} from './workqueue/outcome.ts';
export type { Outcome, RequeueOptions } from './workqueue/outcome.ts';
export type { Cause, FieldChange } from './workqueue/queue-item.ts';
