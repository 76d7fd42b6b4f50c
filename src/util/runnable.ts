/**
 * Something that lives for a while. `run` is the only verb of life: it begins the work, resolves
 * when `signal` aborts and everything it began has ended, and rejects on a fault it cannot handle.
 * Constructors do no work. A Runnable is run once.
 */
export interface Runnable {
  /** What log lines and errors call it. */
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}
