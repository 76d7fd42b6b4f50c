import { isApiError, isNamespaceTerminating } from '../api/api-error.ts';
import { covers } from '../api/equal.ts';
import { keyOf } from '../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import { messageOf } from '../util/values.ts';
import {
  changedByAdmission,
  deleteOwnedObject,
  ensureOwnedObject,
  isReplaced,
  nameCollision,
} from './owned-object.ts';
import type { OwnedObjectOptions } from './owned-object.ts';
import type { SyncContext } from './controller-options.ts';
import type { StatusEvent } from './status-writer.ts';

/** Why an owned object could not be created, patched or deleted. */
export interface OwnedObjectFailure {
  /** CamelCase and stable, for conditions and events. */
  readonly reason: string;
  readonly message: string;
  /** Whether the user must change something; otherwise a retry may succeed. */
  readonly stalled: boolean;
  /** The error of the request; undefined if an object of another owner has the name. */
  readonly cause?: unknown;
}

/**
 * Creates, patches and deletes owned objects of one kind one by one, and logs and records what it did, as the `PodControl` of
 * kube-controller-manager. Methods return the failure of a request, and throw if the sync must end or be retried at once.
 */
export class OwnedObjectControl<O extends KubernetesObject, T extends KubernetesObject> {
  readonly #owners: Resource<O>;
  readonly #resource: Resource<T>;
  readonly #recorder: EventRecorder;
  readonly #fieldManager: string;

  constructor(
    owners: Resource<O>,
    resource: Resource<T>,
    deps: { readonly recorder: EventRecorder; readonly fieldManager: string },
  ) {
    this.#owners = owners;
    this.#resource = resource;
    this.#recorder = deps.recorder;
    this.#fieldManager = deps.fieldManager;
  }

  /**
   * Creates an owned object, unless `cached` exists.
   *
   * @param onCreated receives the object as the server stored it
   */
  create(
    context: SyncContext,
    owner: DeepReadonly<O>,
    { desired, cached }: Pick<OwnedObjectOptions<T>, 'desired' | 'cached'>,
    onCreated: (owned: DeepReadonly<T>) => void,
  ): Promise<OwnedObjectFailure | undefined> {
    const { name } = desired.metadata;
    return this.#attempt(context, 'FailedCreate', 'Error creating', async () => {
      const { kind, object } = await ensureOwnedObject(context, {
        resource: this.#resource,
        owner,
        desired,
        cached,
        update: false,
        fieldManager: this.#fieldManager,
      });
      if (kind === 'nameCollision') return { ...nameCollision(this.#owners, name), stalled: true };
      if (kind !== 'created') return undefined;
      this.#log(context, 'Created', keyOf(desired));
      const message = `Created ${this.#field}: ${name}`;
      this.#recorder.normal(owner, 'SuccessfulCreate', message);
      onCreated(object);
      return undefined;
    });
  }

  /** Deletes an owned object, and no other object of its name. */
  delete(
    context: SyncContext,
    owner: DeepReadonly<O>,
    owned: DeepReadonly<T>,
  ): Promise<OwnedObjectFailure | undefined> {
    return this.#attempt(context, 'FailedDelete', 'Error deleting', async () => {
      if (!(await deleteOwnedObject(context, this.#resource, owned))) return undefined;
      this.#log(context, 'Deleted', keyOf(owned));
      const message = `Deleted ${this.#field}: ${owned.metadata.name}`;
      this.#recorder.normal(owner, 'SuccessfulDelete', message);
      return undefined;
    });
  }

  /**
   * Sets labels of an owned object. Its event enqueues the owner if it was deleted or replaced meanwhile.
   *
   * @param onLabelled receives the object as the server stored it
   */
  label(
    { client, signal }: SyncContext,
    owned: DeepReadonly<T>,
    labels: Readonly<Record<string, string>>,
    onLabelled: (owned: DeepReadonly<T>) => void,
  ): Promise<OwnedObjectFailure | undefined> {
    return this.#attempt({ signal }, 'FailedPatch', 'Error restoring labels', async () => {
      const { metadata } = owned;
      const patch = { type: 'merge', body: { metadata: { uid: metadata.uid, labels } } } as const;
      const options = { fieldManager: this.#fieldManager, signal };
      const labelled = await client.patch<KubernetesObject>(
        this.#resource,
        metadata,
        patch,
        options,
      );
      onLabelled(labelled as DeepReadonly<T>);
      if (covers(labelled.metadata.labels ?? {}, labels)) return undefined;
      const change = `the labels ${Object.keys(labels).join(' and ')}`;
      return { ...changedByAdmission(change, this.#resource.kind, metadata.name), stalled: true };
    });
  }

  async #attempt(
    { signal }: Pick<SyncContext, 'signal'>,
    reason: string,
    verb: string,
    send: () => Promise<OwnedObjectFailure | undefined>,
  ): Promise<OwnedObjectFailure | undefined> {
    try {
      return await send();
    } catch (cause) {
      // The owner is about to be deleted with its namespace.
      if (isNamespaceTerminating(cause)) return undefined;
      if (reason === 'FailedPatch' && isReplaced(cause)) return undefined;
      if (signal.aborted || isApiError(cause, 'alreadyExists', 'conflict')) throw cause;
      const message = `${verb}: ${messageOf(cause)}`;
      return { reason, message, stalled: isApiError(cause, 'invalid'), cause };
    }
  }

  get #field(): string {
    return this.#resource.kind.toLowerCase();
  }

  #log({ log }: SyncContext, verb: string, key: string): void {
    log.v(2).info(`${verb} ${this.#resource.kind}`, { [this.#field]: key });
  }
}

/** Returns the event about a failure. Retries of an object that the server rejects record no further event. */
export function failureEvent({ reason, message, cause }: OwnedObjectFailure): StatusEvent {
  return { type: 'Warning', reason, message, repeats: !isApiError(cause, 'invalid') };
}
