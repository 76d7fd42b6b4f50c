import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { quantityNanos } from '../../api/quantity.ts';
import { podResources } from '../../api/resource-list.ts';
import { isFinished } from '../../api/workloads.ts';
import type { EventHandler } from '../../cache/event-handler.ts';

/** Amounts of resources by name, in units of 10^-9; `pods` counts Pods. */
export type Amounts = ReadonlyMap<string, bigint>;

/** Parses a list of resources. */
export function amountsOf(list: Readonly<Record<string, string>> | undefined): Amounts {
  return new Map(
    Object.entries(list ?? {}).map(([name, text]) => [name, quantityNanos(text) ?? 0n]),
  );
}

/** A Pod that uses a node. */
interface Use {
  readonly node: string;
  readonly pod: DeepReadonly<Pod>;
  readonly requests: Amounts;
}

/**
 * The Pods of each node with their requests, from the cache and from bindings that the cache does not
 * contain yet.
 */
export class NodeUsage {
  readonly #uses = new Map<string, Use>();
  readonly #requested = new Map<string, Map<string, bigint>>();
  readonly #podsOf = new Map<string, Map<string, DeepReadonly<Pod>>>();

  /** Keeps the usage up to date with a cache. */
  readonly handler: EventHandler<Pod> = {
    onAdd: (pod) => this.#observe(pod),
    onUpdate: (old, pod) => {
      if (old.metadata.uid !== pod.metadata.uid) this.remove(old);
      this.#observe(pod);
    },
    onDelete: (pod) => this.remove(pod),
  };

  /** Counts a Pod that is about to be bound. */
  assume(pod: DeepReadonly<Pod>, node: string): void {
    const { uid } = pod.metadata;
    const use = { node, pod, requests: requestsOf(pod) };
    this.remove(pod);
    this.#uses.set(uid, use);
    this.#add(use, 1n);
    const pods = this.#podsOf.get(node) ?? new Map<string, DeepReadonly<Pod>>();
    this.#podsOf.set(node, pods.set(uid, pod));
  }

  remove({ metadata: { uid } }: DeepReadonly<Pod>): void {
    const use = this.#uses.get(uid);
    if (!use) return;
    this.#uses.delete(uid);
    this.#podsOf.get(use.node)?.delete(uid);
    this.#add(use, -1n);
  }

  requestedOn(node: string): Amounts {
    return this.#requested.get(node) ?? new Map<string, bigint>();
  }

  podsOn(node: string): Iterable<DeepReadonly<Pod>> {
    return this.#podsOf.get(node)?.values() ?? [];
  }

  #observe(pod: DeepReadonly<Pod>): void {
    const { nodeName } = pod.spec ?? {};
    if (nodeName && !isFinished(pod)) this.assume(pod, nodeName);
    // A Pod without a node in the cache may have been assumed on one.
    else if (isFinished(pod)) this.remove(pod);
  }

  #add({ node, requests }: Use, sign: bigint): void {
    const total = this.#requested.get(node) ?? new Map<string, bigint>();
    for (const [name, amount] of requests) total.set(name, (total.get(name) ?? 0n) + sign * amount);
    this.#requested.set(node, total);
  }
}

/** Returns the requests of a Pod, and 1 of `pods`. */
export function requestsOf(pod: DeepReadonly<Pod>): Amounts {
  return amountsOf({ pods: '1', ...podResources(pod, 'requests') });
}
