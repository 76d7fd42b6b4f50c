import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Representation } from './negotiation.ts';
import { inVersion, represent } from './negotiation.ts';
import type { Collection } from './object-store.ts';
import { atRevision } from './object-store.ts';
import type { ResourceDefinition, StoredObject } from './resource-definition.ts';
import type { ListOptions } from './selection.ts';
import { StatusError } from './status-error.ts';
import { renderTable } from './table/table.ts';
import type { Change } from './watch-history.ts';

export interface WatcherDeps {
  readonly collection: Collection;
  readonly definition: ResourceDefinition;
  readonly clock: Clock;
  /** The revision of the whole store. */
  readonly revision: () => number;
}

export interface WatcherOptions extends ListOptions {
  readonly representation: Representation;
  /** How often a bookmark is sent, in milliseconds. */
  readonly bookmarkIntervalMs: number;
  /** When the watch ends if the client did not say, in milliseconds. */
  readonly timeoutMs: number;
  /** Events that may wait for a slow client; one more closes the watch. */
  readonly bufferLimit: number;
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

/** Marks the bookmark that ends the initial state. */
const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };
/** A bookmark also comes this long before the end, so that the next watch begins where it ended. */
const LAST_BOOKMARK_BEFORE_END_MS = 2000;
/** Waiting events are handed over in pieces of about this size. */
const CHUNK_BYTES = 64 * 1024;

const encoder = new TextEncoder();

/**
 * One client's watch: a stream of JSON lines.
 *
 * It begins at the most recent state (every object as ADDED, then a bookmark), or after an exact
 * revision, and then says every change that its selection sees, in order, each once: an object that
 * starts to match is ADDED, one that stops is DELETED as it last matched. It ends when its time is
 * up, when its resource goes away, or when the client reads so slowly that more than `bufferLimit`
 * events wait. An ERROR event is always the last.
 */
export class Watcher implements AsyncIterable<Uint8Array> {
  readonly #deps: WatcherDeps;
  readonly #options: WatcherOptions;
  /** What the client has not taken yet. */
  readonly #waiting: Uint8Array[] = [];
  /** Objects of the initial state that are not encoded yet: they do not count as waiting. */
  #initial: StoredObject[] = [];
  /** Revision of the initial state. */
  readonly #initialRevision: number;
  #initialPending = false;
  #ended = false;
  #headersSent = false;
  #wake = new Deferred();
  #onEnd: () => void = () => undefined;
  readonly #cancels: (() => void)[] = [];

  /** Subscribes at once: what is written from now on is not missed. */
  constructor(deps: WatcherDeps, options: WatcherOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#initialRevision = deps.revision();
    this.#begin();
  }

  /** Ends the stream after what is waiting. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const cancel of this.#cancels) cancel();
    this.#wake.resolve();
    this.#onEnd();
  }

  /** Calls `callback` once the stream takes nothing in any more. */
  whenEnded(callback: () => void): void {
    if (this.#ended) callback();
    else this.#onEnd = callback;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#take();
        if (chunk) yield chunk;
        else if (this.#ended) return;
        else {
          this.#wake = new Deferred();
          await this.#wake.promise;
        }
      }
    } finally {
      this.end();
    }
  }

  #begin(): void {
    const { collection, clock } = this.#deps;
    const { revision = 0, selection, sendInitialEvents, timeoutSeconds, timeoutMs } = this.#options;
    if (revision === 0 || sendInitialEvents) {
      this.#initial = collection
        .list(selection.namespace)
        .filter((object) => selection.matches(object))
        .toReversed();
      this.#initialPending = true;
    } else {
      try {
        for (const change of collection.history.since(revision)) this.#offer(change, new Map());
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        this.#push(encode('ERROR', error.status));
        this.end();
        return;
      }
    }
    // A history older than the buffer is long is replayed whole: it is bounded itself.
    this.#cancels.push(
      collection.history.subscribe(
        (change, shared) => {
          if (change.revision <= revision) return;
          this.#offer(change, shared);
          if (this.#waiting.length > this.#options.bufferLimit) this.#giveUp();
        },
        () => this.end(),
      ),
    );
    const lifetimeMs = timeoutSeconds === undefined ? timeoutMs : timeoutSeconds * 1000;
    this.#cancels.push(clock.after(lifetimeMs, () => this.end()));
    if (this.#options.allowBookmarks) this.#scheduleBookmarks(lifetimeMs);
  }

