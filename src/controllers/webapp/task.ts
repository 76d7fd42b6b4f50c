import type { WebApp } from '../../api/generated/web-app.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Client } from '../../client/client.ts';
import type { Logger } from '../../util/logger.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const OPTIONS: OptionNames<TaskErrorOptions> = {
  cause: true,
  stalled: true,
  terminal: true,
};

/** The hooks of a task, in the order in which a creation and then a deletion run them. */
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

/** What a hook waits for before the pipeline goes on. */
export interface Wait {
  /** For people: `1 of 2 replicas are available`. */
  readonly message: string;
  /** When to look again, in milliseconds; absent where an event will tell. */
  readonly afterMs?: number;
}

/** Resolves with nothing when it is done. */
export type Hook = (context: TaskContext) => Promise<Wait | undefined>;

/**
 * One step on the way of a WebApp. Hooks run again and again, from the first on, whenever anything
 * changes and after every failure: each compares what is with what should be, and does the rest.
 */
export interface Task extends Partial<Readonly<Record<HookName, Hook>>> {
  /** Lower-case words with dashes, unique in its pipeline: `deployment`. */
  readonly name: string;
}

/** Options of `TaskError`. */
export interface TaskErrorOptions {
  readonly cause?: unknown;
  /**
   * Only somebody's intervention helps.
   * @default false
   */
  readonly stalled?: boolean;
  /**
   * It fails in the same way until an event of the WebApp or its children comes: it is not tried
   * before, and told once.
   * @default false
   */
  readonly terminal?: boolean;
}

/** A failure with a reason for the condition. Any other error has the reason `Failed`. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  readonly reason: string;
  readonly stalled: boolean;
  readonly terminal: boolean;

  /**
   * @param reason CamelCase, stable
   * @throws {RangeError} if `reason` is none that a condition may have
   */
  constructor(reason: string, message: string, options: TaskErrorOptions = {}) {
    checkOptions(options, OPTIONS, 'TaskError');
    const { cause, stalled = false, terminal = false } = options;
    if (!/^[A-Za-z][A-Za-z0-9]{0,254}$/.test(reason)) {
      throw new RangeError(`reason must be a CamelCase word: got "${reason}"`);
    }
    super(message, { cause });
    this.reason = reason;
    this.stalled = stalled || terminal;
    this.terminal = terminal;
  }
}
