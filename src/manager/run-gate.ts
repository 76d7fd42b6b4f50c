import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { PostponeMetrics } from '../metrics/reconcile-metrics.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { postpone } from '../workqueue/outcome.ts';
import type { Postponed } from '../workqueue/outcome.ts';
import { exponentialLimiter } from '../workqueue/rate-limiter.ts';
import type { RateLimiter } from '../workqueue/rate-limiter.ts';
import { HotLoopDetector } from './hot-loop/hot-loop.ts';
import { reportHotLoopEnd, reportHotLoop } from './hot-loop/hot-loop-report.ts';
import type { HotLoop } from './hot-loop/written-object.ts';
import type { FinishedCall } from '../client/observed-client.ts';
import { PendingWrites } from './read-your-writes.ts';
import type { WrittenInformer } from './read-your-writes.ts';

/**
 * Backoff of a key that waits for a cache to catch up. Events of the cache usually enqueue the key
 * earlier.
 */
export const CATCH_UP_BACKOFF: BackoffPolicy = { initialMs: 50, maxMs: 5_000 };

/** Dependencies of `RunGate`. */
export interface RunGateDeps {
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  /** Logger with the name of the controller. */
  readonly log: Logger;
  /** Field name of a key in log lines. */
  readonly keyName: string;
  readonly metrics: PostponeMetrics;
  /**
   * Records Warning events for hot loops.
   * @default hot loops are only logged
   */
  readonly recorder?: EventRecorder | undefined;
}

/**
 * Decides whether a key may be synced now. Postpones a key while a cache does not show the writes of
 * the key's last sync, and while the key is in a hot loop.
 */
export class RunGate {
  readonly #deps: RunGateDeps;
  readonly #writes: PendingWrites;
  readonly #backoff: RateLimiter<ObjectKey> = exponentialLimiter(CATCH_UP_BACKOFF);
  readonly #hotLoops: HotLoopDetector;
  #subjects: WrittenInformer | undefined;

  constructor(deps: RunGateDeps) {
    this.#deps = deps;
    this.#writes = new PendingWrites(deps.clock);
    this.#hotLoops = new HotLoopDetector({
      clock: deps.clock,
      onEnd: (loop, postponedSyncs) =>
        reportHotLoopEnd(this.#logFor(loop.key), loop, postponedSyncs),
    });
  }

  /**
   * Tracks the writes of keys to the resource of `cache`.
   *
   * @param areSubjects whether the keys are names of its objects; hot loops are then reported on them
   */
  track(cache: WrittenInformer, areSubjects: boolean): void {
    this.#writes.track(cache);
    if (areSubjects) this.#subjects = cache;
  }

  /** Records a change for which `enqueue` adds `key`. */
  observe(
    key: ObjectKey,
    resource: Resource,
    before: DeepReadonly<KubernetesObject> | undefined,
    after: DeepReadonly<KubernetesObject> | undefined,
  ): void {
    this.#hotLoops.observe(key, resource, before, after, resource === this.#subjects?.resource);
  }

  /** Records a finished API call of a sync of `key`. */
  called(key: ObjectKey, call: FinishedCall): void {
    this.#writes.record(key, call);
    this.#hotLoops.record(key, call);
  }

  /** Current hot loops. */
  get hotLoops(): HotLoop[] {
    return this.#hotLoops.loops;
  }

  /** Returns how long `key` must wait and why, or undefined if it may be synced. */
  async check(key: ObjectKey, signal: AbortSignal): Promise<Postponed | undefined> {
    const { metrics } = this.#deps;
    if (!this.#writes.areVisible(key)) {
      // The event of the write usually enqueues the key earlier; this is the fallback requeue.
      metrics.stale();
      return postpone(this.#backoff.when(key), 'waiting for a cache to show own writes');
    }
    this.#backoff.forget(key);
    const decision = this.#hotLoops.check(key);
    if (decision.kind === 'sync') return undefined;
    metrics.damped();
    if (decision.kind === 'found') {
      metrics.hotLoop();
      const deps = { ...this.#deps, log: this.#logFor(key) };
      await reportHotLoop(deps, decision.loop, this.#subjects?.lister.get(key), signal);
    }
    return postpone(decision.ms, 'in a hot loop');
  }

  /** Cancels all timers. */
  close(): void {
    this.#hotLoops.close();
  }

  #logFor(key: ObjectKey): Logger {
    const { log, keyName } = this.#deps;
    return log.with({ [keyName]: key });
  }
}