  /** The client does not keep up: what waits is dropped with the connection, it can resume. */
  #giveUp(): void {
    this.#waiting.length = 0;
    this.#initial = [];
    this.#initialPending = false;
    this.end();
  }

  #scheduleBookmarks(lifetimeMs: number): void {
    const { clock } = this.#deps;
    const beat = () => {
      this.#bookmark({});
      cancel = clock.after(this.#options.bookmarkIntervalMs, beat);
    };
    let cancel = clock.after(this.#options.bookmarkIntervalMs, beat);
    this.#cancels.push(() => cancel());
    const lastMs = lifetimeMs - LAST_BOOKMARK_BEFORE_END_MS;
    if (lastMs > 0) this.#cancels.push(clock.after(lastMs, () => this.#bookmark({})));
  }

  #bookmark(annotations: Readonly<Record<string, string>>, revision?: number): void {
    // Nothing may say "you have seen everything up to here" before the initial state is out.
    if (this.#initialPending && revision === undefined) return;
    const { definition } = this.#deps;
    const resourceVersion = String(revision ?? this.#deps.revision());
    const metadata = {
      resourceVersion,
      creationTimestamp: null,
      ...(Object.keys(annotations).length > 0 && { annotations }),
    };
    const { apiVersion, kind } = this.#identity(definition);
    this.#push(encode('BOOKMARK', { kind, apiVersion, metadata }));
  }

  #identity(definition: ResourceDefinition): { apiVersion: string; kind: string } {
    if (this.#options.representation.form === 'metadata') {
      return { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata' };
    }
    const { group, version, kind } = definition;
    return { apiVersion: group ? `${group}/${version}` : version, kind };
  }

  #offer(change: Change, shared: Map<string, Uint8Array>): void {
    const { selection } = this.#options;
    const { object, previous, removed, revision } = change;
    if (selection.namespace !== undefined && object.metadata.namespace !== selection.namespace) {
      return;
    }
    const matches = !removed && selection.matches(object);
    const matched = previous !== undefined && selection.matches(previous);
    if (matches) this.#say(matched ? 'MODIFIED' : 'ADDED', object, shared);
    else if (matched && removed) this.#say('DELETED', object, shared);
    else if (matched) this.#say('DELETED', atRevision(previous, revision), shared);
  }

  #say(type: EventType, object: StoredObject, shared: Map<string, Uint8Array>): void {
    const { form } = this.#options.representation;
    if (form === 'table') {
      this.#push(this.#encode(type, object));
      return;
    }
    const key = `${type} ${form} ${this.#deps.definition.version}`;
    let line = shared.get(key);
    if (!line) {
      line = this.#encode(type, object);
      shared.set(key, line);
    }
    this.#push(line);
  }

  #push(line: Uint8Array): void {
    this.#waiting.push(line);
    this.#wake.resolve();
  }

  #encode(type: EventType, object: StoredObject): Uint8Array {
    const { definition, clock } = this.#deps;
    const { representation } = this.#options;
    if (representation.form !== 'table') {
      return encode(type, represent(object, definition, representation, clock.now()));
    }
    const table = renderTable(definition, [inVersion(object, definition)], {
      includeObject: representation.includeObject,
      listMeta: { resourceVersion: object.metadata.resourceVersion },
      now: clock.now(),
      noHeaders: this.#headersSent,
    });
    this.#headersSent = true;
    return encode(type, table);
  }

  /** The next piece of the stream: first the initial state, then what waits. */
  #take(): Uint8Array | undefined {
    const lines: Uint8Array[] = [];
    let bytes = 0;
    const add = (line: Uint8Array) => {
      lines.push(line);
      bytes += line.byteLength;
    };
    while (bytes < CHUNK_BYTES && this.#initial.length > 0) {
      const object = this.#initial.pop();
      if (object) add(this.#encode('ADDED', object));
    }
    if (this.#initialPending && this.#initial.length === 0) {
      this.#initialPending = false;
      if (this.#options.allowBookmarks) {
        const later = this.#waiting.splice(0);
        this.#bookmark(INITIAL_EVENTS_END, this.#initialRevision);
        this.#waiting.push(...later);
      }
    }
    if (!this.#initialPending) {
      let taken = 0;
      for (; bytes < CHUNK_BYTES && taken < this.#waiting.length; taken++) {
        const line = this.#waiting[taken];
        if (line) add(line);
      }
      this.#waiting.splice(0, taken);
    }
    if (lines.length <= 1) return lines[0];
    const chunk = new Uint8Array(bytes);
    let offset = 0;
    for (const line of lines) {
      chunk.set(line, offset);
      offset += line.byteLength;
    }
    return chunk;
  }
}

function encode(type: EventType, object: object): Uint8Array {
  return encoder.encode(`${JSON.stringify({ type, object })}\n`);
}
