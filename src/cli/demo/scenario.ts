import type { Clock } from '../../util/clock.ts';
import type { Kubectl } from './kubectl.ts';
import type { DemoPrinter } from './demo-printer.ts';
import type { Observer } from './observer.ts';
import type { Missing, View } from './view.ts';
import type { Resource } from '../../api/resource.ts';

/** Dependencies of `ScenarioContext`. */
export interface ScenarioDeps {
  readonly clock: Clock;
  readonly kubectl: Kubectl;
  readonly printer: DemoPrinter;
  readonly observer: Observer;
  /** Number of the server's last write. */
  readonly revision: () => number;
}

/** Something that was claimed is not so. It has been told. */
export class DemoCheckError extends Error {
  override readonly name = 'DemoCheckError';
}

/** Waits for a state of things this long, in milliseconds. */
const PATIENCE_MS = 10_000;

/** Between two questions to the server, in milliseconds. */
const GLANCE_MS = 50;

/** For so long nothing may be written once there is nothing left to do, in milliseconds. */
const QUIET_MS = 500;

/**
 * What the scenarios have in common: to do what a user would do, to wait until the observer shows the
 * outcome, and then to ask the server itself whether it is so.
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

  /** Waits for what is to be shown next, as long as patience lasts; checks nothing. */
  async waitFor(missing: Missing): Promise<void> {
    const deadline = this.#deps.clock.monotonic() + PATIENCE_MS;
    await this.observer.until(missing, deadline, this.#signal);
  }

  /**
   * Waits until nothing is missing any more on the observer, nor in what the server answers then, and
   * checks it. The observer may lag behind, so the server may have something else yet.
   *
   * @returns what the server has
   * @throws {DemoCheckError}
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
   * @param reason why it is not so; undefined if it is
   * @throws {DemoCheckError}
   */
  check(check: string, reason: string | undefined): void {
    if (!this.#deps.printer.check(check, reason)) throw new DemoCheckError(check);
  }

  /** Claims that there is nothing left to do. */
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

/** What is shown of one controller. It leaves nothing behind in its namespace. */
export interface Scenario {
  /** The controller that it shows, as `--controllers` calls it. */
  readonly name: string;
  /** Kinds that have to be installed for it. */
  readonly kinds: readonly Resource[];
  /** Folder with what it begins with, and what is left to the user afterwards. */
  readonly sample: string;
  /**
   * Errors that the daemon is to log, as it should.
   * @default none
   */
  readonly expectedErrors?: RegExp;
  /** @throws {DemoCheckError} at the first check that is not so: what comes after builds on it */
  readonly run: (context: ScenarioContext) => Promise<void>;
}
