import type { KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { EventHandlerOptions, EventHandler, HandlerRegistration } from './event-handler.ts';
import type { IndexFunctions } from './indexer.ts';
import type { Lister } from './lister.ts';
import { MultiNamespaceLister } from './lister.ts';
import type { InformerView, SharedInformer } from './shared-informer.ts';

/**
 * The informers of several namespaces as one, for those who may list and watch in each of them but
 * not in all: one store, one set of handlers and indexes. Handlers are told of the objects of one
 * namespace in the server's order; between namespaces there is none, as between two watches.
 *
 * It runs nothing: whoever made the parts runs them.
 */
export class MultiNamespaceInformer<T extends KubernetesObject> implements SharedInformer<T> {
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Lister<T>;
  readonly #parts: ReadonlyMap<string, InformerView<T>>;

  /** @param parts by namespace */
  constructor(resource: Resource<T>, parts: ReadonlyMap<string, InformerView<T>>) {
    this.name = `${groupResourceOf(resource)} in ${[...parts.keys()].join(', ')}`;
    this.resource = resource;
    this.lister = new MultiNamespaceLister(
      new Map(Array.from(parts, ([namespace, { lister }]) => [namespace, lister])),
    );
    this.#parts = parts;
  }

  get hasSynced(): boolean {
    return this.parts.every(({ hasSynced }) => hasSynced);
  }

  get synced(): Promise<void> {
    return allOf(this.parts);
  }

  get parts(): readonly InformerView<T>[] {
    return [...this.#parts.values()];
  }

  within(namespace: string | undefined): InformerView<T> | undefined {
    return namespace === undefined ? undefined : this.#parts.get(namespace);
  }

  addIndexers(indexers: IndexFunctions<T>): void {
    // A part may be shared with others, who have named indexes too: all get them, or none does.
    for (const name of Object.keys(indexers)) {
      const holder = this.parts.find(({ lister }) => lister.hasIndex(name));
      if (holder) throw new Error(`${holder.name} has an index of this name already: ${name}`);
    }
    for (const part of this.parts) part.addIndexers(indexers);
  }

  addHandler(handler: EventHandler<T>, options?: EventHandlerOptions<T>): HandlerRegistration {
    const seats = this.parts.map((part) => part.addHandler(handler, options));
    return {
      get hasSynced() {
        return seats.every(({ hasSynced }) => hasSynced);
      },
      get synced() {
        return allOf(seats);
      },
      remove: () => {
        for (const seat of seats) seat.remove();
      },
    };
  }
}

async function allOf(waiting: readonly { readonly synced: Promise<void> }[]): Promise<void> {
  await Promise.all(waiting.map(({ synced }) => synced));
}
