import type { KubernetesObject, ObjectList, WatchEvent } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type {
  Client,
  ListOptions,
  Selection,
  WatchOptions,
  WatchStream,
} from '../client/client.ts';
import { formatShardRange, isInShard } from '../api/shard-range.ts';
import type { ShardRange } from '../api/shard-range.ts';

/** What is asked of a list; which objects is settled by the source. */
export type ListRequest = Omit<ListOptions, keyof Selection>;

/** What a reflector asks of a watch; which objects is settled by the source. */
export type WatchRequest = Omit<WatchOptions, keyof Selection | 'metadataOnly'>;

/** The two calls that a reflector needs, bound to one resource and selection. */
export interface ListerWatcher<T extends KubernetesObject> {
  /** Lists one page. */
  list(request: ListRequest): Promise<ObjectList<T>>;
  /** Opens a watch. */
  watch(request: WatchRequest): Promise<WatchStream<T>>;
}

/**
 * The objects of `resource` within `selection`, whole or as metadata. One selection serves list and
 * watch, so that the watch never reports what the list did not count.
 */
export function listerWatcher<T extends KubernetesObject>(
  client: Pick<Client, 'list' | 'watch'>,
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
  };
}

/**
 * What of `source` is in one shard. Servers that know shards (ShardedListAndWatch, KEP-5866) send
 * nothing else; others ignore the wish and send everything, and here it is dropped. Who belongs to a
 * shard never changes, so that nothing can leave it unseen.
 */
export function withinShard<T extends KubernetesObject>(
  source: ListerWatcher<T>,
  range: ShardRange,
): ListerWatcher<T> {
  const shardSelector = formatShardRange(range);
  return {
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

/** A watch in which changes to objects of other shards are bookmarks: time goes on by them, too. */
class ShardStream<T extends KubernetesObject> implements WatchStream<T> {
  readonly #stream: WatchStream<T>;
  readonly #range: ShardRange;
  /** The initial state comes in no order of resourceVersions: nothing in it is a bookmark. */
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
    for await (const event of this.#stream) yield* this.#own(event);
  }

  async *#filtered(
    batches: AsyncIterable<readonly WatchEvent<T>[]>,
  ): AsyncGenerator<readonly WatchEvent<T>[]> {
    for await (const batch of batches) yield batch.flatMap((event) => this.#own(event));
  }

  #own(event: WatchEvent<T>): readonly WatchEvent<T>[] {
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
