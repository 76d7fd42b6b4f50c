import type { Clock } from '../../util/clock.ts';
import type { Kubectl } from './kubectl.ts';
import type { Narrator } from './narrator.ts';
import type { Stage } from './stage.ts';
import type { Missing, View } from './view.ts';

/** Dependencies of `Act`. */
export interface ActDeps {
  readonly clock: Clock;
  readonly kubectl: Kubectl;
  readonly narrator: Narrator;
  readonly stage: Stage;
  /** Number of the server's last write. */
  readonly revision: () => number;
}

/** Something that was claimed is not so. It has been told. */
export class NotSo extends Error {
  override readonly name = 'NotSo';
}

/** Waits for a state of things this long, in milliseconds. */
const PATIENCE_MS = 10_000;

/** Between two questions to the server, in milliseconds. */
const GLANCE_MS = 50;

/** For so long nothing may be written once there is nothing left to do, in milliseconds. */
const QUIET_MS = 500;

/**
 * What the scenes have in common: to do what a user would do, to wait until the stage shows the
 * outcome, and then to ask the server itself whether it is so.
 */
export class Act {
  readonly clock: Clock;
  readonly kubectl: Kubectl;
  readonly stage: Stage;
  readonly #deps: ActDeps;
  readonly #signal: AbortSignal;

  constructor(deps: ActDeps, signal: AbortSignal) {
    this.clock = deps.clock;
    this.kubectl = deps.kubectl;
    this.stage = deps.stage;
    this.#deps = deps;
    this.#signal = signal;
  }

  heading(text: string): void {
    this.#deps.narrator.heading(text);
  }

  /** Waits for what is to be shown next, as long as patience lasts; claims nothing. */
  async sight(missing: Missing): Promise<void> {
    const deadline = this.#deps.clock.monotonic() + PATIENCE_MS;
    await this.stage.until(missing, deadline, this.#signal);
  }

  /**
   * Waits until nothing is missing any more on the stage, nor in what the server answers then, and
   * claims it. The stage may lag behind, so the server may have something else yet.
   *
   * @returns what the server has
   * @throws {NotSo}
   */
  async reached(claim: string, missing: Missing): Promise<View> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const late = await this.stage.until(missing, deadline, this.#signal);
      const view = await this.stage.snapshot(this.#signal);
      const reason = late ?? missing(view);
      if (reason === undefined || clock.monotonic() >= deadline) {
        this.claim(claim, reason);
        return view;
      }
      await clock.sleep(GLANCE_MS, this.#signal);
    }
  }

  /**
   * @param reason why it is not so; undefined if it is
   * @throws {NotSo}
   */
  claim(claim: string, reason: string | undefined): void {
    if (!this.#deps.narrator.verdict(claim, reason)) throw new NotSo(claim);
  }

  /** Claims that there is nothing left to do. */
  async rest(): Promise<void> {
    const { clock, revision } = this.#deps;
    const before = revision();
    await clock.sleep(QUIET_MS, this.#signal);
    this.#signal.throwIfAborted();
    const writes = revision() - before;
    this.claim(
      `No client writes for ${QUIET_MS} ms`,
      writes === 0 ? undefined : `${writes} writes`,
    );
  }
}
