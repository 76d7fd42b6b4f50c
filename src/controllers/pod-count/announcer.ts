import type { Pod } from '../../api/builtin.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { TokenBucket } from '../../util/token-bucket.ts';

/** Events per second, and in a burst. */
const RATE = 20;

/** Minimum time between two lines about skipped events, in milliseconds. */
const LINE_MS = 60_000;

/** Dependencies of `Announcer`. */
export interface AnnouncerDeps {
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the number of Pods. */
  readonly count: () => number;
}

/**
 * Records an event with the number of Pods for each new Pod, at most 20 per second. Skipped events are
 * counted in the log. Records nothing before `start`, because standby replicas see the same Pods.
 */
export class Announcer {
  readonly #deps: AnnouncerDeps;
  readonly #bucket: TokenBucket;
  #isRunning = false;
  #skipped = 0;
  #loggedMs = -Infinity;

  constructor(deps: AnnouncerDeps) {
    this.#deps = deps;
    this.#bucket = new TokenBucket(deps.clock, { burst: RATE, intervalMs: 1000 / RATE });
  }

  /** Enables `announce` until `signal` aborts. */
  start(signal: AbortSignal): void {
    this.#isRunning = !signal.aborted;
    signal.addEventListener('abort', () => (this.#isRunning = false), { once: true });
  }

  announce(pod: DeepReadonly<Pod>): void {
    if (!this.#isRunning) return;
    const { recorder, count } = this.#deps;
    if (this.#bucket.tryTake()) {
      recorder.normal(pod, 'SuccessCalculatePod', `pod count is ${count()}`);
    } else {
      this.#skip(pod);
    }
  }

  #skip(pod: DeepReadonly<Pod>): void {
    this.#skipped++;
    const { clock, log } = this.#deps;
    const nowMs = clock.monotonic();
    if (nowMs - this.#loggedMs < LINE_MS) return;
    this.#loggedMs = nowMs;
    log.info('Too many new Pods; skipping events with the count', {
      pod: keyOf(pod),
      limitPerSecond: RATE,
      skipped: this.#skipped,
    });
  }
}
