import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import type { Client } from '../client/client.ts';
import { untilAborted } from '../util/abort.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import type { Logger } from '../util/logger.ts';
import { done, postpone, requeueAfter, TerminalError } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { ServiceContext } from './call-service.ts';
import { Controller } from './controller.ts';
import type { ControllerDeps, ControllerOptions } from './controller-options.ts';
import type { KeySink } from './enqueue.ts';
import { predicates } from './predicate.ts';

/** The arguments of a task or timer of one object, besides the object. */
export interface ObjectTaskContext extends ServiceContext {
  /**
   * Aborts when the object is deleted, starts to be deleted or is no longer selected, when this process loses its
   * lease or the shard of the object, and when the program stops. Pass it to every call.
   */
  readonly signal: AbortSignal;
  /** Adds the controller and the key to every line. */
  readonly log: Logger;
  readonly client: Client;
}

/** Options of {@link objectTask}. */
export interface ObjectTaskOptions<T extends KubernetesObject> extends Pick<
  ControllerOptions,
  'name' | 'rateLimiter'
> {
  /**
   * Selects the objects that have a task.
   * @default all objects
   */
  readonly when?: ((object: DeepReadonly<T>) => boolean) | undefined;
  /**
   * The task of one object. It receives the object as it was at the start; a lister has the current one. A task that
   * resolves has completed and is not started again while the object exists and the program runs. One that rejects is
   * started again with backoff; after a `TerminalError` it is not.
   */
  readonly run: (object: DeepReadonly<T>, context: ObjectTaskContext) => Promise<void>;
}

/** Options of {@link objectTimer}. */
export interface ObjectTimerOptions<T extends KubernetesObject>
  extends
    ObjectTaskOptions<T>,
    Pick<ControllerOptions, 'concurrency' | 'syncTimeoutMs' | 'maxRetries'> {
  /** Time from the end of a run to the start of the next one, in milliseconds. */
  readonly intervalMs: number;
  /**
   * Maximum random addition to the interval, as a fraction of it.
   * @default 0.1
   */
  readonly jitter?: number | undefined;
  /** Called with the current object every interval. A run that rejects is repeated with backoff. */
  readonly run: ObjectTaskOptions<T>['run'];
}

const TASK_OPTIONS = { name: true, when: true, run: true, rateLimiter: true } as const;

const TIMER_OPTIONS: OptionNames<ObjectTimerOptions<KubernetesObject>> = {
  ...TASK_OPTIONS,
  intervalMs: true,
  jitter: true,
  concurrency: true,
  syncTimeoutMs: true,
  maxRetries: true,
};

/** Time after which a restarted task counts as healthy, so that its backoff is reset, in milliseconds. */
const HEALTHY_MS = 60_000;

/** Time after which a task that has not stopped is logged, in milliseconds. */
const STOP_MS = 10_000;

/**
 * Returns a controller that calls `run` for each object every `intervalMs`, as kopf's timers. The first call is when
 * the object appears or the program starts. Runs of one object never overlap, and at most `concurrency` run at once.
 *
 * @throws {RangeError} if the interval is not positive
 *
 * @experimental
 */
