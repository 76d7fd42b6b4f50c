import { matchesFields, parseFieldSelector } from '../api/field-selector.ts';
import { labelSelectorText, matchesLabels, parseLabelSelector } from '../api/label-selector.ts';
import type { KubernetesObject, ObjectList, WatchEvent } from '../api/object.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { ListOptions, Selection, WatchOptions, WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { isRecord } from '../util/values.ts';
import type { CacheLine } from './format.ts';
import type { ApiPath } from './redaction.ts';

type Change = Extract<WatchEvent<KubernetesObject>, { readonly object: KubernetesObject }>;

/** One recorded cache, as it was at the current time of the replay. */
class ReplayCache {
  readonly line: CacheLine;
  readonly objects = new Map<ObjectKey, KubernetesObject>();
  isSynced = false;
  /** Keys that were not confirmed since lines were lost. */
  #stale = new Set<ObjectKey>();

  constructor(line: CacheLine) {
    this.line = line;
  }

  set(object: KubernetesObject): Change {
    const key = keyOf(object);
    this.#stale.delete(key);
    const isKnown = this.objects.has(key);
    this.objects.set(key, object);
    return { type: isKnown ? 'modified' : 'added', object };
  }

  drop(at: Pick<KubernetesObject, 'metadata'>): Change | undefined {
    const key = keyOf(at);
    const object = this.objects.get(key);
    this.objects.delete(key);
    if (!object) return undefined;
    const { resourceVersion } = at.metadata;
    return {
      type: 'deleted',
      object: { ...object, metadata: { ...object.metadata, resourceVersion } },
    };
  }

  lose(): void {
    this.#stale = new Set(this.objects.keys());
  }

  /** Returns the deletions of objects that were not confirmed. */
  confirm(): Change[] {
    const lost = [...this.#stale]
      .map((key) => this.objects.get(key))
      .filter((each) => each !== undefined);
    this.#stale.clear();
    return lost.map((object) => this.drop(object)).filter((each) => each !== undefined);
  }
}

/** The list and watch of one informer of the replayed program. */
class Feed {
  readonly #caches: readonly ReplayCache[];
  readonly #selects: (object: KubernetesObject) => boolean;
  readonly #clock: Clock;
  #pending: Change[] = [];
  #isListed = false;
  #wake = new Deferred();

  constructor(
    caches: readonly ReplayCache[],
    selects: (object: KubernetesObject) => boolean,
    clock: Clock,
  ) {
    this.#caches = caches;
    this.#selects = selects;
    this.#clock = clock;
  }

