import type { KubernetesObject, ObjectList, WatchEvent } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { formatShardRange, isInShard } from '../api/shard-range.ts';
import type { ShardRange } from '../api/shard-range.ts';
import type { ServerReachability } from '../client/server-reachability.ts';
import type {
  Client,
  ListOptions,
  Selection,
  WatchOptions,
  WatchStream,
} from '../client/client.ts';

/** Options of a list, without the selection, which belongs to the source. */
export type ListRequest = Omit<ListOptions, keyof Selection>;

/** Options of a watch, without the selection, which belongs to the source. */
export type WatchRequest = Omit<WatchOptions, keyof Selection | 'metadataOnly'>;

/** List and watch of one resource and selection. */
export interface ListerWatcher<T extends KubernetesObject> {
  /** Lists one page. */
  list(request: ListRequest): Promise<ObjectList<T>>;
  /** Opens a watch. */
  watch(request: WatchRequest): Promise<WatchStream<T>>;
  /** @default a wait for the server ends only after its whole delay */
  readonly reachability?: ServerReachability | undefined;
}

/**
 * Returns a source for the objects of `resource` within `selection`. List and watch use the same
 * selection, so the watch never sends an object that the list did not contain.
 */
export function listerWatcher<T extends KubernetesObject>(
  client: Pick<Client, 'list' | 'watch' | 'reachability'>,
  resource: Resource<T>,
  selection: Selection = {},
  form: Pick<ListOptions, 'metadataOnly'> = {},
): ListerWatcher<T> {
  const { namespace, labelSelector, fieldSelector } = selection;
  const { metadataOnly } = form;
  const bound = { namespace, labelSelector, fieldSelector, metadataOnly };
  return {
    list: (request) =>
      client.list(resource, {
        ...request,
        ...bound,
        metadataOnly: request.metadataOnly ?? metadataOnly,
      }),
    watch: (request) => client.watch(resource, { ...request, ...bound }),
    reachability: client.reachability,
  };
}

/**
 * Restricts `source` to one shard. Servers that support shards (ShardedListAndWatch, KEP-5866) send
 * only its objects; others ignore the parameter, and the remaining objects are dropped here. The shard
 * of an object never changes, so no object leaves a shard without an event.
 */
export function withinShard<T extends KubernetesObject>(
  source: ListerWatcher<T>,
  range: ShardRange,
): ListerWatcher<T> {
  const shardSelector = formatShardRange(range);
  return {
    reachability: source.reachability,
    list: async (request) => {
      const list = await source.list({ ...request, shardSelector });
      return { ...list, items: list.items.filter(({ metadata }) => isInShard(range, metadata)) };
    },
    watch: async (request) => {
      const stream = await source.watch({ ...request, shardSelector });
      return new ShardStream(stream, range, request.sendInitialEvents ?? false);
    },
  };
}

/** Turns changes to objects of other shards into bookmarks, which advance the resourceVersion too. */
class ShardStream<T extends KubernetesObject> implements WatchStream<T> {
  readonly #stream: WatchStream<T>;
  readonly #range: ShardRange;
  /** Initial events are not ordered by resourceVersion, so none of them becomes a bookmark. */
  #isInitial: boolean;
  readonly batches?: () => AsyncIterable<readonly WatchEvent<T>[]>;

  constructor(stream: WatchStream<T>, range: ShardRange, isInitial: boolean) {
    this.#stream = stream;
    this.#range = range;
    this.#isInitial = isInitial;
    const batched = stream.batches?.bind(stream);
    if (batched) this.batches = () => this.#filtered(batched());
  }

  get lastByteMs(): number {
    return this.#stream.lastByteMs;
  }

  get activity(): WatchStream<T>['activity'] {
    return this.#stream.activity;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<WatchEvent<T>> {
    for await (const event of this.#stream) yield* this.#filter(event);
  }

  async *#filtered(
    batches: AsyncIterable<readonly WatchEvent<T>[]>,
  ): AsyncGenerator<readonly WatchEvent<T>[]> {
    for await (const batch of batches) yield batch.flatMap((event) => this.#filter(event));
  }

  #filter(event: WatchEvent<T>): readonly WatchEvent<T>[] {
    if (event.type === 'error') return [event];
    if (event.type === 'bookmark') {
      if (event.initialEventsEnd) this.#isInitial = false;
      return [event];
    }
    const { metadata } = event.object;
    if (isInShard(this.#range, metadata)) return [event];
    if (this.#isInitial) return [];
    const { resourceVersion } = metadata;
    return [{ type: 'bookmark', resourceVersion, initialEventsEnd: false }];
  }
}
