/**
 * The library: what client-go and controller-runtime are to Go. Start with `Controller`, which puts
 * informers, a work queue and a sync handler together, and `runControllers`, which runs it with all
 * it needs; every part also stands alone.
 */

// Objects, resources, errors: data and pure functions.
export { ApiError, isApiError } from './api/api-error.ts';
export type { ApiErrorKind } from './api/api-error.ts';
export {
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
  REPLICA_SETS,
  SERVICES,
} from './api/builtin.ts';
export type {
  CustomResourceDefinition,
  Deployment,
  Event,
  Lease,
  Namespace,
  Node,
  Pod,
  ReplicaSet,
  Service,
} from './api/builtin.ts';
export { removeCondition, setCondition } from './api/conditions.ts';
export type { Condition } from './api/conditions.ts';
export { covers } from './api/equal.ts';
export { equalJson } from './api/equal.ts';
export { hasFinalizer, withFinalizer, withoutFinalizer } from './api/metadata.ts';
export { formatLabelSelector, matchesLabels, parseLabelSelector } from './api/label-selector.ts';
export type { LabelSelector } from './api/label-selector.ts';
export { labelValue } from './api/label-selector.ts';
export type {
  Builtin,
  DeepReadonly,
  Draft,
  KubernetesObject,
  ObjectList,
  ObjectMeta,
  OwnerReference,
  Wire,
} from './api/object.ts';
export { keyOf, objectKey, splitKey } from './api/object-key.ts';
export type { ObjectKey, ObjectName } from './api/object-key.ts';
export { controllerOf, controllerReference, isControlledBy } from './api/metadata.ts';
export { compareResourceVersions } from './api/resource-version.ts';
export { apiVersionOf, groupResourceOf } from './api/resource.ts';
export type { Resource } from './api/resource.ts';
export type { ShardRange } from './api/shard-range.ts';
export { isReadyAt, withReadiness } from './api/readiness.ts';
export type { Readiness } from './api/readiness.ts';
export type { WatchEvent } from './api/object.ts';

// Talking to a server.
export { applyManifests } from './client/apply/apply.ts';
export type { ApplyOptions } from './client/apply/apply.ts';
export type {
  ApplyChange,
  ApplyResult,
  FieldConflict,
  Refusal,
} from './client/apply/apply-result.ts';
export type {
  Client,
  DeleteOptions,
  GetOptions,
  JsonPatchOperation,
  ListOptions,
  Patch,
  Selection,
  WatchOptions,
  WatchStream,
  WriteOptions,
} from './client/client.ts';
export type {
  ClusterConfig,
  CredentialSource,
  Impersonation,
  PemSource,
} from './client/kube-config/cluster-config.ts';
export { connectCluster } from './client/cluster-connection.ts';
export type { ClusterConnection, ClusterConnectionOptions } from './client/cluster-connection.ts';
export { isConnectionRefused } from './client/transport/connection-error.ts';
export { discover, serverVersion } from './client/discovery.ts';
export type { DiscoveredResource, Discovery, ServerVersion } from './client/discovery.ts';
export { HttpClient } from './client/http-client.ts';
export type { HttpClientOptions } from './client/http-client.ts';
export { loadClusterConfig } from './client/kube-config/kube-config.ts';
export type { ClusterConfigOptions } from './client/kube-config/kube-config.ts';
export { KubeConfigError } from './client/kube-config/kube-config-error.ts';
export { ManifestError, parseManifests } from './client/apply/manifest.ts';
export type {
  Manifest,
  ManifestObject,
  ManifestPlace,
  ManifestProblem,
  ManifestText,
} from './client/apply/manifest.ts';
export { readManifests } from './client/apply/manifest-files.ts';
export type { ReadManifestsOptions } from './client/apply/manifest-files.ts';
export { dryRunClient } from './client/dry-run.ts';
export { retryOnConflict } from './client/retry-on-conflict.ts';
export type { RetryOnConflictOptions } from './client/retry-on-conflict.ts';
export { isWriteFenced, WriteFence } from './client/write-fence.ts';

// Caches.
export type {
  EventHandlerOptions,
  EventHandler,
  HandlerRegistration,
} from './cache/event-handler.ts';
export type { IndexFunction, IndexFunctions } from './cache/indexer.ts';
export { Informer } from './cache/informer.ts';
export type { InformerOptions } from './cache/informer.ts';
export { InformerSet } from './cache/informer-set.ts';
export type { InformerSetOptions } from './cache/informer-set.ts';
export type {
  InformerRequest,
  MetadataRequest,
  PartialObjectMetadata,
  InformerScope,
  Selectors,
  TweakListOptions,
} from './cache/list-options.ts';
export type { Lister, ListerQuery } from './cache/lister.ts';
export { listerWatcher } from './cache/lister-watcher.ts';
export type { ListerWatcher } from './cache/lister-watcher.ts';
export type { Transform } from './cache/transform.ts';
export type { Progress } from './cache/progress.ts';
export type { ReflectorOptions } from './cache/reflector-options.ts';
export type { InformerView, SharedInformer } from './cache/shared-informer.ts';

