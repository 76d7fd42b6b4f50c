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

/**
 * Runs every task under one signal and waits until all have ended. The first task to reject aborts
 * the others, and its reason is what `runAll` rejects with; what the others reject with afterwards
 * is a consequence and is dropped. A task that resolves early leaves its siblings alone.
 */
export async function runAll(
  tasks: Iterable<(signal: AbortSignal) => Promise<void>>,
  signal: AbortSignal,
): Promise<void> {
  const siblings = new AbortController();
  const abort = () => siblings.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  let fault: { readonly cause: unknown } | undefined;
  try {
    await Promise.all(
      Array.from(tasks, async (task) => {
        try {
          await task(siblings.signal);
        } catch (cause) {
          fault ??= { cause };
          siblings.abort(cause);
        }
      }),
    );
  } finally {
    signal.removeEventListener('abort', abort);
  }
  if (fault) throw fault.cause;
}

/**
 * A reason to stop that leaves nothing to finish: whoever is aborted with it drops what it does, and
 * nobody waits for it longer than that takes.
 */
export class AbruptStop extends Error {
  override readonly name: string = 'AbruptStop';
}
