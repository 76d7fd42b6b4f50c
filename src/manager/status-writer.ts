import { equalJson } from '../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';

export type WithStatus = KubernetesObject & { status?: object };

/**
 * Writes the status of the objects of one resource: through the status subresource, only where it
 * differs, for that object and no other of its name, and for the state it was computed from: who
 * changed the object meanwhile makes the write a `conflict`.
 *
 * A CustomResourceDefinition older than the status it is given prunes the fields it does not know.
 * They are learned from the server's answers and left out of the comparison, or each sync would
 * write them again.
 */
export class StatusWriter<T extends WithStatus> {
  readonly #resource: Resource<T>;
  readonly #fieldManager: string;
  readonly #pruned = new Set<string>();

  constructor(resource: Resource<T>, fieldManager: string) {
    this.#resource = resource;
    this.#fieldManager = fieldManager;
  }

  /** True if `status` says something that the object does not say, and the server would keep it. */
  differs(object: DeepReadonly<T>, status: NonNullable<T['status']>): boolean {
    return !equalJson(this.#kept(object.status ?? {}), this.#kept(status));
  }

  /** Puts `status` in the place of the object's. Ask `differs` first. */
  async write(
    { client, signal }: { readonly client: Pick<Client, 'patch'>; readonly signal: AbortSignal },
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
    const answer = await client.patch(
      this.#resource,
      { namespace, name },
      { type: 'merge', body },
      { subresource: 'status', fieldManager: this.#fieldManager, signal },
    );
    this.#learn(status, answer.status ?? {});
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
