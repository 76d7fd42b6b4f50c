import type { Pod } from '../../api/builtin.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';

/** Events a second, and at once. */
const RATE = 20;

/** Between two lines about Pods that were not told. */
const LINE_MS = 60_000;

/** Dependencies of `Announcer`. */
export interface AnnouncerDeps {
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  /** How many Pods there are. */
  readonly count: () => number;
}

/**
 * Tells each new Pod the number it has brought the count to, up to twenty Pods a second; those
 * beyond are counted and told of in the log. It is silent until it is switched on: replicas that
 * stand by see the same Pods.
 */
export class Announcer {
  readonly #deps: AnnouncerDeps;
  #isOn = false;
  #tokens = RATE;
  #refilledMs = 0;
  #skipped = 0;
  #toldMs = -Infinity;

  constructor(deps: AnnouncerDeps) {
    this.#deps = deps;
  }

  /** Announces while `signal` has not aborted. */
  on(signal: AbortSignal): void {
    this.#isOn = !signal.aborted;
    this.#refilledMs = this.#deps.clock.monotonic();
    signal.addEventListener('abort', () => (this.#isOn = false), { once: true });
  }

  added(pod: DeepReadonly<Pod>): void {
    if (!this.#isOn) return;
    const { recorder, count } = this.#deps;
    if (this.#take()) recorder.normal(pod, 'SuccessCalculatePod', `pod count is ${count()}`);
    else this.#skip(pod);
  }

  #take(): boolean {
    const nowMs = this.#deps.clock.monotonic();
    this.#tokens = Math.min(RATE, this.#tokens + ((nowMs - this.#refilledMs) * RATE) / 1000);
    this.#refilledMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #skip(pod: DeepReadonly<Pod>): void {
    this.#skipped++;
    const { clock, log } = this.#deps;
    const nowMs = clock.monotonic();
    if (nowMs - this.#toldMs < LINE_MS) return;
    this.#toldMs = nowMs;
    log.info('Too many new Pods to tell each of them the count', {
      pod: keyOf(pod),
      limitPerSecond: RATE,
      skipped: this.#skipped,
    });
  }
}
