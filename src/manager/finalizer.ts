import { isApiError } from '../api/api-error.ts';
import { hasFinalizer, withFinalizer, withoutFinalizer } from '../api/metadata.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { SyncContext } from './controller-options.ts';

/** Finalizer of a deletion with `--cascade=orphan`: the garbage collector removes owner references first. */
const ORPHAN = 'orphan';

/**
 * Time after which an object is synced whose new finalizer caused no event that a predicate accepts, in
 * milliseconds. The sync then starts when the cache contains the finalizer.
 */
const WITHOUT_EVENT_MS = 100;

/** Period in which an object is synced that waits for the garbage collector, in milliseconds. */
const ORPHANING_POLL_MS = 5000;

/** The two halves of a sync of an object with a finalizer. Both must be idempotent. */
export interface FinalizedSync {
  /** Reconciles an object that is not being deleted and has the finalizer. */
  readonly apply: () => Promise<Outcome>;
  /**
   * Removes what the object has caused outside of its owned objects. Resolves to undefined when nothing is
   * left: then the finalizer is removed. Otherwise resolves to the outcome of the sync.
   */
  readonly cleanUp: () => Promise<Outcome | undefined>;
}

/**
 * Keeps objects of one kind until they are cleaned up.
 *
 * The finalizer is written before the first `apply`, and removed after the last `cleanUp`, so a crash between
 * two steps only repeats one. An object without the finalizer that is being deleted was never applied.
 */
export class Finalizer<T extends KubernetesObject> {
  readonly #resource: Resource<T>;
  readonly #name: string;
  readonly #fieldManager: string;

  /**
   * @param name qualified name, as in `webapp.example.com/cleanup`
   * @param fieldManager name of the writer in managedFields
   */
  constructor(resource: Resource<T>, name: string, fieldManager: string) {
    this.#resource = resource;
    this.#name = name;
    this.#fieldManager = fieldManager;
  }

  /**
   * Runs the half of the sync that `object` needs, and writes the finalizer. A new object is applied in the sync after
   * that write; in a dry run, which does not store the finalizer, in the same sync.
   *
   * @throws {Error} if the server does not store the finalizer
   */
  async sync(
    object: DeepReadonly<T>,
    context: SyncContext,
    { apply, cleanUp }: FinalizedSync,
  ): Promise<Outcome> {
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    if (!hasFinalizer(object, this.#name)) {
      if (isDeleting) return done();
      const stored = await this.#write(object, withFinalizer(object, this.#name), context);
      if (!stored) return done();
      if (!hasFinalizer(stored, this.#name)) {
        const { kind, metadata } = object;
        throw new Error(
          `The server did not store the finalizer "${this.#name}" of ${kind} "${metadata.name}": change the admission webhook or policy that removes it`,
        );
      }
      return context.client.isDryRun
        ? apply()
        : requeueAfter(WITHOUT_EVENT_MS, 'the finalizer was added');
    }
    if (!isDeleting) return apply();
    if (hasFinalizer(object, ORPHAN)) {
      // A predicate may reject the event that removes this finalizer.
      return requeueAfter(ORPHANING_POLL_MS, 'the owned objects are orphaned first', {
        jitter: 0.1,
      });
    }
    const outcome = await cleanUp();
    if (outcome) return outcome;
    await this.#write(object, withoutFinalizer(object, this.#name), context);
    return done();
  }

  /**
   * Returns the stored object, or undefined if it is gone. The resourceVersion rejects the write if another client
   * has changed the list.
   */
  async #write(
    { metadata }: DeepReadonly<T>,
    finalizers: readonly string[],
    { client, signal }: SyncContext,
  ): Promise<KubernetesObject | undefined> {
    const { uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion, finalizers } };
    try {
      const patch = { type: 'merge', body } as const;
      return await client.patch<KubernetesObject>(this.#resource, metadata, patch, {
        fieldManager: this.#fieldManager,
        signal,
      });
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }
}
