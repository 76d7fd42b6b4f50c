import { isApiError } from '../api/api-error.ts';
import { hasFinalizer, withFinalizer, withoutFinalizer } from '../api/metadata.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { done } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { SyncContext } from './controller-options.ts';

/** Finalizer of a deletion with `--cascade=orphan`: the garbage collector removes owner references first. */
const ORPHAN = 'orphan';

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

  /** Runs the half of the sync that `object` needs, and writes the finalizer. */
  async sync(
    object: DeepReadonly<T>,
    context: SyncContext,
    { apply, cleanUp }: FinalizedSync,
  ): Promise<Outcome> {
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    if (!hasFinalizer(object, this.#name)) {
      // The event of this write enqueues the key again.
      if (!isDeleting) await this.#write(object, withFinalizer(object, this.#name), context);
      return done();
    }
    if (!isDeleting) return apply();
    if (hasFinalizer(object, ORPHAN)) return done();
    const outcome = await cleanUp();
    if (outcome) return outcome;
    await this.#write(object, withoutFinalizer(object, this.#name), context);
    return done();
  }

  /** The resourceVersion rejects the write if another client has changed the list. */
  async #write(
    { metadata }: DeepReadonly<T>,
    finalizers: readonly string[],
    { client, signal }: SyncContext,
  ): Promise<void> {
    const { uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion, finalizers } };
    try {
      const patch = { type: 'merge', body } as const;
      await client.patch<KubernetesObject>(this.#resource, metadata, patch, {
        fieldManager: this.#fieldManager,
        signal,
      });
    } catch (error) {
      // The object is gone.
      if (!isApiError(error, 'notFound')) throw error;
    }
  }
}
