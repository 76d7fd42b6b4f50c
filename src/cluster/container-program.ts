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
