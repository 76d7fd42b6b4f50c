import type { Clock } from '../../util/clock.ts';
import type { Kubectl } from './kubectl.ts';
import type { DemoPrinter } from './demo-printer.ts';
import type { Missing, Observer, View } from './observer.ts';
import type { Resource } from '../../api/resource.ts';

/** Dependencies of `ScenarioContext`. */
export interface ScenarioDeps {
  readonly clock: Clock;
  readonly kubectl: Kubectl;
  readonly printer: DemoPrinter;
  readonly observer: Observer;
  /** Returns the number of the server's last write. */
  readonly revision: () => number;
}

/** Thrown after a failed check of the demo, which has been printed. */
export class DemoCheckError extends Error {
  override readonly name = 'DemoCheckError';
}

/** Maximum time to wait for a state, in milliseconds. */
const PATIENCE_MS = 10_000;

/** Time between two reads from the server, in milliseconds. */
const GLANCE_MS = 50;

/** Time without writes that proves a steady state, in milliseconds. */
const QUIET_MS = 500;

/**
 * Gives a scenario the actions of a user, and checks that wait for a state in the watches and then verify it
 * on the server.
 */
export class ScenarioContext {
  readonly clock: Clock;
  readonly kubectl: Kubectl;
  readonly observer: Observer;
  readonly #deps: ScenarioDeps;
  readonly #signal: AbortSignal;

  constructor(deps: ScenarioDeps, signal: AbortSignal) {
    this.clock = deps.clock;
    this.kubectl = deps.kubectl;
    this.observer = deps.observer;
    this.#deps = deps;
    this.#signal = signal;
  }

  heading(text: string): void {
    this.#deps.printer.heading(text);
  }

  /** Waits until `missing` returns undefined, or until the time is over. Checks nothing. */
  async waitFor(missing: Missing): Promise<void> {
    const deadline = this.#deps.clock.monotonic() + PATIENCE_MS;
    await this.observer.until(missing, deadline, this.#signal);
  }

  /**
   * Waits until `missing` returns undefined for the watched objects and for a list from the server, and
   * prints the check. Watches can lag behind the server, so both are read.
   *
   * @returns the objects on the server
   * @throws {DemoCheckError} if the state is not reached in time
   */
  async checkEventually(check: string, missing: Missing): Promise<View> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const late = await this.observer.until(missing, deadline, this.#signal);
      const view = await this.observer.snapshot(this.#signal);
      const reason = late ?? missing(view);
      if (reason === undefined || clock.monotonic() >= deadline) {
        this.check(check, reason);
        return view;
      }
      await clock.sleep(GLANCE_MS, this.#signal);
    }
  }

  /**
   * Prints a check.
   *
   * @param reason why it failed; undefined if it passed
   * @throws {DemoCheckError} if it failed
   */
  check(check: string, reason: string | undefined): void {
    if (!this.#deps.printer.check(check, reason)) throw new DemoCheckError(check);
  }

  /** Checks that nothing is written any more. */
  async checkSteadyState(): Promise<void> {
    const { clock, revision } = this.#deps;
    const before = revision();
    await clock.sleep(QUIET_MS, this.#signal);
    this.#signal.throwIfAborted();
    const writes = revision() - before;
    this.check(
      `No client writes for ${QUIET_MS} ms`,
      writes === 0 ? undefined : `${writes} writes`,
    );
  }
}

/** Part of the demo for one controller. It leaves no objects in its namespace. */
export interface Scenario {
  /** Name of the controller, as in `--controllers`. */
  readonly name: string;
  /** Kinds that must be installed for it. */
  readonly kinds: readonly Resource[];
  /** Folder of its sample, which is also applied for the user at the end. */
  readonly sample: string;
  /**
   * Errors that the program is expected to log.
   * @default none
   */
  readonly expectedErrors?: RegExp;
  /** @throws {DemoCheckError} at the first failed check */
  readonly run: (context: ScenarioContext) => Promise<void>;
}
