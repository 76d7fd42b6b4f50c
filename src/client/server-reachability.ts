/**
 * Longest absence of a server, in milliseconds, during which etcd cannot have been restored. A restore
 * takes the start of etcd and of an API server.
 */
export const SHORT_ABSENCE_MS = 2000;

/**
 * Reports the successful requests to one server to components that wait for its return, and its last long absence. All
 * clients of the server share it, also those with other connections.
 *
 * @experimental
 */
export class ServerReachability {
  readonly #waiting = new Set<() => void>();
  /** `Clock.monotonic()` of the first failed request since the last successful one. */
  #absentSinceMs: number | undefined;
  #returnedMs = -Infinity;

  /** `Clock.monotonic()` of the first response after an absence of at least 2 s; -Infinity if there was none. */
  get returnedMs(): number {
    return this.#returnedMs;
  }

  /**
   * Records a successful response.
   *
   * @param nowMs `Clock.monotonic()`
   */
  answered(nowMs: number): void {
    const absentSinceMs = this.#absentSinceMs ?? nowMs;
    this.#absentSinceMs = undefined;
    if (nowMs - absentSinceMs >= SHORT_ABSENCE_MS) this.#returnedMs = nowMs;
    for (const callback of this.#waiting) callback();
  }

  /**
   * Records a request without a response, or with a status of 500 or more.
   *
   * @param nowMs `Clock.monotonic()`
   */
  failed(nowMs: number): void {
    this.#absentSinceMs ??= nowMs;
  }

  /** Calls `callback` at each successful response. Returns a function that unsubscribes. */
  onAnswer(callback: () => void): () => void {
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }
}
