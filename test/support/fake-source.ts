import { ApiError } from '../../src/api/api-error.ts';
import type { KubernetesObject, ObjectList, WatchEvent } from '../../src/api/object.ts';
import { keyOf } from '../../src/api/object-key.ts';
import type { ObjectKey } from '../../src/api/object-key.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { ListerWatcher, ListRequest, WatchRequest } from '../../src/cache/lister-watcher.ts';
import type { WatchStream } from '../../src/client/client.ts';
import type { Clock } from '../../src/util/clock.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { ConnectionActivity } from '../../src/util/http.ts';

/** A test kind without a generated type. */
export interface Thing extends KubernetesObject {
  kind: 'Thing';
  spec: { value: number };
}

export const THINGS: Resource<Thing> = {
  group: 'test.example',
  version: 'v1',
  plural: 'things',
  kind: 'Thing',
  namespaced: true,
};

/** Returns a stored Thing: `demo/a`, or `a` in the namespace `default`. */
export function thing(key: string, value = 0, resourceVersion = '1'): Thing {
  const [namespace = 'default', name = ''] = key.includes('/') ? key.split('/') : ['default', key];
  return {
    apiVersion: 'test.example/v1',
    kind: 'Thing',
    metadata: {
      namespace,
      name,
      uid: `uid-${namespace}-${name}-${resourceVersion}`,
      resourceVersion,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { value },
  };
}

export type ListCall = { readonly verb: 'list' } & ListRequest;
export type WatchCall = { readonly verb: 'watch' } & WatchRequest;

/** Response to `sendInitialEvents`: supported, rejected, or without a final bookmark. */
export type WatchListMode = 'on' | 'refused' | 'endless';

/**
 * An in-memory server of one resource: objects, resourceVersions, a watch history, pages with tokens that
 * can expire, and faults on demand.
 */
export class FakeSource implements ListerWatcher<Thing> {
  readonly requests: (ListCall | WatchCall)[] = [];
  watchListMode: WatchListMode;
  /** The resource is not served. */
  missing = false;
  /** Lists get no response. Only their signal ends them. */
  listsHang = false;
  /** Duration of a list, in milliseconds. */
  listDelayMs = 0;
  /**
   * Sends nothing on watches, like a broken connection. A watch that missed an event stays stalled, because
   * a connection cannot skip bytes.
   */
  isStalled = false;
  /** Activity of the connections of new watches. */
  activity: ConnectionActivity | undefined;
  readonly #clock: Clock;
  #objects = new Map<ObjectKey, Thing>();
  #resourceVersion: number;
  #history: { resourceVersion: number; event: WatchEvent<Thing> }[] = [];
  #oldest: number;
  #tokens = new Map<string, Thing[]>();
  #failures: { verb: 'list' | 'watch' | 'continue'; error: unknown }[] = [];
  readonly #streams = new Set<FakeStream>();

  constructor(
    clock: Clock,
    {
      watchList = 'on',
      resourceVersion = 10,
    }: { watchList?: WatchListMode; resourceVersion?: number } = {},
  ) {
    this.#clock = clock;
    this.watchListMode = watchList;
    this.#resourceVersion = resourceVersion;
    this.#oldest = resourceVersion;
  }

  get resourceVersion(): string {
    return String(this.#resourceVersion);
  }

  get openWatches(): number {
    return this.#streams.size;
  }

  get lists(): ListCall[] {
    return this.requests
      .filter((request) => request.verb === 'list')
      .filter((list) => !isCheck(list));
  }

  get checks(): ListCall[] {
    return this.requests.filter((request) => request.verb === 'list').filter(isCheck);
  }

  get watches(): WatchCall[] {
    return this.requests.filter((request) => request.verb === 'watch');
  }

  get objects(): readonly Thing[] {
    return [...this.#objects.values()];
  }

  /** Creates or updates an object. */
  put(key: string, value = 0): Thing {
    const resourceVersion = String(++this.#resourceVersion);
    const object = thing(key, value, resourceVersion);
    const present = this.#objects.get(keyOf(object));
    if (present) object.metadata.uid = present.metadata.uid;
    this.#objects.set(keyOf(object), object);
    this.#record({ type: present ? 'modified' : 'added', object });
    return object;
  }

  remove(key: string): void {
    const id = keyOf(thing(key));
    const present = this.#objects.get(id);
    if (!present) throw new Error(`There is no ${key}`);
    this.#objects.delete(id);
    const resourceVersion = String(++this.#resourceVersion);
    const object = { ...present, metadata: { ...present.metadata, resourceVersion } };
    this.#record({ type: 'deleted', object });
  }

  /** Advances the resourceVersion, as changes of other resources do. */
  skip(by = 1): void {
    this.#resourceVersion += by;
  }

  /** Compacts the history: watches from earlier resourceVersions get 410. */
  compact(): void {
    this.#history = [];
    this.#oldest = this.#resourceVersion;
  }

  /** Restores an earlier state, like a backup of etcd. */
  restore(resourceVersion: number, objects: readonly Thing[]): void {
    this.#resourceVersion = resourceVersion;
    this.#objects = new Map(objects.map((object) => [keyOf(object), object]));
    this.compact();
    this.endWatches();
  }

  /**
   * Restores an earlier state while watches stay open, as behind a proxy that keeps connections. The
   * watches get events that are newer than their resourceVersion.
   */
  restoreUnderWatches(resourceVersion: number, objects: readonly Thing[]): void {
    const watches = [...this.#streams];
    this.#streams.clear();
    this.restore(resourceVersion, objects);
    for (const watch of watches) this.#streams.add(watch);
  }

  /** Sends a bookmark on all open watches. */
  bookmark(): void {
    this.emit({ type: 'bookmark', resourceVersion: this.resourceVersion, initialEventsEnd: false });
  }

  /** Sends an event on all open watches without adding it to the history. */
  emit(event: WatchEvent<Thing>): void {
    for (const stream of this.#streams) {
      if (this.isStalled) stream.sever();
      else if (stream.awaits(event)) stream.push(event);
    }
  }

  /** Ends all watches, as the server does after their timeout. */
  endWatches(): void {
    for (const stream of this.#streams) stream.end();
  }

  /** Breaks all connections. */
  resetWatches(error: unknown = unreachable()): void {
    for (const stream of this.#streams) stream.end(error);
  }

  /** Lets the next `times` calls of `verb` fail. `continue` means later pages of a list. */
  failNext(verb: 'list' | 'watch' | 'continue', error: unknown, times = 1): void {
    for (let count = 0; count < times; count++) this.#failures.push({ verb, error });
  }

  async list(request: ListRequest): Promise<ObjectList<Thing>> {
    this.requests.push({ verb: 'list', ...request });
    request.signal?.throwIfAborted();
    this.#failIfTold(request.continueToken ? 'continue' : 'list');
    if (this.missing) throw notFound();
    if (this.listsHang) await aborted(request.signal);
    if (this.listDelayMs > 0) await this.#clock.sleep(this.listDelayMs, request.signal);
    if (request.continueToken) return this.#page(request.continueToken, request.limit);
    this.#requireReached(request.resourceVersion);
    return this.#slice(this.objects.slice(), this.resourceVersion, request.limit);
  }

  async watch(request: WatchRequest): Promise<WatchStream<Thing>> {
    this.requests.push({ verb: 'watch', ...request });
    request.signal?.throwIfAborted();
    this.#failIfTold('watch');
    if (this.missing) throw notFound();
    if (request.sendInitialEvents && this.watchListMode === 'refused') {
      throw apiError('invalid', 'sendInitialEvents: Forbidden', 422);
    }
    const from = request.resourceVersion ?? '';
    // A watch from a future resourceVersion is accepted and sends nothing until it is reached.
    if (request.sendInitialEvents) this.#requireReached(from);
    const stream = new FakeStream(this.#clock, request.signal, Number(from), (ended) =>
      this.#streams.delete(ended),
    );
    stream.activity = this.activity;
    if (request.sendInitialEvents || from === '' || from === '0') {
      for (const object of this.#objects.values()) stream.push({ type: 'added', object });
      if (request.sendInitialEvents && this.watchListMode === 'on') {
        const { resourceVersion } = this;
        stream.push({ type: 'bookmark', resourceVersion, initialEventsEnd: true });
      }
    } else {
      if (Number(from) < this.#oldest) throw expired();
      for (const { resourceVersion, event } of this.#history) {
        if (resourceVersion > Number(from)) stream.push(event);
      }
    }
    this.#streams.add(stream);
    return stream;
  }

  #record(event: WatchEvent<Thing>): void {
    this.#history.push({ resourceVersion: this.#resourceVersion, event });
    this.emit(event);
  }

  #failIfTold(verb: 'list' | 'watch' | 'continue'): void {
    const at = this.#failures.findIndex((failure) => failure.verb === verb);
    if (at >= 0) throw this.#failures.splice(at, 1)[0]!.error;
  }

  #requireReached(resourceVersion: string | undefined): void {
    if (Number(resourceVersion ?? 0) > this.#resourceVersion) throw tooLarge();
  }

  #page(token: string, limit: number | undefined): ObjectList<Thing> {
    const rest = this.#tokens.get(token);
    if (!rest) throw expired();
    return this.#slice(rest, token.split(':')[0]!, limit);
  }

  #slice(all: Thing[], resourceVersion: string, limit = 0): ObjectList<Thing> {
    if (limit === 0 || all.length <= limit) return { items: all, resourceVersion };
    const continueToken = `${resourceVersion}:${this.#tokens.size}`;
    this.#tokens.set(continueToken, all.slice(limit));
    return { items: all.slice(0, limit), resourceVersion, continueToken };
  }
}

class FakeStream implements WatchStream<Thing> {
  lastByteMs: number;
  activity: ConnectionActivity | undefined;
  readonly #clock: Clock;
  readonly #onEnd: (stream: FakeStream) => void;
  readonly #from: number;
  readonly #events: WatchEvent<Thing>[] = [];
  /** Number of events that were sent. */
  #taken = 0;
  #arrival = new Deferred();
  #severed = false;
  #ended = false;
  #error: unknown;

  /** @param from only newer events and bookmarks are sent */
  constructor(
    clock: Clock,
    signal: AbortSignal | undefined,
    from: number,
    onEnd: (stream: FakeStream) => void,
  ) {
    this.#clock = clock;
    this.#from = from;
    this.#onEnd = onEnd;
    this.lastByteMs = clock.monotonic();
    signal?.addEventListener('abort', () => {
      this.#forget();
      this.end();
    });
  }

  /** Stalls the watch: nothing arrives any more. */
  sever(): void {
    this.#severed = true;
  }

  /** Returns false for events that are older than the start of the watch. */
  awaits(event: WatchEvent<Thing>): boolean {
    if (event.type === 'error' || this.#from === 0) return true;
    if (event.type === 'bookmark') return !(Number(event.resourceVersion) < this.#from);
    return !(Number(event.object.metadata.resourceVersion) <= this.#from);
  }

  push(event: WatchEvent<Thing>): void {
    if (this.#severed) return;
    this.lastByteMs = this.#clock.monotonic();
    this.#events.push(event);
    this.#arrival.resolve();
  }

  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#arrival.resolve();
    this.#onEnd(this);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent<Thing>, void> {
    for (;;) {
      const event = this.#events[this.#taken];
      if (event) {
        this.#taken++;
        yield event;
      } else if (this.#error) throw this.#error;
      else if (this.#ended) return;
      else {
        this.#forget();
        await this.#arrival.promise;
        this.#arrival = new Deferred();
      }
    }
  }

  #forget(): void {
    this.#events.length = 0;
    this.#taken = 0;
  }
}

export function apiError(kind: ApiError['kind'], message: string, code = 0): ApiError {
  return new ApiError({ kind, message, code });
}

export function unreachable(): ApiError {
  return apiError('unreachable', 'connect ECONNREFUSED 127.0.0.1:6443');
}

export function expired(): ApiError {
  return apiError('expired', 'The resourceVersion is too old', 410);
}

export function notFound(): ApiError {
  return apiError('notFound', 'the server could not find the requested resource', 404);
}

export function tooLarge(): ApiError {
  return new ApiError({
    kind: 'timeout',
    code: 504,
    message: 'Too large resource version: 20, current: 10',
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    },
  });
}

export function tooManyRequests(retryAfterMs?: number): ApiError {
  return new ApiError({ kind: 'tooManyRequests', code: 429, message: 'slow down', retryAfterMs });
}

/** Reports whether the list only reads the latest resourceVersion, with the metadata of at most one object. */
export function isCheck({ limit, metadataOnly }: ListCall): boolean {
  return limit === 1 && metadataOnly === true;
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error));
  });
}
