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
    };

/** @throws {RangeError} if a name is no name, or twice there */
export function checkTasks(tasks: readonly Task[]): void {
  const names = new Set<string>();
  for (const { name } of tasks) {
    if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
      throw new RangeError(`A task is called "${name}": expected lower-case words with dashes`);
    }
    if (names.has(name)) throw new RangeError(`Two tasks are called "${name}"`);
    names.add(name);
  }
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
