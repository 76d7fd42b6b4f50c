/**
 * The parts of `controllerManager`, for programs that connect them in another way.
 *
 * @experimental
 * @module
 */
export type { ExactField, OwnedObjectContext, OwnedObjectOptions } from './manager/owned-object.ts';
export type {
  ControllerDeps,
  ControllerObserver,
  OwnsOptions,
  Source,
  SourceOptions,
  WatchesOptions,
} from './manager/controller-options.ts';
export type { KeySink, MapFunction } from './manager/enqueue.ts';
export { Manager } from './manager/manager.ts';
export type { Leadership, ManagerOptions, Stage } from './manager/manager.ts';
export { SinglePass } from './manager/single-pass.ts';
export type { SinglePassDeps, SinglePassOptions } from './manager/single-pass.ts';
export type { DebugOptions } from './manager/program-pages.ts';
export type {
  ObjectWithStatus,
  ReadinessEvent,
  StatusEvent,
  StatusReport,
  StatusWriterDeps,
} from './manager/status-writer.ts';
export type {
  OpenTelemetryApi,
  OpenTelemetrySpan,
  OpenTelemetryTracer,
} from './util/open-telemetry.ts';
export type { WebhookServing, WebhookServingOptions } from './manager/webhook-serving.ts';
export { withSyncBarrier } from './manager/sync-barrier.ts';
export type { LogFields } from './util/logger.ts';
export { AbruptStop, isAbruptStop } from './util/runnable.ts';
export type { AbruptStopKind } from './util/runnable.ts';
export type { TextLoggerOptions } from './util/text-logger.ts';
export type { ProgramTap } from './manager/program-tap.ts';
