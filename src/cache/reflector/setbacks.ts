import type { KubernetesObject } from '../../api/object.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import type { ProgressClock } from './progress.ts';
import type { Waiting, Working } from './reflector-state.ts';
import { RetryPace } from './retry-pace.ts';
import type { TroubleLog } from './trouble-log.ts';
import { Trouble } from './trouble.ts';

/** A watch that has stood for so long, in milliseconds, shows that the server is back. */
const STANDING_MS = 1000;

export interface SetbacksDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly progress: ProgressClock;
  readonly resource: string;
  /** @default one of its own */
  readonly troubles?: TroubleLog | undefined;
}

/** What follows from the failures of one reflector: how long it waits, and what people are told. */
export class Setbacks {
  readonly #clock: Clock;
  readonly #progress: ProgressClock;
  readonly #pace: RetryPace;
  readonly #trouble: Trouble;

  constructor({ clock, log, random, progress, resource, troubles }: SetbacksDeps) {
    this.#clock = clock;
    this.#progress = progress;
    this.#pace = new RetryPace(clock, random);
    this.#trouble = new Trouble({ clock, log, resource, troubles });
  }

  /** A pause before `next`, after a failure that people should hear of. */
  retry<T extends KubernetesObject>(
    error: unknown,
    action: 'list' | 'watch',
    next: Working<T>,
  ): Waiting<T> {
    const waiting = this.wait(error, next);
    const told = this.#trouble.failed(error, action, waiting.delayMs);
    this.#progress.failed(error, told);
    return waiting;
  }

  /** A pause before `next`, after something that is no failure. */
  wait<T extends KubernetesObject>(error: unknown, next: Working<T>): Waiting<T> {
    const reason = error === undefined ? 'The watch was closed' : messageOf(error);
    return { phase: 'waiting', delayMs: this.#pace.next(error), reason, next };
  }

  /** The server has done what it was asked for: the next pause is a short one again. */
  served(): void {
    this.#pace.succeeded();
  }

  /**
   * A watch stands. That the trouble is over is told when it has stood for a while. The function
   * returned is to be called when it ends.
   */
  watchStands(): () => void {
    this.#pace.succeeded();
    this.#progress.recovered();
    if (!this.#trouble.present) return () => undefined;
    return this.#clock.after(STANDING_MS, () => this.over());
  }

  /** It works again. */
  over(): void {
    this.#trouble.over();
  }

  /** The reflector has stopped. */
  stop(): void {
    this.#trouble.stop();
  }
}
