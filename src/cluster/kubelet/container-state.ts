import type { SimulatedProgram } from './simulated-program.ts';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** State of a container. Times are milliseconds since its first start. */
export type ContainerState =
  | {
      readonly kind: 'running';
      readonly sinceMs: number;
      readonly restarts: number;
      /** Previous run; absent in the first run. */
      readonly last?: Ended;
    }
  /** The container has exited and restarts at `untilMs`. */
  | {
      readonly kind: 'backingOff';
      readonly ended: Ended;
      readonly untilMs: number;
      readonly restarts: number;
    }
  | { readonly kind: 'ended'; readonly ended: Ended; readonly restarts: number };

/** Completed run of a container. */
export interface Ended {
  readonly exitCode: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** Termination message. */
  readonly message?: string | undefined;
  /** Whether it was ended because it was not live. */
  readonly isKilled?: boolean;
}

/** Restart backoff, as in kubelets: 10 s to 5 min. */
const INITIAL_BACKOFF_MS = 10_000;

const MAX_BACKOFF_MS = 5 * 60_000;

/** Exit code of a container that is killed. */
const KILLED = 137;

/**
 * Returns the state of a container `elapsedMs` after its first start, and when the state changes.
 *
 * @param killedAt returns when a run that starts at `fromMs` is killed
 */
export function containerStateAt(
  program: SimulatedProgram,
  restartPolicy: RestartPolicy,
  elapsedMs: number,
  killedAt: (fromMs: number) => number = () => Infinity,
): { readonly state: ContainerState; readonly changesAtMs: number | undefined } {
  let fromMs = 0;
  let last: Ended | undefined;
  for (let restarts = 0; ; restarts++) {
    const forecast = program.forecast(elapsedMs - fromMs);
    const ownMs = fromMs + (forecast.kind === 'ends' ? forecast.atMs : forecast.untilMs);
    const toMs = Math.min(ownMs, killedAt(fromMs));
    const isKilled = toMs < ownMs;
    if ((forecast.kind === 'runs' && !isKilled) || elapsedMs < toMs) {
      const state = { kind: 'running', sinceMs: fromMs, restarts, ...(last && { last }) } as const;
      return { state, changesAtMs: toMs === Infinity ? undefined : toMs };
    }
    const { exitCode, message } =
      isKilled || forecast.kind === 'runs' ? { exitCode: KILLED, message: undefined } : forecast;
    const ended = {
      exitCode,
      fromMs,
      toMs,
      ...(message !== undefined && { message }),
      ...(isKilled && { isKilled }),
    };
    const restart = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exitCode !== 0);
    if (!restart) return { state: { kind: 'ended', ended, restarts }, changesAtMs: undefined };
    const untilMs = toMs + restartBackoffMs(restarts);
    if (elapsedMs < untilMs) {
      return { state: { kind: 'backingOff', ended, untilMs, restarts }, changesAtMs: untilMs };
    }
    fromMs = untilMs;
    last = ended;
  }
}

/** Returns the restart backoff after a number of restarts, in milliseconds. */
export function restartBackoffMs(restarts: number): number {
  return Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** restarts);
}
