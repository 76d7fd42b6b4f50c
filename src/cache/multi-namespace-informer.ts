import type { KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { EventHandler, EventHandlerOptions, HandlerRegistration } from './event-handler.ts';
import type { IndexFunctions } from './indexer.ts';
import { MultiNamespaceLister } from './lister.ts';
import type { Lister } from './lister.ts';
import type { InformerView, SharedInformer } from './shared-informer.ts';

/** Informer of one namespace. */
type Part<T extends KubernetesObject> = SharedInformer<T> & InformerView<T>;

/**
 * Combines the informers of several namespaces, for users who may list and watch in each of them but
 * not in all. Events of one namespace keep the server's order; events of different namespaces have no
 * order. The parts are run by their creator.
 */
export class MultiNamespaceInformer<T extends KubernetesObject> implements SharedInformer<T> {
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Lister<T>;
  readonly #parts: ReadonlyMap<string, Part<T>>;

  /** @param parts by namespace */
  constructor(resource: Resource<T>, parts: ReadonlyMap<string, Part<T>>) {
    this.name = `${groupResourceOf(resource)} in ${[...parts.keys()].join(', ')}`;
    this.resource = resource;
    this.lister = new MultiNamespaceLister(
      new Map(Array.from(parts, ([namespace, { lister }]) => [namespace, lister])),
    );
    this.#parts = parts;
  }

  get cluster(): string | undefined {
    return this.parts[0]?.cluster;
  }

  get hasSynced(): boolean {
    return this.parts.every(({ hasSynced }) => hasSynced);
  }

  get synced(): Promise<void> {
    return allOf(this.parts);
  }

  get parts(): readonly Part<T>[] {
    return [...this.#parts.values()];
  }

  within(namespace: string | undefined): Part<T> | undefined {
    return namespace === undefined ? undefined : this.#parts.get(namespace);
  }

  addIndexers(indexers: IndexFunctions<T>): void {
    // A part may be shared and have an index of this name, so all are checked before one is changed.
    for (const name of Object.keys(indexers)) {
      const existing = this.parts.find(({ lister }) => lister.hasIndex(name));
      if (existing) throw new Error(`${existing.name}: an index with name ${name} already exists`);
    }
    for (const part of this.parts) part.addIndexers(indexers);
  }

  addHandler(handler: EventHandler<T>, options?: EventHandlerOptions<T>): HandlerRegistration {
    const registrations = this.parts.map((part) => part.addHandler(handler, options));
    return {
      get hasSynced() {
        return registrations.every(({ hasSynced }) => hasSynced);
      },
      get synced() {
        return allOf(registrations);
      },
      remove: () => {
        for (const registration of registrations) registration.remove();
      },
    };
  }
}

async function allOf(all: readonly { readonly synced: Promise<void> }[]): Promise<void> {
  await Promise.all(all.map(({ synced }) => synced));
}
