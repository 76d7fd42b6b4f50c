/**
 * Reports the successful requests to one server to components that wait for its return. All clients of the server
 * share it, also those with other connections.
 *
 * @experimental
 */
export class ServerReachability {
  readonly #waiting = new Set<() => void>();

  /** Records a successful response. */
  answered(): void {
    for (const callback of this.#waiting) callback();
  }

  /** Calls `callback` at each successful response. Returns a function that unsubscribes. */
  onAnswer(callback: () => void): () => void {
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }
}