// Queue and workers.
export { formatCause } from './workqueue/queue-item.ts';
export type { Cause } from './workqueue/queue-item.ts';
export { done, postpone, requeueAfter, TerminalError } from './workqueue/outcome.ts';
export type { Outcome } from './workqueue/outcome.ts';
export {
  bucketLimiter,
  exponentialLimiter,
  fastSlowLimiter,
  maxOfLimiter,
  withMaxWait,
} from './workqueue/rate-limiter.ts';
export type { BucketPolicy, FastSlowPolicy, RateLimiter } from './workqueue/rate-limiter.ts';
export { LOW_PRIORITY, WorkQueue } from './workqueue/work-queue.ts';
export type { AddOptions, TakenItem, WorkQueueOptions } from './workqueue/work-queue.ts';
export { WorkerPool } from './workqueue/worker-pool.ts';
export type { SyncRun, SyncResult, SyncReport } from './workqueue/sync-report.ts';
export type { KeyHandler, KeyHandlerContext, WorkerPoolOptions } from './workqueue/worker-pool.ts';

// Events.
export { EventBroadcaster } from './record/event-broadcaster.ts';
export type { EventBroadcasterOptions } from './record/event-broadcaster.ts';
export type { EventCorrelatorOptions } from './record/event-correlator.ts';
export type {
  EventOptions,
  EventRecorder,
  EventSubject,
  RecordResult,
} from './record/event-recorder.ts';

// One of several replicas works: `new Manager(deps, { leadership: elector })`, controllers added as
// `withSyncBarrier(controller, ...)`, their client behind a `WriteFence` that `elector.mayWrite` guards.
export { LeaderElector, LeadershipLostError } from './leaderelection/leader-elector.ts';
export type {
  LeaderElectorDeps,
  LeaderElectorOptions,
  LeadershipRecorder,
} from './leaderelection/leader-elector.ts';
export type { LeaseClient } from './leaderelection/lease-lock.ts';

// Controllers and what runs them.
export { ensureChild } from './manager/child.ts';
export type { ChildContext, ChildOutcome, ChildWish } from './manager/child.ts';
export { Controller } from './manager/controller.ts';
export type {
  ControllerDeps,
  ControllerObserver,
  ControllerOptions,
  Feed,
  SyncContext,
  SyncHandler,
} from './manager/controller.ts';
export { cachePage } from './manager/serving/cache-page.ts';
export type { CachedResource } from './manager/serving/cache-page.ts';
export { debugPages } from './manager/serving/debug-pages.ts';
export type { DebuggedController, DebugPagesDeps } from './manager/serving/debug-pages.ts';
export { byController, CONTROLLER_INDEX, toController, toItself } from './manager/enqueue.ts';
export type { KeySink, ToKeys } from './manager/enqueue.ts';
export type { EndedCall } from './manager/observed-client.ts';
// One pass and no more: controllers are built with `{ ...kit, observe: pass.observe }`, and when
// `pass.run(signal)` has resolved, `pass.hasConverged` tells whether anything is left to do.
export { Pass } from './manager/pass.ts';
export type { PassDeps, PassOptions } from './manager/pass.ts';
export { withSyncBarrier } from './manager/sync-barrier.ts';
export type { FieldPath } from './manager/changed-paths.ts';
export type { HotLoop } from './manager/hot-loop/loop-evidence.ts';
export type { Hold } from './manager/holds.ts';
export { DelegatedAccess } from './manager/serving/delegated-access.ts';
export type {
  DelegatedAccessDeps,
  GuardedRequest,
  RequestGuard,
  Verdict,
} from './manager/serving/delegated-access.ts';
export type { HealthCheck } from './manager/serving/health-probe.ts';
export { HttpServer } from './manager/serving/http-server.ts';
export type {
  HttpServerOptions,
  HttpServerRoutes,
  ServerTls,
} from './manager/serving/http-server.ts';
export { CertificateFiles, selfSigned } from './manager/serving/serving-certificate.ts';
export type {
  CertificateFilesDeps,
  CertificateFilesOptions,
  CertificateSource,
} from './manager/serving/serving-certificate.ts';
export type { Setting, Settings } from './manager/serving/settings.ts';
export { statusPage } from './manager/serving/status-page.ts';
export type {
  InformerStatus,
  ProcessStatus,
  ShownInformer,
  StatusPageDeps,
} from './manager/serving/status-page.ts';
export type { LeaseSighting } from './manager/lease-sightings.ts';
export { Manager } from './manager/manager.ts';
export type { Leadership, ManagerOptions, Stage } from './manager/manager.ts';
export type { Page, Pages } from './manager/serving/page.ts';
export { controllerManager, runControllers } from './manager/run-controllers.ts';
export type {
  ControllerKit,
  ControllerManagerOptions,
  DebugOptions,
  LeaderElectionOptions,
} from './manager/run-controllers.ts';
export { RunHistory } from './manager/history/run-history.ts';
export type {
  CallRecord,
  KeyHistory,
  RunEndRecord,
  RunHistoryOptions,
  RunRecord,
} from './manager/history/run-history.ts';
export { terminationSignal } from './manager/signals.ts';
export { StatusWriter } from './manager/status-writer.ts';
export type { WithStatus } from './manager/status-writer.ts';
export { metricsOf } from './metrics/metrics.ts';
export type { Metrics } from './metrics/metrics.ts';
export { createRegistry, expose } from './metrics/registry.ts';
export type { Exposition, Registry, RegistryOptions } from './metrics/registry.ts';

// Time, logs and life.
export type { BackoffPolicy } from './util/backoff.ts';
export { AbruptStop } from './util/runnable.ts';
export { systemClock } from './util/clock.ts';
export type { Clock } from './util/clock.ts';
export type { HttpHandler, HttpRequest, HttpResponse } from './util/http.ts';
export { silentLogger } from './util/logger.ts';
export type { LogFields, Logger } from './util/logger.ts';
export { runAll } from './util/runnable.ts';
export type { Runnable } from './util/runnable.ts';
export { textLogger } from './util/text-logger.ts';
export type { TextLoggerOptions } from './util/text-logger.ts';
