import { isApiError } from '../api/api-error.ts';
import type { ApiErrorKind } from '../api/api-error.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Readiness } from '../api/readiness.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { messageOf } from '../util/values.ts';
import { done, SyncError, TerminalError } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { Controller } from './controller.ts';
import type { ControllerKit } from './controller-kit.ts';
import type { ControllerOptions, SyncContext, WatchesOptions } from './controller-options.ts';
import { Finalizer } from './finalizer.ts';
import { StatusWriter } from './status-writer.ts';
import type { ReadinessReport, StatusReport, StatusWithReadiness } from './status-writer.ts';

/** An object whose status has the fields `conditions` and `observedGeneration`. */
export type ObjectWithReadiness = KubernetesObject & { status?: StatusWithReadiness };

/** The result of `reconcile`: the readiness of the object, with what else is reported about it. */
export type Reconciled<T extends ObjectWithReadiness> = Readiness &
  Pick<ReadinessReport<T>, 'status' | 'event' | 'error'> & {
    /**
     * The outcome of the sync, if there is no error.
     * @default done()
     */
    readonly outcome?: Outcome | undefined;
  };

/** Options of `objectController`. */
export interface ObjectControllerOptions<T extends ObjectWithReadiness>
  extends Omit<ControllerOptions, 'kind' | 'sync'>, WatchesOptions<T> {
  /**
   * Reconciles an object that is not being deleted. Must be idempotent. Returns its readiness, which is reported as by
   * `StatusWriter.report`; or only an outcome, to report nothing. If it throws, the object is not ready: stalled after a
   * `TerminalError`, and otherwise retried with backoff. The reason is that of a `SyncError`, or `SyncFailed`.
   */
  readonly reconcile: (
    object: DeepReadonly<T>,
    context: SyncContext,
  ) => Promise<Reconciled<T> | Outcome>;
  /**
   * Name of the finalizer that objects have until `cleanUp` has removed everything, as in `example.com/bucket`.
   * @default none; required by `cleanUp`
   */
  readonly finalizer?: string | undefined;
  /**
   * Removes what an object that is being deleted has caused outside of its owned objects. Must be idempotent. Resolves
   * when nothing is left, or to the outcome of the sync. If it throws, the object is not ready, as above.
   * @default none; required by `finalizer`
   */
  readonly cleanUp?:
    ((object: DeepReadonly<T>, context: SyncContext) => Promise<Outcome | undefined>) | undefined;
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
  const { reconcile, finalizer: finalizerName, cleanUp, predicates, ...rest } = options;
  const { fieldManager = `${options.name}-controller`, ...controllerOptions } = rest;
  if ((finalizerName === undefined) !== (cleanUp === undefined)) {
    throw new TypeError('objectController: finalizer and cleanUp require each other');
  }
  const { resource, lister } = informer;
  const statuses = new StatusWriter<T>(resource, fieldManager, kit);
  const finalizer =
    finalizerName === undefined ? undefined : new Finalizer(resource, finalizerName, fieldManager);

  const report = async (
    object: DeepReadonly<T>,
    context: SyncContext,
    { outcome = done(), status, event, error, ...readiness }: Reconciled<T>,
  ): Promise<Outcome> => {
    const report: ReadinessReport<T> = { object, readiness, status, event, error };
    // The constraint of T has the fields of the conditional type.
    await statuses.report(context, report as StatusReport<T>);
    return outcome;
  };

  const apply = async (object: DeepReadonly<T>, context: SyncContext): Promise<Outcome> => {
    const result = await reconcile(object, context).catch((error: unknown) =>
      failureOf(error, context.signal),
    );
    return isOutcome(result) ? result : report(object, context, result);
  };

  const sync = async (object: DeepReadonly<T>, context: SyncContext): Promise<Outcome> => {
    if (finalizer) {
      return finalizer.sync(object, context, {
        apply: () => apply(object, context),
        cleanUp: async () => {
          try {
            return await cleanUp?.(object, context);
          } catch (error) {
            return report(object, context, failureOf(error, context.signal));
          }
        },
      });
    }
    // The garbage collector deletes the owned objects.
    return object.metadata.deletionTimestamp === undefined ? apply(object, context) : done();
  };

  return new Controller(kit, {
    ...controllerOptions,
    kind: resource.kind,
    sync: async (key, context) => {
      const object = lister.get(key);
      return object ? sync(object, context) : done();
    },
  }).for(informer, { predicates });
}

function isOutcome<T extends ObjectWithReadiness>(
  result: Reconciled<T> | Outcome,
): result is Outcome {
  return result.kind !== 'ready' && result.kind !== 'reconciling' && result.kind !== 'stalled';
}

/** @throws the error, if it is not reported */
function failureOf(error: unknown, signal: AbortSignal) {
  if (signal.aborted || (isApiError(error) && !REPORTED.has(error.kind))) throw error;
  const message = messageOf(error);
  return {
    kind: error instanceof TerminalError ? ('stalled' as const) : ('reconciling' as const),
    reason: error instanceof SyncError ? error.reason : 'SyncFailed',
    message,
    error: error instanceof Error ? error : new Error(message),
  };
}
