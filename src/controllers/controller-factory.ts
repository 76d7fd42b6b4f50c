import type { Selection } from '../client/client.ts';
import type { InformerSet } from '../cache/informer-set.ts';
import type { Controller, ControllerDeps } from '../manager/controller.ts';
import type { EventBroadcaster } from '../record/event-broadcaster.ts';

/** What every controller of the daemon is built from. */
export interface ControllerFactoryDeps extends ControllerDeps {
  readonly informers: InformerSet;
  readonly events: EventBroadcaster;
}

export interface ControllerFactoryOptions {
  /** Unique in the process: the name of the controller, unless it runs once for each namespace. */
  readonly name: string;
  /** Which objects the controller is for. */
  readonly selection: Pick<Selection, 'namespace'>;
  readonly concurrency: number;
}

export type ControllerFactory = (
  deps: ControllerFactoryDeps,
  options: ControllerFactoryOptions,
) => Controller;
