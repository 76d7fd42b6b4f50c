import type { Clock } from '../../util/clock.ts';

export interface WatchListSupportOptions {
  /**
   * False: always list page by page.
   * @default true
   */
  readonly enabled?: boolean;
  /**
   * How long a refusal is remembered, in milliseconds.
   * @default 300_000
   */
  readonly rememberMs?: number;
}

/**
 * Whether one server streams initial state through a watch (WatchList, KEP-3157). Shared by all
 * reflectors of that server: what one has found out by waiting need not be found out by each. A
 * refusal is forgotten after some minutes, since servers are upgraded and proxies replaced.
 */
export class WatchListSupport {
  readonly #clock: Clock;
  readonly #enabled: boolean;
  readonly #rememberMs: number;
  #refusedUntilMs = -Infinity;

  constructor(clock: Clock, options: WatchListSupportOptions = {}) {
    this.#clock = clock;
    this.#enabled = options.enabled ?? true;
    this.#rememberMs = options.rememberMs ?? 5 * 60_000;
  }

  /** True if streaming is worth a try. */
  get usable(): boolean {
    return this.#enabled && this.#clock.monotonic() >= this.#refusedUntilMs;
  }

  /** The server has refused to stream, or did not say where the initial state ends. */
  refused(): void {
    this.#refusedUntilMs = this.#clock.monotonic() + this.#rememberMs;
  }
}
