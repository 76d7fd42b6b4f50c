import type { ObjectKey } from '../api/object-key.ts';
import { observedClient } from '../client/observed-client.ts';
import type { Logger } from '../util/logger.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { SyncReport } from '../workqueue/sync-report.ts';
import type { KeyHandler, KeyHandlerContext } from '../workqueue/worker-pool.ts';
import type { ControllerDeps, ControllerObserver, SyncHandler } from './controller-options.ts';

/** Decides whether a key that is due may be synced now. */
export interface SyncGate {
  /**
   * Returns undefined if the key may be synced. Otherwise returns the outcome that ends the sync before it starts:
   * `Postponed` with a reason, or `done()` if this process need not sync the key.
   */
  check(key: ObjectKey, signal: AbortSignal): Outcome | undefined | Promise<Outcome | undefined>;
}

/** Dependencies of `SyncPipeline`. */
export interface SyncPipelineDeps extends Pick<ControllerDeps, 'client' | 'clock' | 'fetch'> {
  readonly handler: SyncHandler;
  /** Asked before each sync, in this order, until one has an outcome. */
  readonly gates: readonly SyncGate[];
  /** Called during and after each sync, in this order. */
  readonly observers: readonly ControllerObserver[];
  /**
   * Returns what the current sync of a key has changed in a hot loop.
   * @default hot loops are not detected
   */
  readonly hotLoopOf?: ((key: ObjectKey) => string | undefined) | undefined;
  /**
   * Returns the function that syncs a key that has passed the gates.
   * @default the sync itself
   */
  readonly tap?: ((sync: KeyHandler<ObjectKey>) => KeyHandler<ObjectKey>) | undefined;
}

/** Passes a key through the gates to the sync handler, and its calls and its result to the observers. */
export class SyncPipeline {
  readonly #deps: SyncPipelineDeps;

  readonly #sync: KeyHandler<ObjectKey>;

  constructor(deps: SyncPipelineDeps) {
    this.#deps = deps;
    const sync: KeyHandler<ObjectKey> = (key, context) => this.#handle(key, context);
    this.#sync = deps.tap?.(sync) ?? sync;
  }

  /** Syncs a key, if no gate has an outcome. */
  async sync(key: ObjectKey, context: KeyHandlerContext): Promise<Outcome> {
    for (const gate of this.#deps.gates) {
      const outcome = await gate.check(key, context.signal);
      if (outcome) return outcome;
    }
    return this.#sync(key, context);
  }

  #handle(key: ObjectKey, context: KeyHandlerContext): Promise<Outcome> {
    const { client, clock, fetch, handler, observers, hotLoopOf } = this.#deps;
    const { signal, log, causes } = context;
    for (const observer of observers) observer.started?.(key, context);
    return handler(key, {
      signal,
      log,
      causes,
      client: observedClient(client, clock, (call) => {
        for (const observer of observers) observer.called?.(key, call);
      }),
      clock,
      fetch,
      onServiceCall: (call) => {
        for (const observer of observers) observer.calledService?.(key, call);
      },
      ensured: new Set(),
      terminating: new Set(),
      hotLoop: () => hotLoopOf?.(key),
    });
  }

  /** Reports a sync that has ended, or that a gate has ended before its start. */
  ended(report: SyncReport<ObjectKey>, log: Logger): void {
    for (const observer of this.#deps.observers) observer.ended?.(report, log);
  }

  /** Reports that no sync follows until the controller runs again. */
  stopped(): void {
    for (const observer of this.#deps.observers) observer.stopped?.();
  }
}
