import type { Pod } from '../api/builtin.ts';
import type { DeepReadonly } from '../api/object.ts';

/** What a container does; nothing is executed. */
export type Program =
  /** Until the Pod is deleted. */
  | { readonly kind: 'server' }
  /** For `runsMs` milliseconds, and then it ends. */
  | {
      readonly kind: 'job';
      readonly runsMs: number;
      readonly exitCode: number;
      readonly log: string;
    };

/** Annotations of a Pod that say what its containers do, whatever their commands. */
export const EXIT_CODE = 'kubelet.crd-controller/exit-code';
/** Seconds, as in `2.5`. */
export const DURATION = 'kubelet.crd-controller/duration';

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];

const SERVER: Program = { kind: 'server' };

/**
 * What a container's command would do: `echo`, `true`, `false`, `sleep N` and `sh -c 'exit N'` are
 * understood, anything else (also a command that the image has) serves until it is stopped.
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

function job({
  runsMs = 0,
  exitCode = 0,
  log = '',
}: {
  runsMs?: number;
  exitCode?: number;
  log?: string;
}): Program {
  return { kind: 'job', runsMs, exitCode, log };
}

function numberIn(annotations: Annotations, name: string): number | undefined {
  const text = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  return text !== undefined && /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined;
}

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
