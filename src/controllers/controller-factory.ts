import type { InformerSet } from '../cache/informer-set.ts';
import type { InformerScope } from '../cache/list-options.ts';
import type { Controller, ControllerDeps, ControllerMetrics } from '../manager/controller.ts';
import type { AtMetrics } from '../metrics/at-metrics.ts';
import type { EventBroadcaster } from '../record/event-broadcaster.ts';

/** What every controller of the daemon is built from. */
export interface ControllerFactoryDeps extends ControllerDeps {
  readonly informers: InformerSet;
  readonly events: EventBroadcaster;
  /** @default none */
  readonly metrics?: (ControllerMetrics & { readonly at?: AtMetrics | undefined }) | undefined;
}

/** Options of `ControllerFactory`. */
export interface ControllerFactoryOptions {
  /** Unique in the process. */
  readonly name: string;
  /** Where the objects are that the controller is for. */
  readonly selection: Pick<InformerScope, 'namespaces'>;
  readonly concurrency: number;
  /**
   * Whether pod-count tells each new Pod the count.
   * @default false
   */
  readonly podEvents?: boolean;
}

/** Creates a controller from the kit and its options. */
export type ControllerFactory = (
  deps: ControllerFactoryDeps,
  options: ControllerFactoryOptions,
) => Controller;