export function objectTimer<T extends KubernetesObject>(
  kit: ControllerDeps,
  informer: SharedInformer<T>,
  options: ObjectTimerOptions<T>,
): Controller {
  checkOptions(options, TIMER_OPTIONS, 'objectTimer');
  const { intervalMs, jitter = 0.1, run, when, ...rest } = options;
  if (!(intervalMs > 0)) {
    throw new RangeError(`objectTimer: intervalMs must be positive: got ${intervalMs}`);
  }
  const select = selector(informer, when);
  const running = new Map<ObjectKey, { readonly uid: string; readonly stop: AbortController }>();
  const sync = async (key: ObjectKey, context: ObjectTaskContext): Promise<Outcome> => {
    const object = select(key);
    if (!object) return done();
    const stop = new AbortController();
    const abort = () => stop.abort(context.signal.reason);
    if (context.signal.aborted) abort();
    context.signal.addEventListener('abort', abort, { once: true });
    running.set(key, { uid: object.metadata.uid, stop });
    try {
      const { client, log, clock, fetch, onServiceCall } = context;
      await run(object, { client, log, clock, fetch, onServiceCall, signal: stop.signal });
    } catch (error) {
      if (context.signal.aborted || !stop.signal.aborted) throw error;
      // The object is gone: there is nothing to retry.
      context.log.v(2).info('Timer ended with its object', { err: error });
    } finally {
      running.delete(key);
      context.signal.removeEventListener('abort', abort);
    }
    return requeueAfter(intervalMs, 'its timer is due', { jitter });
  };
  const stopUnselected = ({ metadata }: DeepReadonly<T>) => {
    const key = keyOf({ metadata });
    const one = running.get(key);
    if (one && select(key)?.metadata.uid !== one.uid) one.stop.abort(deselected());
  };
  informer.addHandler(
    { onUpdate: (_, object) => stopUnselected(object), onDelete: stopUnselected },
    { name: options.name },
  );
  return taskController(kit, informer, { ...rest, kind: informer.resource.kind, sync }, when);
}

/**
 * Returns a controller that runs one task for each object, from its appearance to its deletion, as kopf's daemons.
 * There are never two tasks of one object: a task that was stopped ends before the next one starts. Failures of tasks
 * are logged and counted as failed syncs of the controller. Tasks stop before a lease is released.
 *
 * @experimental
 */
export function objectTask<T extends KubernetesObject>(
  kit: ControllerDeps,
  informer: SharedInformer<T>,
  options: ObjectTaskOptions<T>,
): Controller {
  checkOptions(options, TASK_OPTIONS, 'objectTask');
  const { run, when, ...rest } = options;
  const tasks = new ObjectTasks(kit, selector(informer, when), run);
  const { kind } = informer.resource;
  return taskController(kit, informer, { ...rest, kind, sync: tasks.sync }, when).source(
    tasks.source,
  );
}

/** The task of one object. */
interface Task {
  readonly uid: string;
  readonly stop: AbortController;
  /** `Clock.monotonic()` */
  readonly startedMs: number;
  /** Resolves when it has ended. */
  ended: Promise<void>;
  state: 'running' | 'completed' | { readonly failure: unknown };
}

/** The tasks of one controller. */
class ObjectTasks<T extends KubernetesObject> {
  readonly #kit: ControllerDeps;
  readonly #select: (key: ObjectKey) => DeepReadonly<T> | undefined;
  readonly #run: ObjectTaskOptions<T>['run'];
  readonly #tasks = new Map<ObjectKey, Task>();
  /** Shards whose tasks are being stopped. */
  readonly #closing = new Set<number>();
  #queue: KeySink | undefined;

  constructor(
    kit: ControllerDeps,
    select: (key: ObjectKey) => DeepReadonly<T> | undefined,
    run: ObjectTaskOptions<T>['run'],
  ) {
    this.#kit = kit;
    this.#select = select;
    this.#run = run;
    const { sharding } = kit;
    sharding?.onShard(async (shard, signal) => {
      this.#closing.delete(shard);
      await untilAborted(signal);
      this.#closing.add(shard);
      await this.#stopAll(signal.reason, (key) => sharding.shardOf(key) === shard);
    });
  }

