import { isApiError } from '../api/api-error.ts';
import type { ApiErrorKind } from '../api/api-error.ts';
import { equalJson } from '../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { READINESS_CONDITIONS } from '../api/readiness.ts';
import type { Readiness } from '../api/readiness.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { LruMap } from '../util/lru-map.ts';
import { messageOf } from '../util/values.ts';
import { TimeoutError, withinTimeout } from '../util/within-timeout.ts';
import { done, SyncError, TerminalError } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { Controller } from './controller.ts';
import type { ControllerKit } from './controller-kit.ts';
import type { ControllerOptions, SyncContext, WatchesOptions } from './controller-options.ts';
import { Finalizer } from './finalizer.ts';
import type { Predicate } from './predicate.ts';
import { StatusWriter } from './status-writer.ts';
import type {
  OtherFields,
  ReadinessReport,
  StatusReport,
  StatusWithReadiness,
} from './status-writer.ts';

/** An object whose status has the fields `conditions` and `observedGeneration`. */
export type ObjectWithReadiness = KubernetesObject & { status?: StatusWithReadiness };

/** The result of `reconcile`: the readiness of the object, with what else is reported about it. */
export type Reconciled<T extends ObjectWithReadiness> = Readiness &
  Pick<ReadinessReport<T>, 'status' | 'conditions' | 'event' | 'error'> & {
    /**
     * The outcome of the sync, if there is no error.
     * @default done()
     */
    readonly outcome?: Outcome | undefined;
  };

/** The context of `reconcile` and `cleanUp`. */
export interface ReconcileContext<T extends ObjectWithReadiness> extends SyncContext {
  /**
   * Fields of the status that are written even if the function then throws: set one after a step that must not be
   * forgotten. `status` of the result takes precedence.
   */
  readonly status: object & OtherFields<T>;
}

/** Options of {@link objectController}. */
export interface ObjectControllerOptions<T extends ObjectWithReadiness>
  extends Omit<ControllerOptions, 'kind' | 'sync'>, WatchesOptions<T> {
  /**
   * Reconciles an object that is not being deleted. Must be idempotent. Returns its readiness, which is reported as by
   * `StatusWriter.report`; or only an outcome, to report nothing. If it throws, the object is not ready: stalled after a
   * `TerminalError`, and otherwise retried with backoff. The reason is that of the {@link SyncError} or `TerminalError`,
   * `Timeout` after `syncTimeoutMs`, or `SyncFailed`. While an object that `OwnedObjects` should write is being deleted, or
   * belongs to a deleted owner of the same name, a ready object is reported as reconciling, with the reason `ObjectsTerminating`;
   * while another client changes an object after each sync, with the reason `HotLoop`.
   *
   * An update of nothing but `observedGeneration` and the conditions of the readiness does not start a sync: it is the
   * report of the last one, and would precede its backoff. The same applies to the fields of `context.status` after an
   * error.
   */
  readonly reconcile: (
    object: DeepReadonly<T>,
    context: ReconcileContext<T>,
  ) => Promise<Reconciled<T> | Outcome>;
  /**
   * Name of the finalizer that objects have until `cleanUp` has removed everything, as in `example.com/bucket`.
   * @default none; required by `cleanUp`
   */
  readonly finalizer?: string | undefined;
  /**
   * Removes what an object that is being deleted has caused outside of its owned objects. Must be idempotent. Resolves
   * to undefined when nothing is left. Otherwise resolves to the readiness of the object, which is reported as that of
   * `reconcile`, or only to an outcome. If it throws, the object is not ready, as above.
   * @default none; required by `finalizer`
   */
  readonly cleanUp?:
    | ((
        object: DeepReadonly<T>,
        context: ReconcileContext<T>,
      ) => Promise<Reconciled<T> | Outcome | undefined>)
    | undefined;
  /**
   * Name of the writer in managedFields, and component of its events.
   * @default the name of the controller and `-controller`
   */
  readonly fieldManager?: string | undefined;
}

