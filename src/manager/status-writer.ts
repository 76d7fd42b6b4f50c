import { ApiError, isApiError } from '../api/api-error.ts';
import { equalJson } from '../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectName } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';

/** As much of a sync's context as it takes. */
export interface StatusContext {
  readonly client: Pick<Client, 'get' | 'patch'>;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export type WithStatus = KubernetesObject & { status?: object };

/** Failed writes that are remembered; the events of older ones may be recorded again. */
const MOST_FAILURES = 1000;

/**
 * Writes the status of the objects of one resource: through the status subresource, only where it
 * differs, for that object and no other of its name, and for the state it was computed from: who
 * changed the object meanwhile makes the write a `conflict`.
 *
 * A CustomResourceDefinition older than the status it is given prunes the fields it does not know.
 * They are learned from the server's answers and left out of the comparison, or each sync would
 * write them again. One without a status subresource is told of in the log, once: writing the status
 * with the rest of the object would count as a change of what the user wants.
 */
export class StatusWriter<T extends WithStatus> {
  readonly #resource: Resource<T>;
  readonly #fieldManager: string;
  readonly #pruned = new Set<string>();
  /** By uid. */
  readonly #failed = new LruMap<string, FailedWrite>(MOST_FAILURES);
  #hasSubresource = true;

  constructor(resource: Resource<T>, fieldManager: string) {
    this.#resource = resource;
    this.#fieldManager = fieldManager;
  }

  /** False since the server answered that there is no status to write. */
  get hasSubresource(): boolean {
    return this.#hasSubresource;
  }

  /** True if `status` says something that the object does not say, and the server would keep it. */
  differs(object: DeepReadonly<T>, status: NonNullable<T['status']>): boolean {
    return !equalJson(this.#kept(object.status ?? {}), this.#kept(status));
  }

  /**
   * True if a write of `status` to this version of the object has failed before. The events that go
   * with the status were recorded then.
   */
  hasFailed({ metadata }: DeepReadonly<T>, status: NonNullable<T['status']>): boolean {
    const failed = this.#failed.get(metadata.uid);
    return (
      failed?.resourceVersion === metadata.resourceVersion &&
      equalJson(failed.status, timeless(status))
    );
  }

  /**
   * Puts `status` in the place of the object's. Ask `differs` first. Rejects with `conflict` if the
   * object is another by now, or gone. A rejected status is retried like any failure: an admission
   * policy may be the reason, and be removed.
   */
  async write(
    { client, signal, log }: StatusContext,
    object: DeepReadonly<T>,
    status: NonNullable<T['status']>,
  ): Promise<void> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    // In a merge patch, what is absent stays: what is to go must be said.
    const gone = Object.fromEntries(Object.keys(object.status ?? {}).map((field) => [field, null]));
    const said = Object.entries(status).filter(([, value]) => value !== undefined);
    const body = {
      metadata: { uid, resourceVersion },
      status: { ...gone, ...Object.fromEntries(said) },
    };
    try {
      const answer = await client.patch(
        this.#resource,
        { namespace, name },
        { type: 'merge', body },
        { subresource: 'status', fieldManager: this.#fieldManager, signal },
      );
      this.#hasSubresource = true;
      this.#learn(status, answer.status ?? {});
    } catch (error) {
      this.#failed.set(uid, { resourceVersion, status: timeless(status) });
      if (isApiError(error, 'invalid')) throw refused(error);
      if (!isApiError(error, 'notFound')) throw error;
      // The answer is the same for an object that is gone, whose deletion is about to be heard of.
      const live = await this.#find({ client, signal }, { namespace, name });
      if (live?.metadata.uid !== uid) throw changed(error);
      this.#tellMissing(log);
    }
  }

  async #find(
    { client, signal }: Pick<StatusContext, 'client' | 'signal'>,
    at: ObjectName,
  ): Promise<T | undefined> {
    try {
      return await client.get(this.#resource, at, { signal });
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }

  #tellMissing(log: Logger): void {
    if (this.#hasSubresource) {
      log.error(undefined, 'The status cannot be written: its resource has no status subresource', {
        resource: groupResourceOf(this.#resource),
        fix: 'install the CustomResourceDefinition that comes with this program: kubectl apply -f crds/',
      });
    }
    this.#hasSubresource = false;
  }

  #learn(sent: object, stored: object): void {
    for (const [field, value] of Object.entries(sent)) {
      if (Object.hasOwn(stored, field) || value === undefined) this.#pruned.delete(field);
      else this.#pruned.add(field);
    }
  }

  #kept(status: object): object {
    if (this.#pruned.size === 0) return status;
    return Object.fromEntries(Object.entries(status).filter(([field]) => !this.#pruned.has(field)));
  }
}

/** That an object is gone is one of the ways in which somebody else was quicker. */
function changed(cause: ApiError): ApiError {
  const message = `${cause.message}: it was deleted meanwhile`;
  return new ApiError({ kind: 'conflict', message, code: cause.code, cause });
}

function refused(cause: ApiError): Error {
  return new Error(
    `The server refuses the status: ${cause.message}. Correct the object if its CustomResourceDefinition has become stricter, install the one of this release (kubectl apply -f crds/), or change the admission policy`,
    { cause },
  );
}

interface FailedWrite {
  readonly resourceVersion: string;
  readonly status: object;
}

/** What it says, whenever that became so. */
function timeless(status: object): object {
  const withoutTimes = (name: string, value: unknown) =>
    name === 'lastTransitionTime' ? undefined : value;
  return JSON.parse(JSON.stringify(status, withoutTimes)) as object;
}