  /** Starts or stops the task of a key. Throws the error of a task that failed, to retry it with backoff. */
  readonly sync = async (key: ObjectKey, { log }: ObjectTaskContext): Promise<Outcome> => {
    const object = this.#select(key);
    const task = this.#tasks.get(key);
    const isOwn = object !== undefined && object.metadata.uid === task?.uid;
    if (task?.state === 'running') {
      if (!isOwn) {
        this.#stop(key, task, deselected(), log);
        return done();
      }
      const leftMs = task.startedMs + HEALTHY_MS - this.#kit.clock.monotonic();
      return leftMs > 0 ? postpone(leftMs, 'its task has started') : done();
    }
    if (task?.state === 'completed' && isOwn) return done();
    this.#tasks.delete(key);
    if (task && task.state !== 'completed') {
      const { failure } = task.state;
      if (isOwn) {
        if (failure instanceof TerminalError) this.#tasks.set(key, { ...task, state: 'completed' });
        throw failure;
      }
      log.v(2).info('Task of a deleted object had failed', { err: failure });
    }
    if (!object || !this.#queue || this.#isClosing(key)) return done();
    this.#start(key, object, log);
    return postpone(HEALTHY_MS, 'its task has started');
  };

  /** Stops all tasks when `signal` aborts, and resolves when they have ended. */
  readonly source = async (queue: KeySink, signal: AbortSignal): Promise<void> => {
    this.#queue = queue;
    await untilAborted(signal);
    this.#queue = undefined;
    await this.#stopAll(signal.reason, () => true);
  };

  #isClosing(key: ObjectKey): boolean {
    const { sharding } = this.#kit;
    return sharding !== undefined && this.#closing.has(sharding.shardOf(key));
  }

  #start(key: ObjectKey, object: DeepReadonly<T>, log: Logger): void {
    const stop = new AbortController();
    const task: Task = {
      uid: object.metadata.uid,
      stop,
      startedMs: this.#kit.clock.monotonic(),
      ended: Promise.resolve(),
      state: 'running',
    };
    this.#tasks.set(key, task);
    log.v(2).info('Started task');
    task.ended = this.#follow(key, task, object, log);
  }

  async #follow(key: ObjectKey, task: Task, object: DeepReadonly<T>, log: Logger): Promise<void> {
    const { signal } = task.stop;
    const { client, clock, fetch } = this.#kit;
    try {
      await this.#run(object, { signal, log, client, clock, fetch });
      task.state = 'completed';
      log.v(2).info('Task ended', { stopped: signal.aborted });
    } catch (error) {
      task.state = signal.aborted ? 'completed' : { failure: error };
      if (signal.aborted && error !== signal.reason) {
        log.v(2).info('Task ended with an error after it was stopped', { err: error });
      }
    }
    if (signal.aborted) this.#tasks.delete(key);
    this.#queue?.add(key, { cause: 'its task ended' });
  }

  #stop(key: ObjectKey, { stop, ended }: Task, reason: unknown, log: Logger): void {
    if (stop.signal.aborted) return;
    stop.abort(reason);
    const cancel = this.#kit.clock.after(STOP_MS, () =>
      log.error(undefined, 'Task has not stopped; its signal must end it', { key }),
    );
    void ended.then(cancel);
  }

  async #stopAll(reason: unknown, isSelected: (key: ObjectKey) => boolean): Promise<void> {
    const { log } = this.#kit;
    const selected = Array.from(this.#tasks).filter(([key]) => isSelected(key));
    for (const [key, task] of selected) this.#stop(key, task, reason, log);
    await Promise.all(selected.map(([, { ended }]) => ended));
    for (const [key] of selected) this.#tasks.delete(key);
  }
}

function deselected(): Error {
  return new Error('The object was deleted, or is no longer selected');
}

/** Returns the function that returns an object that is selected and not being deleted. */
function selector<T extends KubernetesObject>(
  { lister }: SharedInformer<T>,
  when: (object: DeepReadonly<T>) => boolean = () => true,
): (key: ObjectKey) => DeepReadonly<T> | undefined {
  return (key) => {
    const object = lister.get(key);
    return object && isSelected(object, when) ? object : undefined;
  };
}

function isSelected<T extends KubernetesObject>(
  object: DeepReadonly<T>,
  when: (object: DeepReadonly<T>) => boolean = () => true,
): boolean {
  return object.metadata.deletionTimestamp === undefined && when(object);
}

/** Creates the controller. Changes of an object that do not select or deselect it enqueue nothing. */
function taskController<T extends KubernetesObject>(
  kit: ControllerDeps,
  informer: SharedInformer<T>,
  options: ControllerOptions,
  when: ((object: DeepReadonly<T>) => boolean) | undefined,
): Controller {
  const selection = predicates.changed((object: DeepReadonly<T>) => isSelected(object, when));
  return new Controller(kit, options).for(informer, { predicates: [selection] });
}
