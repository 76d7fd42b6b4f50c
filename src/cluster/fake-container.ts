import type { Pod } from '../api/builtin.ts';
import type { DeepReadonly } from '../api/object.ts';

/** Simulated program of a container. */
export type Program =
  /** Runs until the Pod is deleted. */
  | { readonly kind: 'server' }
  /** Exits after `runsMs` milliseconds. */
  | {
      readonly kind: 'job';
      readonly runsMs: number;
      readonly exitCode: number;
      readonly log: string;
    };

/** Annotation of a Pod with the exit code of its containers, regardless of their commands. */
export const EXIT_CODE = 'kubelet.crd-controller/exit-code';
/** Annotation with the run time of the containers in seconds, such as `2.5`. */
export const DURATION = 'kubelet.crd-controller/duration';

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];

const SERVER: Program = { kind: 'server' };

/**
 * Returns the simulated program of a container. Supports the commands `echo`, `true`, `false`, `sleep N`
 * and `sh -c 'exit N'`. Other containers, also those without a command, run until the Pod is deleted.
 */
export function programOf(container: Container, annotations: Annotations = {}): Program {
  const words = [...(container.command ?? []), ...(container.args ?? [])];
  const program = interpret(words);
  const exitCode = numberIn(annotations, EXIT_CODE);
  const seconds = numberIn(annotations, DURATION);
  if (exitCode === undefined && seconds === undefined) return program;
  const job = program.kind === 'job' ? program : { runsMs: 0, exitCode: 0, log: '' };
  return {
    kind: 'job',
    runsMs: seconds === undefined ? job.runsMs : seconds * 1000,
    exitCode: exitCode ?? job.exitCode,
    log: job.log,
  };
}

type Annotations = Readonly<Record<string, string>>;

function interpret([command = '', ...args]: readonly string[]): Program {
  const [first = ''] = args;
  switch (command.split('/').at(-1)) {
    case 'true':
      return job({});
    case 'false':
      return job({ exitCode: 1 });
    case 'echo':
      return job({ log: `${args.join(' ')}\n` });
    case 'sleep':
      return /^\d+(\.\d+)?s?$/.test(first)
        ? job({ runsMs: Number.parseFloat(first) * 1000 })
        : SERVER;
    case 'sh':
    case 'bash': {
      const exit = first === '-c' ? /^\s*exit\s+(\d{1,3})\s*;?\s*$/.exec(args[1] ?? '') : null;
      return exit ? job({ exitCode: Number(exit[1]) & 255 }) : SERVER;
    }
    default:
      return SERVER;
  }
}

function job(values: Partial<Extract<Program, { kind: 'job' }>>): Program {
  return { kind: 'job', runsMs: 0, exitCode: 0, log: '', ...values };
}

function numberIn(annotations: Annotations, name: string): number | undefined {
  const text = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  return text !== undefined && /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined;
}

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** State of a container. Times are milliseconds since the start of its Pod. */
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
}

/** Restart backoff, as in kubelets: 10 s to 5 min. */
const INITIAL_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 5 * 60_000;

/** Returns the state of a container `elapsedMs` after the start of its Pod, and when the state changes. */
export function containerStateAt(
  program: Program,
  restartPolicy: RestartPolicy,
  elapsedMs: number,
): { readonly state: ContainerState; readonly changesAtMs: number | undefined } {
  if (program.kind === 'server') {
    return { state: { kind: 'running', sinceMs: 0, restarts: 0 }, changesAtMs: undefined };
  }
  const { runsMs, exitCode } = program;
  const restart = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exitCode !== 0);
  let fromMs = 0;
  let last: Ended | undefined;
  for (let restarts = 0; ; restarts++) {
    const toMs = fromMs + runsMs;
    if (elapsedMs < toMs) {
      const state = { kind: 'running', sinceMs: fromMs, restarts, ...(last && { last }) } as const;
      return { state, changesAtMs: toMs };
    }
    const ended = { exitCode, fromMs, toMs };
    if (!restart) return { state: { kind: 'ended', ended, restarts }, changesAtMs: undefined };
    const untilMs = toMs + Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** restarts);
    if (elapsedMs < untilMs) {
      return { state: { kind: 'backingOff', ended, untilMs, restarts }, changesAtMs: untilMs };
    }
    fromMs = untilMs;
    last = ended;
  }
}

/** Options of a log request. */
export interface LogOptions {
  /** Returns the log of the previous run. */
  readonly previous: boolean;
  /** Prefixes each line with its time. */
  readonly timestamps: boolean;
  /** Omits older lines; milliseconds since the epoch. */
  readonly sinceMs: number | undefined;
  /** Number of lines from the end. */
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
}

/** Returns the run of a container whose log is requested, with its start in milliseconds since the Pod start. */
export function loggedRun(
  state: ContainerState,
  previous: boolean,
): { readonly fromMs: number } | undefined {
  switch (state.kind) {
    case 'running':
      return previous ? state.last : { fromMs: state.sinceMs };
    case 'backingOff':
      return state.ended;
    case 'ended':
      return previous ? undefined : state.ended;
  }
}

/**
 * Returns the log of a program. Programs write their output at the start.
 *
 * @param startedMs start of the run, in milliseconds since the epoch
 */
export function logOutput(program: Program, startedMs: number, options: LogOptions): Uint8Array {
  const { timestamps, sinceMs, tailLines, limitBytes } = options;
  if (program.kind === 'server' || (sinceMs !== undefined && startedMs < sinceMs)) {
    return new Uint8Array();
  }
  const lines = program.log.split(/(?<=\n)/).filter((line) => line !== '');
  const last = lines.slice(lines.length - Math.min(lines.length, tailLines ?? Infinity));
  // Kubelets write nine fractional digits.
  const time = timestamps ? `${new Date(startedMs).toISOString().replace('Z', '000000Z')} ` : '';
  const text = last.map((line) => time + line).join('');
  return new TextEncoder().encode(text).subarray(0, limitBytes);
}
