/**
 * A component with a lifecycle. `run` is its only lifecycle method: it starts the work, resolves when
 * `signal` aborts and all work has ended, and rejects on an error that it cannot handle. Constructors
 * do no work. `run` is called once.
 */
export interface Runnable {
  /** The name in log lines and errors. */
  readonly name: string;
  /** Runs until `signal` aborts. Resolves after a clean stop; rejects on an error that it cannot handle. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Runs all tasks with one signal and waits until they have ended. The first task that rejects aborts
 * the others, and `runAll` rejects with its reason. Later rejections are consequences and are dropped.
 * A task that resolves early does not affect the others.
 */
export async function runAll(
  tasks: Iterable<(signal: AbortSignal) => Promise<void>>,
  signal: AbortSignal,
): Promise<void> {
  const group = new AbortController();
  const abort = () => group.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  let failure: { readonly cause: unknown } | undefined;
  try {
    await Promise.all(
      Array.from(tasks, async (task) => {
        try {
          await task(group.signal);
        } catch (cause) {
          failure ??= { cause };
          group.abort(cause);
        }
      }),
    );
  } finally {
    signal.removeEventListener('abort', abort);
  }
  if (failure) throw failure.cause;
}

/**
 * Why work is dropped:
 *
 * - `leadershipLost`: another process leads, or may lead.
 * - `stopTimeout`: work did not end in time after a stop.
 */
export type AbruptStopKind = 'leadershipLost' | 'stopTimeout';

/** An abort reason that demands an immediate stop: components drop their work instead of finishing it. */
export class AbruptStop extends Error {
  override readonly name = 'AbruptStop';
  readonly kind: AbruptStopKind;

  constructor(kind: AbruptStopKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Reports whether `error` is an AbruptStop of one of `kinds`, or of any kind if none is given. */
export function isAbruptStop(
  error: unknown,
  ...kinds: readonly AbruptStopKind[]
): error is AbruptStop {
  return error instanceof AbruptStop && (kinds.length === 0 || kinds.includes(error.kind));
}