const OPTIONS: OptionNames<ObjectControllerOptions<ObjectWithReadiness>> = {
  name: true,
  reconcile: true,
  finalizer: true,
  cleanUp: true,
  fieldManager: true,
  predicates: true,
  concurrency: true,
  syncTimeoutMs: true,
  maxRetries: true,
  rateLimiter: true,
};

/** Number of objects whose status of a failed sync is remembered; the status of others starts a sync. */
const MAX_FAILED = 10_000;

/** Maximum time of the report of a sync that took too long, in milliseconds. */
const LATE_REPORT_MS = 10_000;

/** Responses of the API server that are reported: a user must change something. Others are only retried. */
const REPORTED: ReadonlySet<ApiErrorKind> = new Set([
  'badRequest',
  'forbidden',
  'notFound',
  'methodNotAllowed',
  'requestEntityTooLarge',
  'invalid',
]);

/**
 * Returns a controller that reconciles each object of a kind with conditions: it reads the object from the cache, keeps
 * the finalizer, and writes conditions, `observedGeneration` and events. As controller-runtime's `ObjectReconciler`.
 *
 * @throws {TypeError} on an unknown option, and if only one of `finalizer` and `cleanUp` is given
 */
export function objectController<T extends ObjectWithReadiness>(
  kit: ControllerKit,
  informer: SharedInformer<T>,
  options: ObjectControllerOptions<T>,
): Controller {
  checkOptions(options, OPTIONS, 'objectController');
  const { reconcile, finalizer: finalizerName, cleanUp, predicates = [], ...rest } = options;
  const { fieldManager = `${options.name}-controller`, ...controllerOptions } = rest;
  if ((finalizerName === undefined) !== (cleanUp === undefined)) {
    throw new TypeError('objectController: finalizer and cleanUp require each other');
  }
  const { resource, lister } = informer;
  const statuses = new StatusWriter<T>(resource, fieldManager, kit);
  const finalizer =
    finalizerName === undefined ? undefined : new Finalizer(resource, finalizerName, fieldManager);

  /** Fields of the status that the last sync wrote with an error, by uid. */
  const failed = new LruMap<string, object | undefined>(MAX_FAILED);
  const setFailed = ({ metadata: { uid } }: DeepReadonly<T>, fields: object | undefined) => {
    if (fields || failed.get(uid)) failed.set(uid, fields);
  };

  const write = async (context: ReconcileContext<T>, report: StatusReport<T>): Promise<void> => {
    const { signal } = context;
    // The signal of a sync that took too long would end its report, too.
    await (signal.aborted
      ? withinTimeout({ clock: kit.clock, timeoutMs: LATE_REPORT_MS }, (limited) =>
          statuses.report({ ...context, signal: limited }, report),
        )
      : statuses.report(context, report));
  };

  /** Reports the result of `run`. Without a report, writes the fields in `context.status`. */
  const report = async <R extends Outcome | undefined>(
    object: DeepReadonly<T>,
    context: ReconcileContext<T>,
    run: () => Promise<Reconciled<T> | R>,
  ): Promise<R | Outcome> => {
    const store = async () => {
      if (Object.keys(context.status).length === 0) return;
      const status: object = { ...object.status, ...context.status };
      await write(context, { object, status });
    };
    let result: Reconciled<T> | R;
    try {
      result = await run();
    } catch (thrown) {
      const failure = failureOf(thrown, context.signal);
      if (!failure) {
        setFailed(object, context.status);
        // A program that stops may have lost its lease.
        if (!context.signal.aborted) await store();
        throw thrown;
      }
      result = failure;
    }
    if (!isReport(result)) {
      setFailed(object, undefined);
      if (result) await store();
      return result;
    }
    const { outcome = done(), status, conditions, event, error, ...returned } = result;
    const readiness = untilDeleted(returned, context.terminating);
    const fields = { ...context.status, ...status };
    setFailed(object, error && fields);
    const complete: ReadinessReport<T> = {
      object,
      readiness,
      status: fields,
      conditions,
      event,
      error,
    };
    // The constraint of T has the fields of the conditional type.
    await write(context, complete as StatusReport<T>);
    return outcome;
  };

  const sync = async (object: DeepReadonly<T>, given: SyncContext): Promise<Outcome> => {
    const context: ReconcileContext<T> = { ...given, status: {} };
    const apply = () => report(object, context, () => reconcile(object, context));
    if (finalizer) {
      return finalizer.sync(object, context, {
        apply,
        cleanUp: () => report(object, context, async () => cleanUp?.(object, context)),
      });
    }
    // The garbage collector deletes the owned objects.
    return object.metadata.deletionTimestamp === undefined ? apply() : done();
  };

  return new Controller(kit, {
    ...controllerOptions,
    kind: resource.kind,
    sync: async (key, context) => {
      const object = lister.get(key);
      return object ? sync(object, context) : done();
    },
  }).for(informer, { predicates: [ignoresReports(failed), ...predicates] });
}

