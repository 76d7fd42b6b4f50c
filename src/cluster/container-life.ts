import type { Program } from './container-program.ts';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** Where a container is in its life. Times are milliseconds since its Pod started. */
export type ContainerLife =
  | {
      readonly kind: 'running';
      readonly sinceMs: number;
      readonly restarts: number;
      /** The run before this one; absent in the first. */
      readonly last?: Ended;
    }
  /** It ended, and begins anew at `untilMs`. */
  | {
      readonly kind: 'backingOff';
      readonly ended: Ended;
      readonly untilMs: number;
      readonly restarts: number;
    }
  | { readonly kind: 'ended'; readonly ended: Ended; readonly restarts: number };

export interface Ended {
  readonly exitCode: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Pauses before a restart: 10 s, doubling up to 5 min, as kubelets make them. */
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** Where a container is `elapsedMs` after its Pod started, and when that changes, if it does. */
export function lifeAt(
  program: Program,
  restartPolicy: RestartPolicy,
  elapsedMs: number,
): { readonly life: ContainerLife; readonly changesAtMs: number | undefined } {
  if (program.kind === 'server') {
    return { life: { kind: 'running', sinceMs: 0, restarts: 0 }, changesAtMs: undefined };
  }
  const { runsMs, exitCode } = program;
  const restart = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exitCode !== 0);
  let fromMs = 0;
  let last: Ended | undefined;
  for (let restarts = 0; ; restarts++) {
    const toMs = fromMs + runsMs;
    if (elapsedMs < toMs) {
      const life = { kind: 'running', sinceMs: fromMs, restarts, ...(last && { last }) } as const;
      return { life, changesAtMs: toMs };
    }
    const ended = { exitCode, fromMs, toMs };
    if (!restart) return { life: { kind: 'ended', ended, restarts }, changesAtMs: undefined };
    const untilMs = toMs + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** restarts);
    if (elapsedMs < untilMs) {
      return { life: { kind: 'backingOff', ended, untilMs, restarts }, changesAtMs: untilMs };
    }
    fromMs = untilMs;
    last = ended;
  }
}