  /** Receives a change of a cache. */
  change(cache: ReplayCache, change: Change): void {
    if (!this.#isListed || !this.#caches.includes(cache) || !this.#selects(change.object)) return;
    this.#pending.push(change);
    this.wake();
  }

  wake(): void {
    this.#wake.resolve();
    this.#wake = new Deferred();
  }

  async list(signal: AbortSignal | undefined): Promise<ObjectList<KubernetesObject>> {
    while (this.#caches.some(({ isSynced }) => !isSynced)) await this.#woken(signal);
    this.#isListed = true;
    this.#pending = [];
    const objects = new Map(this.#caches.flatMap((cache) => [...cache.objects]));
    const items = [...objects.values()].filter(this.#selects);
    const versions = items.map(({ metadata }) => Number(metadata.resourceVersion) || 0);
    return { items, resourceVersion: String(versions.reduce((a, b) => Math.max(a, b), 1)) };
  }

  watch(signal: AbortSignal | undefined): WatchStream<KubernetesObject> {
    const clock = this.#clock;
    // The connection of a recording is never silent.
    const activity = {
      get lastMs() {
        return clock.monotonic();
      },
    };
    const events = () => this.#events(signal);
    return {
      activity,
      get lastByteMs() {
        return clock.monotonic();
      },
      [Symbol.asyncIterator]: events,
    };
  }

  async *#events(signal: AbortSignal | undefined): AsyncGenerator<WatchEvent<KubernetesObject>> {
    for (;;) {
      if (signal?.aborted) return;
      const change = this.#pending.shift();
      if (change) yield change;
      else await this.#woken(signal);
    }
  }

  async #woken(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const aborted = new Deferred();
    const abort = () => aborted.resolve();
    signal?.addEventListener('abort', abort, { once: true });
    await Promise.race([this.#wake.promise, aborted.promise]);
    signal?.removeEventListener('abort', abort);
  }
}

/** The caches of a recording, as sources of the informers of the replayed program. */
export class ReplayCaches {
  readonly #caches: ReadonlyMap<number, ReplayCache>;
  readonly #clock: Clock;
  readonly #feeds = new Map<string, Feed>();
  /** Names of caches that the recording does not have. */
  readonly missing = new Set<string>();

  constructor(lines: readonly CacheLine[], clock: Clock) {
    this.#caches = new Map(lines.map((line) => [line.id, new ReplayCache(line)]));
    this.#clock = clock;
  }

  set(id: number, object: KubernetesObject): void {
    this.#change(id, (cache) => cache.set(object));
  }

  drop(id: number, at: Pick<KubernetesObject, 'metadata'>): void {
    this.#change(id, (cache) => cache.drop(at));
  }

  synced(id: number): void {
    const cache = this.#caches.get(id);
    if (cache) cache.isSynced = true;
    for (const feed of this.#feeds.values()) feed.wake();
  }

  /** Lines were lost. */
  lose(): void {
    for (const cache of this.#caches.values()) cache.lose();
  }

  /** All objects were recorded again. */
  confirm(): void {
    for (const cache of this.#caches.values()) {
      for (const change of cache.confirm()) this.#tell(cache, change);
    }
  }

  /** Returns the object of a path, if a cache has it. */
  find({ group, plural, namespace, name }: ApiPath): KubernetesObject | undefined {
    if (name === undefined) return undefined;
    const key = objectKey(namespace, name);
    return this.#within(group, plural, undefined)
      .map(({ objects }) => objects.get(key))
      .find((object) => object !== undefined);
  }

  /** Returns the objects of the path of a list. */
  all({ group, plural, namespace }: ApiPath): KubernetesObject[] {
    const objects = new Map<ObjectKey, KubernetesObject>();
    for (const cache of this.#within(group, plural, undefined)) {
      for (const [key, object] of cache.objects) objects.set(key, object);
    }
    return [...objects.values()].filter(
      ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
    );
  }

  list(
    resource: Resource,
    options: ListOptions,
    cluster: string | undefined,
  ): Promise<ObjectList<KubernetesObject>> {
    return this.#feed(resource, options, cluster).list(options.signal);
  }

  watch(
    resource: Resource,
    options: WatchOptions,
    cluster: string | undefined,
  ): WatchStream<KubernetesObject> {
    return this.#feed(resource, options, cluster).watch(options.signal);
  }

  #change(id: number, change: (cache: ReplayCache) => Change | undefined): void {
    const cache = this.#caches.get(id);
    const made = cache && change(cache);
    if (made) this.#tell(cache, made);
  }

  #tell(cache: ReplayCache, change: Change): void {
    for (const feed of this.#feeds.values()) feed.change(cache, change);
  }

  #within(group: string, plural: string, cluster: string | undefined): ReplayCache[] {
    return [...this.#caches.values()].filter(
      ({ line }) => line.group === group && line.plural === plural && line.cluster === cluster,
    );
  }

  /** Returns the recorded cache with the same selection. Without one, those of the resource, and selects among their objects. */
  #feed(
    resource: Resource,
    {
      namespace,
      labelSelector,
      fieldSelector,
      metadataOnly = false,
    }: Selection & Pick<ListOptions, 'metadataOnly'>,
    cluster: string | undefined,
  ): Feed {
    const labels = labelSelectorText(labelSelector);
    const name = [
      cluster,
      groupResourceOf(resource),
      namespace,
      labels,
      fieldSelector,
      metadataOnly,
    ].join(' ');
    const known = this.#feeds.get(name);
    if (known) return known;
    const ofResource = this.#within(resource.group, resource.plural, cluster);
    const equal = ofResource.filter(
      ({ line }) =>
        line.namespace === namespace &&
        (line.labelSelector ?? '') === (labels ?? '') &&
        (line.fieldSelector ?? '') === (fieldSelector ?? '') &&
        line.metadataOnly === metadataOnly,
    );
    const caches = equal.length > 0 ? equal : ofResource;
    if (caches.length === 0) this.missing.add(groupResourceOf(resource));
    const selects = equal.length > 0 ? () => true : selectorOf(namespace, labels, fieldSelector);
    const feed = new Feed(caches, selects, this.#clock);
    this.#feeds.set(name, feed);
    return feed;
  }
}

function selectorOf(
  namespace: string | undefined,
  labels: string | undefined,
  fields: string | undefined,
): (object: KubernetesObject) => boolean {
  const ofLabels = parseLabelSelector(labels ?? '');
  const ofFields = parseFieldSelector(fields ?? '');
  return (object) =>
    (!namespace || object.metadata.namespace === namespace) &&
    matchesLabels(ofLabels, object.metadata.labels ?? {}) &&
    matchesFields(ofFields, (field) => textAt(object, field));
}

function textAt(object: unknown, field: string): string {
  let value: unknown = object;
  for (const step of field.split('.')) value = isRecord(value) ? value[step] : undefined;
  return typeof value === 'string' ? value : '';
}