/** Number of objects in a message; a namespace can have many. */
const MAX_NAMED = 3;

/** Returns the readiness of an owner, whose objects must not have names that are not free yet. */
function untilDeleted(
  readiness: Readiness,
  terminating: ReadonlySet<string> | undefined,
): Readiness {
  if (readiness.kind !== 'ready' || !terminating || terminating.size === 0) return readiness;
  const others = terminating.size - MAX_NAMED;
  const names = [...terminating].slice(0, MAX_NAMED).join(', ');
  const message = `Waiting for the deletion of ${names}${others > 0 ? ` and ${others} more` : ''}`;
  return { kind: 'reconciling', reason: 'ObjectsTerminating', message };
}

function isReport<T extends ObjectWithReadiness>(
  result: Reconciled<T> | Outcome | undefined,
): result is Reconciled<T> {
  const kind = result?.kind;
  return kind === 'ready' || kind === 'reconciling' || kind === 'stalled';
}

/** Returns the report of an error, or undefined if it is not reported. */
function failureOf(thrown: unknown, signal: AbortSignal) {
  const error: unknown = signal.aborted ? signal.reason : thrown;
  const isLate = error instanceof TimeoutError;
  if (signal.aborted && !isLate) return undefined;
  if (isApiError(error) && !REPORTED.has(error.kind)) return undefined;
  const message = messageOf(error);
  return {
    kind: error instanceof TerminalError ? ('stalled' as const) : ('reconciling' as const),
    reason: hasReason(error) ? error.reason : isLate ? 'Timeout' : 'SyncFailed',
    message,
    error: error instanceof Error ? error : new Error(message),
  };
}

function hasReason(error: unknown): error is SyncError | TerminalError {
  return error instanceof SyncError || error instanceof TerminalError;
}

/**
 * Rejects updates that change only what a report of the readiness changes, or fields of the status that a sync wrote
 * with an error. Accepts resyncs.
 *
 * @param failed these fields, by uid
 */
function ignoresReports(
  failed: LruMap<string, object | undefined>,
): Predicate<ObjectWithReadiness> {
  return {
    update: (old, object) => {
      const { resourceVersion, uid } = object.metadata;
      if (old.metadata.resourceVersion === resourceVersion) return true;
      const fields = failed.get(uid);
      const before = fields ? { ...old, status: { ...old.status, ...fields } } : old;
      return !equalJson(withoutReport(before), withoutReport(object));
    },
  };
}

function withoutReport({ metadata, status = {}, ...others }: DeepReadonly<ObjectWithReadiness>) {
  const { resourceVersion, managedFields, ...kept } = metadata;
  const { observedGeneration, conditions = [], ...fields } = status;
  const otherConditions = conditions.filter(({ type }) => !READINESS_CONDITIONS.has(type));
  return { ...others, metadata: kept, fields, otherConditions };
}
