import type { HookName, Task, TaskContext, Wait } from './task.ts';

/** How far a pipeline came. */
export type Progress =
  | { readonly kind: 'done' }
  | { readonly kind: 'waiting'; readonly task: string; readonly wait: Wait }
  | {
      readonly kind: 'failed';
      readonly task: string;
      readonly hook: HookName;
      readonly cause: unknown;
    }
  /** It did not begin: the WebApp cannot be set up. */
  | { readonly kind: 'refused'; readonly problem: string };

/** A status has room for 64 conditions; three are the WebApp's own. */
const MOST_TASKS = 60;

/** @throws {RangeError} if a name is no name, or as good as twice there, or there are too many */
export function checkTasks(tasks: readonly Task[]): void {
  if (tasks.length > MOST_TASKS) {
    throw new RangeError(`There are ${tasks.length} tasks: at most ${MOST_TASKS} are possible`);
  }
  const names = new Map<string, string>();
  for (const task of tasks) {
    const { name } = task;
    if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || name.length > 63) {
      throw new RangeError(
        `A task is called "${name}": expected lower-case words with dashes, up to 63 characters`,
      );
    }
    const other = names.get(conditionType(task));
    if (other === name) throw new RangeError(`Two tasks are called "${name}"`);
    if (other !== undefined) {
      throw new RangeError(`Tasks "${other}" and "${name}" have the same condition`);
    }
    names.set(conditionType(task), name);
  }
}

/** What the types of the conditions of tasks end in. */
export const CONDITION_SUFFIX = 'Done';

/** `DeploymentDone` of the task `deployment`. */
export function conditionType({ name }: Pick<Task, 'name'>): string {
  const words = name.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}${CONDITION_SUFFIX}`;
}

/** Runs the creating hooks of all tasks, in order, up to the first that waits or fails. */
export function setUp(tasks: readonly Task[], context: TaskContext): Promise<Progress> {
  return run(tasks, ['preCreate', 'create', 'postCreate'], context);
}

/** Runs the deleting hooks of all tasks, the last task first, up to the first that waits or fails. */
export function takeDown(tasks: readonly Task[], context: TaskContext): Promise<Progress> {
  return run(tasks.toReversed(), ['preDelete', 'delete', 'postDelete'], context);
}

async function run(
  tasks: readonly Task[],
  hooks: readonly HookName[],
  context: TaskContext,
): Promise<Progress> {
  for (const task of tasks) {
    for (const hook of hooks) {
      const step = task[hook];
      if (!step) continue;
      const log = context.log.with({ task: task.name, hook });
      log.v(4).info('Running a step');
      try {
        const wait = await step({ ...context, log });
        if (!wait) continue;
        log.v(4).info('Waiting', { for: wait.message });
        return { kind: 'waiting', task: task.name, wait };
      } catch (cause) {
        // We are stopping; the task is not to blame.
        if (context.signal.aborted) throw cause;
        return { kind: 'failed', task: task.name, hook, cause };
      }
    }
  }
  return { kind: 'done' };
}
