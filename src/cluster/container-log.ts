import type { ContainerLife } from './container-life.ts';
import type { Program } from './container-program.ts';

/** Which part of a log is wanted. */
export interface LogOptions {
  /** Of the run before the last restart. */
  readonly previous: boolean;
  /** Whether each line begins with its time. */
  readonly timestamps: boolean;
  /** Nothing from before, in milliseconds since the epoch. */
  readonly sinceMs: number | undefined;
  /** How many of the last lines. */
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
}

/** The run of a container whose log is asked for: when it began, in milliseconds since its Pod did. */
export function loggedRun(
  life: ContainerLife,
  previous: boolean,
): { readonly fromMs: number } | undefined {
  switch (life.kind) {
    case 'running':
      return previous ? life.last : { fromMs: life.sinceMs };
    case 'backingOff':
      return life.ended;
    case 'ended':
      return previous ? undefined : life.ended;
  }
}

/**
 * What a run of the program has printed. A program prints all it has to say as it begins.
 *
 * @param printedMs when that was, in milliseconds since the epoch
 */
export function printed(program: Program, printedMs: number, options: LogOptions): Uint8Array {
  const { timestamps, sinceMs, tailLines, limitBytes } = options;
  if (program.kind === 'server' || (sinceMs !== undefined && printedMs < sinceMs)) {
    return new Uint8Array();
  }
  const lines = program.log.split(/(?<=\n)/).filter((line) => line !== '');
  const last = lines.slice(lines.length - Math.min(lines.length, tailLines ?? Infinity));
  // Nine digits, as kubelets write them.
  const time = timestamps ? `${new Date(printedMs).toISOString().replace('Z', '000000Z')} ` : '';
  const text = last.map((line) => time + line).join('');
  return new TextEncoder().encode(text).subarray(0, limitBytes);
}
