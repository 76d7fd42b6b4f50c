import type { Forecast, SimulatedProgram } from './simulated-program.ts';
import type { ContainerState } from './container-state.ts';

export interface LogOptions {
  /** Returns the log of the previous run. */
  readonly previous: boolean;
  /** Prefixes each line with its time. */
  readonly timestamps: boolean;
  /** Omits older lines; milliseconds since the epoch. */
  readonly sinceMs: number | undefined;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
}

/** Run of a container whose log is requested. Times are milliseconds since its first start. */
export interface LoggedRun {
  readonly fromMs: number;
  /** Undefined while it runs. */
  readonly toMs?: number;
}

export function loggedRun(state: ContainerState, previous: boolean): LoggedRun | undefined {
  switch (state.kind) {
    case 'running':
      return previous ? state.last : { fromMs: state.sinceMs };
    case 'backingOff':
      return state.ended;
    case 'ended':
      return previous ? undefined : state.ended;
  }
}

/** Part of the log of a run. */
export interface LogPart {
  /** Start of the run, in milliseconds since the epoch. */
  readonly startedMs: number;
  /** Excluded; milliseconds since the start of the run. */
  readonly afterMs: number;
  readonly toMs: number;
}

/** Returns what a program writes in a part of its run. */
export function logOutput(
  program: SimulatedProgram,
  part: LogPart,
  options: LogOptions,
): Uint8Array {
  const { timestamps, sinceMs = -Infinity, tailLines = Infinity, limitBytes } = options;
  const lines: { readonly timeMs: number; text: string }[] = [];
  for (const { atMs, text } of program.outputs(part.afterMs, part.toMs)) {
    for (const piece of text.split(/(?<=\n)/)) {
      const open = lines.at(-1);
      if (open && !open.text.endsWith('\n')) open.text += piece;
      else if (piece !== '') lines.push({ timeMs: part.startedMs + atMs, text: piece });
    }
  }
  const recent = lines.filter(({ timeMs }) => timeMs >= sinceMs);
  const last = recent.slice(recent.length - Math.min(recent.length, tailLines));
  const text = last.map(({ timeMs, text }) => {
    if (!timestamps) return text;
    // Kubelets write nine fractional digits.
    return `${new Date(timeMs).toISOString().replace('Z', '000000Z')} ${text}`;
  });
  return new TextEncoder().encode(text.join('')).subarray(0, limitBytes);
}

/** A request for the log of a run. */
interface LogStream {
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** Milliseconds from the first start of the container until now. */
  readonly elapsedMs: number;
  readonly options: LogOptions;
  readonly signal: AbortSignal | undefined;
  /** Undefined if the log until now is requested. */
  readonly follow: LogFollowing | undefined;
}

export interface LogFollowing {
  /** Aborts when the Pod is removed. */
  readonly gone: AbortSignal;
  /** Resolves after `ms`, when the Pod is removed, or when the request is aborted. */
  readonly untilOver: (ms: number) => Promise<void>;
}

/** Returns the log of a run until now, or while it is followed until the run ends. */
export async function* streamLog(
  program: SimulatedProgram,
  { fromMs, toMs }: LoggedRun,
  { nowMs, elapsedMs, options, signal, follow }: LogStream,
): AsyncGenerator<Uint8Array, void, undefined> {
  const startedMs = nowMs - elapsedMs + fromMs;
  let reachedMs = (toMs ?? elapsedMs) - fromMs;
  const bytes = logOutput(program, { startedMs, afterMs: -1, toMs: reachedMs }, options);
  if (bytes.length > 0) yield bytes;
  let leftBytes = (options.limitBytes ?? Infinity) - bytes.length;
  if (!follow) return signal?.throwIfAborted();
  const { gone, untilOver } = follow;
  while (!gone.aborted) {
    const forecast = program.forecast(reachedMs);
    const endMs = forecast.kind === 'ends' ? forecast.atMs : Infinity;
    if (reachedMs >= endMs || leftBytes <= 0) break;
    const nextMs = program.nextOutput(reachedMs) ?? Math.min(endMs, untilOf(forecast));
    await untilOver(nextMs - reachedMs);
    signal?.throwIfAborted();
    if (gone.aborted) break;
    const part = { startedMs, afterMs: reachedMs, toMs: nextMs };
    const all = { ...options, tailLines: undefined };
    const more = logOutput(program, part, all).subarray(0, leftBytes);
    if (more.length > 0) yield more;
    leftBytes -= more.length;
    reachedMs = nextMs;
  }
  signal?.throwIfAborted();
}

function untilOf(forecast: Forecast): number {
  return forecast.kind === 'runs' ? forecast.untilMs : forecast.atMs;
}
