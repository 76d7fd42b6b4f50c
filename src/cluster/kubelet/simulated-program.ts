import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { interpret } from '../shell/shell.ts';
import type { ShellStep } from '../shell/shell-steps.ts';
import { OverBudget, WorkBudget } from '../shell/work-budget.ts';

/** Annotation of a Pod with the exit code of its containers, regardless of their commands. */
const EXIT_CODE = 'kubelet.crd-controller/exit-code';
/** Annotation with the run time of the containers in seconds, such as `2.5`. */
const DURATION_ANNOTATION = 'kubelet.crd-controller/duration';
/** Annotation whose value `false` makes the containers unready, as a failing readiness probe does. */
export const READY = 'kubelet.crd-controller/ready';

/** Annotation whose value `false` restarts the containers, as a failing liveness probe does. */
export const LIVE = 'kubelet.crd-controller/live';

/** Number of steps that are interpreted ahead of time to find the end of a program. */
const LOOKAHEAD_STEPS = 10_000;

const OVER_BUDGET =
  'The simulated kubelet stopped interpreting this command, because it needs too much work. The container runs until it is stopped.\n';

/** Prefix of the annotations that override the simulation of a Pod. */
export const SIMULATION_PREFIX = 'kubelet.crd-controller/';

export type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];

/** Text that a program writes. Times are milliseconds since the start of the run. */
interface Output {
  readonly atMs: number;
  readonly text: string;
}

interface ProgramEnd {
  readonly atMs: number;
  readonly exitCode: number;
  readonly message?: string | undefined;
}

export type Forecast =
  | ({ readonly kind: 'ends' } & ProgramEnd)
  /** It runs at least until `untilMs`; `Infinity` for a server. */
  | { readonly kind: 'runs'; readonly untilMs: number };

/** How a program differs from its command. */
interface ProgramOverride {
  readonly exitCode?: number;
  readonly runsMs?: number;
  /** Whether a command that is not interpreted succeeds at once. */
  readonly servesNothing?: boolean;
}

/**
 * Simulated program of a container. Each run does the same. The program is interpreted as far as its time
 * is asked for, because it may have no end.
 */
export class SimulatedProgram {
  readonly #steps: Iterator<ShellStep, void, undefined>;
  readonly #outputs: Output[] = [];
  readonly #override: ProgramOverride;
  #reachedMs = 0;
  /** Number of steps that were interpreted ahead of the last time that was asked for. */
  #ahead = 0;
  #message: string | undefined;
  #end: ProgramEnd | 'never' | undefined;

  constructor(steps: Iterable<ShellStep, void, undefined>, override: ProgramOverride = {}) {
    this.#steps = steps[Symbol.iterator]();
    this.#override = override;
  }

