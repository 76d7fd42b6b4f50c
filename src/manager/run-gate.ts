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
import { reportEnd, reportHotLoop } from './hot-loop/hot-loop-report.ts';
import type { HotLoop } from './hot-loop/written-object.ts';
import type { EndedCall } from './observed-client.ts';
import { PendingWrites } from './read-your-writes.ts';
import type { WrittenInformer } from './read-your-writes.ts';

/**
 * Pace at which a key looks again whether its caches have caught up, with its own writes or with
 * somebody else's. Events wake it earlier.
 */
export const CATCH_UP_PACE: BackoffPolicy = { initialMs: 50, maxMs: 5_000 };

/** Dependencies of `RunGate`. */
export interface RunGateDeps {
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  /** Names the controller. */
  readonly log: Logger;
  /** What a key is called in log lines. */
  readonly keyName: string;
  readonly metrics: PostponeMetrics;
  /** @default only the log is told of hot loops */
  readonly recorder?: EventRecorder | undefined;
}

/**
 * What keeps a key from running though it is its turn: a cache that lags behind what the key's last
 * run wrote, and a hot loop that it is in.
 */
export class RunGate {
  readonly #deps: RunGateDeps;
  readonly #writes: PendingWrites;
  readonly #waits: RateLimiter<ObjectKey> = exponentialLimiter(CATCH_UP_PACE);
  readonly #loops: HotLoopDetector;
  #subjects: WrittenInformer | undefined;

  constructor(deps: RunGateDeps) {
    this.#deps = deps;
    this.#writes = new PendingWrites(deps.clock);
    this.#loops = new HotLoopDetector({
      clock: deps.clock,
      onEnd: (loop, damped) => reportEnd(this.#logOf(loop.key), loop, damped),
    });
  }

  /**
   * Waits for what keys write to the resource that `cache` mirrors.
   *
   * @param areSubjects keys name its objects: they are told of hot loops
   */
  track(cache: WrittenInformer, areSubjects: boolean): void {
    this.#writes.track(cache);
    if (areSubjects) this.#subjects = cache;
  }

  /** A change has been seen that concerns `key`; `enqueue` tells which. */
  saw(
    key: ObjectKey,
    resource: Resource,
    before: DeepReadonly<KubernetesObject> | undefined,
    after: DeepReadonly<KubernetesObject> | undefined,
  ): void {
    this.#loops.saw(key, resource, before, after, resource === this.#subjects?.resource);
  }

  /** A call made by a run of `key` has ended. */
  called(key: ObjectKey, call: EndedCall): void {
    this.#writes.enter(key, call);
    this.#loops.wrote(key, call);
  }

  /** The hot loops that keys are in now. */
  get hotLoops(): HotLoop[] {
    return this.#loops.loops;
  }

  /** How long `key` has to wait, and for what; undefined if it may run. */
  async hold(key: ObjectKey, signal: AbortSignal): Promise<Postponed | undefined> {
    const { metrics } = this.#deps;
    if (!this.#writes.visible(key)) {
      // The write's own event will wake the key; this is the net under it.
      metrics.stale();
      return postpone(this.#waits.when(key), 'a cache lags behind own writes');
    }
    this.#waits.forget(key);
    const verdict = this.#loops.beginRun(key);
    if (verdict.kind === 'run') return undefined;
    metrics.damped();
    if (verdict.kind === 'found') {
      metrics.hotLoop();
      const deps = { ...this.#deps, log: this.#logOf(key) };
      await reportHotLoop(deps, verdict.loop, this.#subjects?.lister.get(key), signal);
    }
    return postpone(verdict.ms, 'in a hot loop');
  }

  /** Gives up all timers. */
  close(): void {
    this.#loops.close();
  }

  #logOf(key: ObjectKey): Logger {
    const { log, keyName } = this.#deps;
    return log.with({ [keyName]: key });
  }
}
