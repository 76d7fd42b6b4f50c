import type { WebApp } from '../../api/generated/web-app.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Client } from '../../client/client.ts';
import type { Logger } from '../../util/logger.ts';

/** The hooks of a task: three for creation and three for deletion, in this order. */
export const HOOKS = [
  'preCreate',
  'create',
  'postCreate',
  'preDelete',
  'delete',
  'postDelete',
] as const;

/** Name of a hook of a task. */
export type HookName = (typeof HOOKS)[number];

/** Context of a hook: the WebApp and the context of its sync. */
export interface TaskContext {
  readonly webapp: DeepReadonly<WebApp>;
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** The reason why the next hook does not run yet. */
export interface Wait {
  /** Message of the task's condition: `1 of 2 replicas are available`. */
  readonly message: string;
  /**
   * Delay until the next sync, in milliseconds.
   * @default none: an event of the WebApp or its owned objects enqueues the key
   */
  readonly afterMs?: number;
}

/** Resolves with undefined when it is done. */
export type Hook = (context: TaskContext) => Promise<Wait | undefined>;

/**
 * One step of the creation and deletion of a WebApp. Every sync runs all hooks from the first on, so
 * hooks are idempotent: each compares the actual with the desired state.
 */
export interface Task extends Partial<Readonly<Record<HookName, Hook>>> {
  /** Lower-case words with dashes, unique among the tasks of a WebApp: `deployment`. */
  readonly name: string;
}

/** Options of {@link TaskError}. */
export interface TaskErrorOptions {
  /** CamelCase and stable. */
  readonly reason: string;
  readonly cause?: unknown;
  /**
   * Whether a user must change something: sets the condition Stalled.
   * @default false
   */
  readonly stalled?: boolean | undefined;
  /**
   * Whether a retry fails in the same way until an event of the WebApp or its owned objects arrives. The key
   * is not retried before, and the failure is recorded once. Implies `stalled`.
   * @default false
   */
  readonly terminal?: boolean | undefined;
}

/** A failure of a hook with a reason for the condition. Other errors have the reason `Failed`. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  readonly reason: string;
  readonly stalled: boolean;
  readonly terminal: boolean;

  /** @throws {RangeError} if `reason` is not valid for a condition */
  constructor(message: string, options: TaskErrorOptions) {
    const { reason, cause, stalled = false, terminal = false } = options;
    if (!/^[A-Za-z][A-Za-z0-9]{0,254}$/.test(reason)) {
      throw new RangeError(`reason must be a CamelCase word: got "${reason}"`);
    }
    super(message, { cause });
    this.reason = reason;
    this.stalled = stalled || terminal;
    this.terminal = terminal;
  }
}

/** The result of running hooks. */
export type TaskProgress =
  | { readonly kind: 'done' }
  | { readonly kind: 'waiting'; readonly task: string; readonly wait: Wait }
  | {
      readonly kind: 'failed';
      readonly task: string;
      readonly hook: HookName;
      readonly cause: unknown;
    }
  /** No hook ran: the spec is invalid. */
  | { readonly kind: 'invalid'; readonly problem: string };

/** The schema allows 64 conditions, and three are the WebApp's own. */
const MAX_TASKS = 60;

/** @throws {RangeError} if a name is invalid, two tasks have one condition, or there are too many tasks */
export function checkTasks(tasks: readonly Task[]): void {
  if (tasks.length > MAX_TASKS) {
    throw new RangeError(`There are ${tasks.length} tasks: at most ${MAX_TASKS} are allowed`);
  }
  const names = new Map<string, string>();
  for (const task of tasks) {
    const { name } = task;
    if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || name.length > 63) {
      throw new RangeError(
        `The name of a task is "${name}": expected lower-case words with dashes, up to 63 characters`,
      );
    }
    const other = names.get(conditionType(task));
    if (other === name) throw new RangeError(`Two tasks have the name "${name}"`);
    if (other !== undefined) {
      throw new RangeError(`Tasks "${other}" and "${name}" have the same condition`);
    }
    names.set(conditionType(task), name);
  }
}

/** Suffix of the condition types of tasks. */
export const CONDITION_SUFFIX = 'Done';

/** Returns the condition type of a task: `DeploymentDone` of the task `deployment`. */
export function conditionType({ name }: Pick<Task, 'name'>): string {
  const words = name.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}${CONDITION_SUFFIX}`;
}

/** Runs the create hooks of all tasks, in order, up to the first that waits or fails. */
export function runCreateHooks(
  tasks: readonly Task[],
  context: TaskContext,
): Promise<TaskProgress> {
  return run(tasks, ['preCreate', 'create', 'postCreate'], context);
}

/** Runs the delete hooks of all tasks, the last task first, up to the first that waits or fails. */
export function runDeleteHooks(
  tasks: readonly Task[],
  context: TaskContext,
): Promise<TaskProgress> {
  return run(tasks.toReversed(), ['preDelete', 'delete', 'postDelete'], context);
}

async function run(
  tasks: readonly Task[],
  hooks: readonly HookName[],
  context: TaskContext,
): Promise<TaskProgress> {
  for (const task of tasks) {
    for (const hook of hooks) {
      const runHook = task[hook];
      if (!runHook) continue;
      const log = context.log.with({ task: task.name, hook });
      log.v(4).info('Running hook');
      try {
        const wait = await runHook({ ...context, log });
        if (!wait) continue;
        log.v(4).info('Hook is waiting', { reason: wait.message });
        return { kind: 'waiting', task: task.name, wait };
      } catch (cause) {
        // The program is stopping; the task did not fail.
        if (context.signal.aborted) throw cause;
        return { kind: 'failed', task: task.name, hook, cause };
      }
    }
  }
  return { kind: 'done' };
}