  /** Interprets the program up to `ms`. Returns when it ends, or a time until which it runs. */
  forecast(ms: number): Forecast {
    const { exitCode, runsMs } = this.#override;
    this.#interpret(runsMs ?? ms);
    const end = this.#end;
    if (runsMs !== undefined) {
      const own = end !== undefined && end !== 'never' ? end : undefined;
      return {
        kind: 'ends',
        atMs: runsMs,
        exitCode: exitCode ?? own?.exitCode ?? 0,
        message: own?.message,
      };
    }
    if (end === undefined) return { kind: 'runs', untilMs: this.#reachedMs };
    if (end !== 'never') return { kind: 'ends', ...end, exitCode: exitCode ?? end.exitCode };
    // The annotation ends a server as soon as it has started.
    return exitCode === undefined
      ? { kind: 'runs', untilMs: Infinity }
      : { kind: 'ends', atMs: this.#reachedMs, exitCode };
  }

  /** Returns the outputs after `fromMs` until `toMs`, which are kept. */
  outputs(fromMs: number, toMs: number): readonly Output[] {
    this.#interpret(toMs);
    return this.#outputs.slice(this.#outputsUntil(fromMs), this.#outputsUntil(toMs));
  }

  /** Returns when the program writes next after `ms`, as far as it is known, or undefined. */
  nextOutput(ms: number): number | undefined {
    this.#interpret(ms);
    return this.#outputs[this.#outputsUntil(ms)]?.atMs;
  }

  /** Returns the number of outputs until `ms`. */
  #outputsUntil(ms: number): number {
    let [low, high] = [0, this.#outputs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#outputs[middle]?.atMs ?? Infinity) <= ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Interprets the program until `ms`, and further to find its end. */
  #interpret(ms: number): void {
    if (this.#reachedMs <= ms) this.#ahead = 0;
    while (this.#end === undefined && this.#ahead < LOOKAHEAD_STEPS) {
      if (this.#reachedMs > ms) this.#ahead++;
      const { value: step } = this.#steps.next();
      switch (step?.kind) {
        case 'output':
        case 'error':
          this.#outputs.push({ atMs: this.#reachedMs, text: step.text });
          break;
        case 'message':
          this.#message = step.text.slice(0, 4096);
          break;
        case 'sleep':
          this.#reachedMs += step.ms;
          break;
        case 'exit':
          this.#end = { atMs: this.#reachedMs, exitCode: step.code, message: this.#message };
          break;
        // Only sessions have input, or output that is not text.
        case 'data':
        case 'read':
        case 'serve':
        case undefined:
          this.#end = this.#override.servesNothing
            ? { atMs: this.#reachedMs, exitCode: 0 }
            : 'never';
          break;
      }
    }
  }
}

/** What a program depends on besides its container. */
export interface ProgramContext {
  readonly annotations?: Annotations | undefined;
  /** @default no variables */
  readonly environment?: ReadonlyMap<string, string> | undefined;
  /** @default one for this container alone */
  readonly budget?: WorkBudget | undefined;
  /** Milliseconds since the epoch. */
  readonly startedMs?: number | undefined;
  /**
   * Whether the container must end before others start.
   * @default false
   */
  readonly isInit?: boolean | undefined;
}

type Annotations = Readonly<Record<string, string>>;

/**
 * Returns the simulated program of a container: its command, as `interpret` describes it. A container
 * without a command runs until the Pod is deleted. Annotations of the Pod override the run time and the
 * exit code.
 */
export function programOf(container: Container, context: ProgramContext = {}): SimulatedProgram {
  const { annotations = {}, environment = new Map<string, string>() } = context;
  const { startedMs = 0, isInit = false, budget = new WorkBudget() } = context;
  const exitCode = numberIn(annotations, EXIT_CODE);
  const seconds = numberIn(annotations, DURATION_ANNOTATION);
  return new SimulatedProgram(stepsOf(container, environment, budget, startedMs), {
    ...(exitCode !== undefined && { exitCode }),
    ...(seconds !== undefined && { runsMs: seconds * 1000 }),
    servesNothing: isInit,
  });
}

/** Returns whether the start of a container's command is interpreted. Otherwise it runs until it is stopped, without output. */
export function isInterpreted(container: Pick<Container, 'command' | 'args'>): boolean {
  const [first] = stepsOf(container, new Map(), new WorkBudget(), 0);
  return first?.kind !== 'serve';
}

/** Interprets the command of a container. One that needs too much work reports it in its log, and runs on. */
function* stepsOf(
  { command = [], args = [] }: Pick<Container, 'command' | 'args'>,
  environment: ReadonlyMap<string, string>,
  budget: WorkBudget,
  startedMs: number,
): Generator<ShellStep, void, undefined> {
  try {
    const argv = [...command, ...args].map((word) => expandReferences(word, environment, budget));
    yield* interpret(argv, environment, budget, () => startedMs);
  } catch (error) {
    if (!(error instanceof OverBudget)) throw error;
    yield { kind: 'output', text: OVER_BUDGET };
    yield { kind: 'serve' };
  }
}

/**
 * Replaces `$(NAME)` of known variables, and `$$` by `$`, as kubelets do in commands and values.
 *
 * @throws {OverBudget} if the result is too long
 */
export function expandReferences(
  text: string,
  environment: ReadonlyMap<string, string>,
  budget: WorkBudget,
): string {
  budget.spend(text.length);
  return text.replace(/\$(\$|\(([^()\s]+)\))/g, (whole, rest: string, name: string) => {
    if (rest === '$') return '$';
    const value = environment.get(name) ?? whole;
    budget.spend(value.length);
    return value;
  });
}

function numberIn(annotations: Annotations, name: string): number | undefined {
  const text = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  return text !== undefined && /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined;
}
