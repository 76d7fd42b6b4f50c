import type { Step } from './step.ts';
import { VirtualTime } from './virtual-time.ts';

/** How long a process is frozen, in milliseconds of virtual time. */
const FREEZE_MS = 60_000;

/** How long a delayed step is held, in milliseconds of virtual time. */
const DELAY_MS = 10_000;

/**
 * The pending steps of one schedule, and its time. Without a fault, steps run in the order in which they became possible,
 * and timers fire only if nothing else is possible.
 */
export class Scheduler {
  readonly time: VirtualTime = new VirtualTime();
  #ready: Step[] = [];
  /** Steps that wait until nothing else is ready. */
  #late: Step[] = [];
  /** Number of delayed steps. */
  #delayed = 0;
  /** Owners of requests without a response, until the client gives up. */
  readonly #silent = new Map<object, string>();

  /** Whether steps other than timers are pending. */
  get isBusy(): boolean {
    const pending = this.#ready.length + this.#late.length + this.#delayed + this.#silent.size;
    return pending > 0;
  }

  /** Whether a step can run before the next timer. */
  get isReady(): boolean {
    return [...this.#ready, ...this.#late].some((step) => this.#isRunnable(step));
  }

  /** Returns the next action, if it can run now. */
  get nextAction(): Step | undefined {
    return this.#ready.find(({ owner }) => owner === 'scenario');
  }

  post(step: Step): void {
    this.#ready.push(step);
    step.postedMs = this.time.elapsedMs;
  }

  /** Holds the steps and timers of a participant for a minute. Requests that it has sent still arrive. */
  freeze(owner: string): void {
    this.time.freeze(owner, FREEZE_MS);
  }

  /** Runs the step as the next one of its owner. */
  putBack(step: Step): void {
    step.isPostponed = true;
    this.#ready.unshift(step);
  }

  #isRunnable({ kind, owner }: Step): boolean {
    return kind === 'request' || kind === 'start' || !this.time.isFrozen(owner);
  }

  withdraw(step: Step): void {
    this.#ready = this.#ready.filter((other) => other !== step);
    this.#late = this.#late.filter((other) => other !== step);
  }

  withdrawAllOf(owner: string): void {
    this.#ready = this.#ready.filter((step) => step.owner !== owner);
    this.#late = this.#late.filter((step) => step.owner !== owner);
    for (const [request, sender] of this.#silent)
      if (sender === owner) this.#silent.delete(request);
  }

  /** Waits for a client to give up a request. Returns a function that ends the wait. */
  awaitTimeout(owner: string): () => void {
    const request = {};
    this.#silent.set(request, owner);
    return () => void this.#silent.delete(request);
  }

  /** Takes the next step other than a timer. */
  take(): Step | undefined {
    if (!this.#ready.some((step) => this.#isRunnable(step))) {
      this.#ready.push(...this.#late);
      this.#late = [];
    }
    const index = this.#ready.findIndex((step) => this.#isRunnable(step));
    return index < 0 ? undefined : this.#ready.splice(index, 1)[0];
  }

  /** Runs the step after all others that are ready. */
  postpone(step: Step): void {
    step.isPostponed = true;
    this.#late.push(step);
  }

  /** Runs the step ten seconds later, unless `isAlive` is false then. */
  delay(step: Step, isAlive: () => boolean): void {
    step.isPostponed = true;
    this.#delayed++;
    this.time.after('scheduler', DELAY_MS, () => {
      this.#delayed--;
      if (isAlive()) this.#ready.push(step);
    });
  }

  /** Forgets all steps and timers. */
  reset(elapsedMs: number): void {
    this.time.reset(elapsedMs);
    this.#ready = [];
    this.#late = [];
    this.#delayed = 0;
    this.#silent.clear();
  }
}
