import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import type { Client } from '../client/client.ts';
import type { FinishedCall } from '../client/observed-client.ts';
import type { PostponeMetrics } from '../metrics/reconcile-metrics.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { postpone } from '../workqueue/outcome.ts';
import type { Postponed } from '../workqueue/outcome.ts';
import type { ControllerObserver } from './controller-options.ts';
import type { WatchObserver } from './controller-watches.ts';
import { HotLoopDetector } from './hot-loop/hot-loop.ts';
import { describeHotLoop, reportHotLoopEnd, reportHotLoop } from './hot-loop/hot-loop-report.ts';
import type { HotLoop } from './hot-loop/written-object.ts';
import type { SyncGate } from './sync-pipeline.ts';

/** Dependencies of `HotLoopGate`. */
export interface HotLoopGateDeps {
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  /** Logger with the name of the controller. */
  readonly log: Logger;
  /** Field name of a key in log lines. */
  readonly keyName: string;
  readonly metrics: Pick<PostponeMetrics, 'hotLoop' | 'damped'>;
  /**
   * Records Warning events for hot loops.
   * @default hot loops are only logged
   */
  readonly recorder?: EventRecorder | undefined;
}

/** Postpones keys in a hot loop, and reports the loop on the object of the reconciled kind. */
export class HotLoopGate implements SyncGate, ControllerObserver, WatchObserver {
  readonly #deps: HotLoopGateDeps;
  readonly #detector: HotLoopDetector;
  #reconciled: SharedInformer | undefined;

  constructor(deps: HotLoopGateDeps) {
    this.#deps = deps;
    this.#detector = new HotLoopDetector({
      clock: deps.clock,
      onEnd: (loop, postponedSyncs) =>
        reportHotLoopEnd(this.#logFor(loop.key), loop, postponedSyncs),
    });
  }

  /** Current hot loops. */
  get hotLoops(): HotLoop[] {
    return this.#detector.loops;
  }

  watched(informer: SharedInformer, isReconciled: boolean): void {
    if (isReconciled) this.#reconciled = informer;
  }

  changed(
    key: ObjectKey,
    resource: Resource,
    before: DeepReadonly<KubernetesObject> | undefined,
    after: DeepReadonly<KubernetesObject> | undefined,
  ): void {
    const isSubject = resource === this.#reconciled?.resource;
    this.#detector.observe(key, resource, before, after, isSubject);
  }

  /** The caches must show the writes of the key. */
  check(key: ObjectKey, signal: AbortSignal): Postponed | undefined | Promise<Postponed> {
    const decision = this.#detector.check(key);
    if (decision.kind === 'sync') return undefined;
    this.#deps.metrics.damped();
    const postponed = postpone(decision.ms, 'in a hot loop');
    if (decision.kind === 'wait') return postponed;
    this.#deps.metrics.hotLoop();
    return this.#report(decision.loop, signal).then(() => postponed);
  }

  /** Returns what the current sync of a key has changed in a hot loop, in a sentence; undefined if nothing. */
  describe(key: ObjectKey): string | undefined {
    const loop = this.#detector.writtenLoop(key);
    return loop && describeHotLoop(loop);
  }

  called(key: ObjectKey, call: FinishedCall): void {
    this.#detector.record(key, call);
  }

  stopped(): void {
    this.#detector.close();
  }

  async #report(loop: HotLoop, signal: AbortSignal): Promise<void> {
    const deps = { ...this.#deps, log: this.#logFor(loop.key) };
    await reportHotLoop(deps, loop, this.#reconciled?.lister.get(loop.key), signal);
  }

  #logFor(key: ObjectKey): Logger {
    const { log, keyName } = this.#deps;
    return log.with({ [keyName]: key });
  }
}
