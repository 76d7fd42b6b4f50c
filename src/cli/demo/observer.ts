import { PODS } from '../../api/builtin.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import { runAll } from '../../util/runnable.ts';
import type { Runnable } from '../../util/runnable.ts';
import type { Missing, View } from './view.ts';
import { objectLine } from './observed-kinds.ts';
import type { ObservedKind } from './observed-kinds.ts';

/** Dependencies of `Observer`. */
export interface ObserverDeps {
  readonly client: Pick<Client, 'list' | 'watch'>;
  readonly clock: Clock;
  /** Receives a line for each change. */
  readonly onChange: (text: string) => void;
}

type Objects = ReadonlyMap<string, ReadonlyMap<string, KubernetesObject>>;

/** Watches the objects of one namespace, and the nodes. It is independent of the daemon's caches. */
export class Observer implements Runnable {
  readonly name = 'observer';
  readonly #deps: ObserverDeps;
  readonly #namespace: string;
  readonly #observed: readonly ObservedKind[];
  readonly #objects: ReadonlyMap<string, Map<string, KubernetesObject>>;
  readonly #waiters = new Set<() => void>();
  readonly #gone: KubernetesObject[] = [];
  readonly #lines: string[] = [];
  #podsSeen = 0;

  constructor(deps: ObserverDeps, namespace: string, observed: readonly ObservedKind[]) {
    this.#deps = deps;
    this.#namespace = namespace;
    this.#observed = observed;
    this.#objects = new Map(observed.map(({ resource }) => [groupResourceOf(resource), new Map()]));
  }

  /** The objects as last received. */
  get view(): View {
    return viewOf(this.#objects);
  }

  /** Number of Pods that were created. */
  get podsSeen(): number {
    return this.#podsSeen;
  }

  /** Deleted objects in their last state, in the order of the watch events. */
  get gone(): readonly KubernetesObject[] {
    return this.#gone;
  }

  /** Returns the lines of one object (`at/example-at`), in order. */
  linesOf(title: string): readonly string[] {
    const start = `${title}  `;
    return this.#lines
      .filter((line) => line.startsWith(start))
      .map((line) => line.slice(start.length));
  }

  async run(signal: AbortSignal): Promise<void> {
    await runAll(
      this.#observed.map((observed) => (stop) => this.#follow(observed, stop)),
      signal,
    );
  }

  /** Lists the objects on the server. */
  async snapshot(signal: AbortSignal): Promise<View> {
    const lists = this.#observed.map(async ({ resource }) => {
      const { items } = await this.#deps.client.list(resource, {
        ...this.#scopeOf(resource),
        signal,
      });
      const byName = new Map(items.map((object) => [object.metadata.name, object]));
      return [groupResourceOf(resource), byName] as const;
    });
    return viewOf(new Map(await Promise.all(lists)));
  }

  /**
   * Resolves when `missing` returns undefined, or at `deadlineMs` (`Clock.monotonic()`) with the reason at
   * that time.
   */
  async until(
    missing: Missing,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    for (;;) {
      const reason = missing(this.view);
      const left = deadlineMs - this.#deps.clock.monotonic();
      if (reason === undefined || left <= 0) return reason;
      signal.throwIfAborted();
      await this.#change(left, signal);
    }
  }

  /** Resolves at the next change, after `ms`, or when `signal` aborts. */
  async #change(ms: number, signal: AbortSignal): Promise<void> {
    const wake = new AbortController();
    const waiter = () => wake.abort();
    this.#waiters.add(waiter);
    signal.addEventListener('abort', waiter, { once: true });
    try {
      await this.#deps.clock.sleep(ms, wake.signal);
    } finally {
      signal.removeEventListener('abort', waiter);
      this.#waiters.delete(waiter);
    }
  }

  async #follow(observed: ObservedKind, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const { resource } = observed;
    const objects = this.#objects.get(groupResourceOf(resource));
    const stream = await client.watch(resource, { ...this.#scopeOf(resource), signal });
    for await (const event of stream) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'bookmark' || !objects) continue;
      const { object, type } = event;
      const { name } = object.metadata;
      const before = objects.get(name);
      if (type === 'deleted') {
        objects.delete(name);
        this.#gone.push(object);
        this.#tell(objectLine(object, 'deleted'));
      } else {
        objects.set(name, object);
        const text = observed.line(object);
        if (text !== undefined && !(before && text === observed.line(before))) this.#tell(text);
      }
      if (resource === PODS && type === 'added') this.#podsSeen++;
      for (const wake of this.#waiters) wake();
    }
  }

  #tell(line: string): void {
    this.#lines.push(line);
    this.#deps.onChange(line);
  }

  #scopeOf({ namespaced }: Resource): { readonly namespace?: string } {
    return namespaced ? { namespace: this.#namespace } : {};
  }
}

function viewOf(objects: Objects): View {
  return <T extends KubernetesObject>(resource: Resource<T>) => {
    const known = objects.get(groupResourceOf(resource));
    // The objects of a resource come from its list or watch, which have its type.
    return (known ?? new Map()) as ReadonlyMap<string, T>;
  };
}
