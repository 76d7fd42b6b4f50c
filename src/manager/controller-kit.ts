import type { InformerSet } from '../cache/informer-set.ts';
import type { Client } from '../client/client.ts';
import type { EventBroadcaster } from '../record/event-broadcaster.ts';
import type { CustomMetrics } from '../metrics/custom-metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { ControllerDeps } from './controller-options.ts';

/** Dependencies of controllers, for `new Controller`, with the shared informers. */
export interface ControllerKit extends ControllerDeps {
  /** Shared by all controllers: there is one informer for each kind and selection. */
  readonly informers: InformerSet;
  /** `events.recorder('web-controller')` returns a recorder of Events. */
  readonly events: EventBroadcaster;
  /** @default none */
  readonly metrics?: Metrics | undefined;
  /** Metrics of the program's own; dropped without `metrics`. */
  readonly customMetrics: CustomMetrics;
  /**
   * Returns the kit of another cluster: informers, events and client of that cluster, and all else of this one. Its
   * controllers have the name of the cluster in their names: `web-b`. A program has one kit for each name.
   *
   * @param name lower-case letters, digits and "-"
   * @param client client of the cluster, as `connectCluster` returns it
   * @throws {RangeError} if the name is malformed
   * @throws {Error} if the name has another client, or the program was built
   */
  forCluster(name: string, client: Client): ControllerKit;
}

/** Returns the kit with another default number of concurrent syncs, also for the kits of other clusters. */
export function withConcurrency(
  kit: ControllerKit,
  concurrency: number | undefined,
): ControllerKit {
  const forCluster: ControllerKit['forCluster'] = (name, client) => ({
    ...kit.forCluster(name, client),
    concurrency,
  });
  return { ...kit, concurrency, forCluster };
}

/** Client, caches and events of one cluster. */
export interface ClusterParts {
  readonly client: Client;
  readonly informers: InformerSet;
  readonly events: EventBroadcaster;
}

/** A name that is part of log lines, of metrics and of the names of controllers. */
const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** The other clusters of a program. */
export class RemoteClusters {
  readonly #open: (name: string, client: Client) => ClusterParts;
  readonly #kits = new Map<string, { readonly client: Client; readonly kit: ControllerKit }>();
  readonly #parts: ClusterParts[] = [];
  #isClosed = false;

  /** @param open creates the parts of a cluster */
  constructor(open: (name: string, client: Client) => ClusterParts) {
    this.#open = open;
  }

  /** Returns the kit of a cluster, which is `kit` with the parts of that cluster. */
  kit(kit: ControllerKit, name: string, client: Client): ControllerKit {
    const known = this.#kits.get(name);
    if (known?.client === client) return known.kit;
    if (known) throw new Error(`forCluster: the cluster ${name} has another client`);
    if (!NAME.test(name)) {
      throw new RangeError(
        `forCluster: the name ${JSON.stringify(name)} must consist of lower-case letters, digits and "-"`,
      );
    }
    if (this.#isClosed) throw new Error('forCluster: call it in the option controllers');
    const parts = this.#open(name, client);
    this.#parts.push(parts);
    const remote = { ...kit, ...parts, cluster: name, log: kit.log.with({ cluster: name }) };
    this.#kits.set(name, { client, kit: remote });
    return remote;
  }

  /** Returns the parts of all clusters. No cluster can be added afterwards. */
  close(): readonly ClusterParts[] {
    this.#isClosed = true;
    return this.#parts;
  }
}
