import type { Clock } from '../../util/clock.ts';
import { Deferred } from '../../util/deferred.ts';
import { concatBytes } from '../../util/bytes.ts';
import type { LineCache } from './line-cache.ts';
import type { Representation } from '../request/negotiation.ts';
import type { Collection } from '../storage/object-store.ts';
import { atRevision } from '../storage/object-store.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { RequestedList } from '../request/list-options.ts';
import { StatusError, tooLargeResourceVersion } from '../objects/status-error.ts';
import type { ObjectEventType } from './watch-encoder.ts';
import { WatchEncoder } from './watch-encoder.ts';
import type { Change } from '../storage/watch-history.ts';

export interface WatcherDeps {
  readonly collection: Collection;
  readonly definition: ResourceDefinition;
  readonly clock: Clock;
  readonly lines: LineCache;
  /** The revision of the whole store. */
  readonly revision: () => number;
  /** Converts objects to the version of the watch, if their CRD has a webhook for it. */
  readonly prepare: (objects: readonly StoredObject[]) => Promise<void> | undefined;
  /** Called with the number of sent events. */
  readonly sent?: ((events: number) => void) | undefined;
}

export interface WatcherOptions extends RequestedList {
  readonly representation: Representation;
  /** How often a bookmark is sent, in milliseconds. */
  readonly bookmarkIntervalMs: number;
  /** When the watch ends if the client did not say, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum number of queued events; one more ends the watch. */
  readonly bufferLimit: number;
}

/** Time between the last bookmark and the end, so that the next watch resumes near the end. */
const LAST_BOOKMARK_BEFORE_END_MS = 2000;

/** A change that the client is sent. It is encoded then. */
interface QueuedEvent {
  readonly kind: 'event';
  readonly revision: number;
  readonly type: ObjectEventType;
  readonly object: StoredObject;
}

type Waiting =
  | QueuedEvent
  /** A change that is selected after its conversion. Its previous state has its revision. */
  | { readonly kind: 'change'; readonly revision: number; readonly change: Change }
  | { readonly kind: 'line'; readonly line: Uint8Array };

/** Approximate size of the pieces in which queued events are sent. */
const CHUNK_BYTES = 64 * 1024;

/**
 * The watch of one client: a stream of JSON lines.
 *
 * It starts with the most recent state (every object as ADDED, then a bookmark), or after an exact
 * revision, and then sends every selected change in order, each once: an object that starts to match is
 * ADDED, one that stops matching is DELETED in its last matching state. It ends at its timeout, when its
 * resource is no longer served, or when the client reads so slowly that more than `bufferLimit` events
 * are queued or the history drops one of them. An ERROR event is always the last.
 *
 * Queued events refer to objects in the store or the history, so a slow client needs no memory of its own.
 */
export class Watcher implements AsyncIterable<Uint8Array> {
  readonly #deps: WatcherDeps;
  readonly #options: WatcherOptions;
  readonly #encoder: WatchEncoder;
  /** Objects of the initial state that were not sent yet, in reverse order. */
  #initial: StoredObject[] = [];
  /** True until the end of the initial state was sent. */
  #initialPending = false;
  readonly #initialRevision: number;
  /** Events after the initial state that were not sent yet. */
  #waiting: Waiting[] = [];
  #ended = false;
  #wake = new Deferred();
  #onEnd: () => void = () => undefined;
  readonly #cancels: (() => void)[] = [];

  /** Subscribes at once, so that no later write is missed. */
  constructor(deps: WatcherDeps, options: WatcherOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#encoder = new WatchEncoder(deps.definition, options.representation, deps.clock);
    this.#initialRevision = deps.revision();
    if (this.#collectInitialState()) this.#follow();
  }

  /** Ends the stream after the queued events. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const cancel of this.#cancels) cancel();
    this.#wake.resolve();
    this.#onEnd();
  }

  /** Calls `callback` when the stream accepts no more events. */
  whenEnded(callback: () => void): void {
    if (this.#ended) callback();
    else this.#onEnd = callback;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        if (this.#deps.definition.conversion) await this.#prepare();
        const chunk = this.#take();
        if (chunk) yield chunk;
        else if (this.#ended) return;
        else {
          this.#wake = new Deferred();
          await this.#wake.promise;
        }
      }
    } finally {
      this.#waiting = [];
      this.end();
    }
  }

  /** Converts all objects that wait. A failure ends the stream with its error. */
  async #prepare(): Promise<void> {
    try {
      for (;;) {
        const events = this.#waiting.flatMap((each) => {
          if (each.kind === 'line') return [];
          if (each.kind === 'event') return each.object;
          const { object, previous, removed } = each.change;
          return removed ? [previous] : [object, previous];
        });
        const objects = [...this.#initial, ...events].filter((each) => each !== undefined);
        const preparing = this.#deps.prepare(objects);
        if (preparing === undefined) return;
        await preparing;
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      this.#giveUp();
      this.#sendError(error);
    }
  }

  /** Collects the initial state. Returns false if the stream ends with it. */
  #collectInitialState(): boolean {
    const { collection } = this.#deps;
    const { revision = 0, selection, sendInitialEvents = revision === 0 } = this.#options;
    if (sendInitialEvents) {
      if (revision > this.#initialRevision) {
        return this.#sendError(tooLargeResourceVersion(revision, this.#initialRevision));
      }
      this.#initial = collection
        .list(selection.namespace)
        .filter((object) => selection.converts || selection.matches(object))
        .toReversed();
      this.#initialPending = true;
      return true;
    }
    // From any revision without initial state means from now on.
    if (revision === 0) return true;
    try {
      for (const change of collection.history.since(revision)) this.#offer(change);
      return true;
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return this.#sendError(error);
    }
  }

  #sendError({ status }: StatusError): false {
    this.#push({ kind: 'line', line: this.#encoder.error(status) });
    this.end();
    return false;
  }

  #follow(): void {
    const { collection, clock } = this.#deps;
    const { revision = 0, timeoutSeconds, timeoutMs, allowBookmarks, bufferLimit } = this.#options;
    this.#cancels.push(
      collection.history.follow({
        onChange: (change) => {
          // A client can know a future revision; nothing is sent until the server reaches it.
          if (change.revision <= revision) return;
          this.#offer(change);
          if (this.#waiting.length > bufferLimit) this.#giveUp();
        },
        onForgotten: (forgotten) => {
          const next = this.#nextRevision();
          if (next !== undefined && next <= forgotten) this.#giveUp();
        },
        onEnd: () => this.end(),
      }),
    );
    const lifetimeMs = timeoutSeconds === undefined ? timeoutMs : timeoutSeconds * 1000;
    this.#cancels.push(clock.after(lifetimeMs, () => this.end()));
    if (allowBookmarks) this.#beat(lifetimeMs);
  }

  #beat(lifetimeMs: number): void {
    const { clock } = this.#deps;
    const { bookmarkIntervalMs } = this.#options;
    const beat = () => {
      this.#bookmark();
      cancel = clock.after(bookmarkIntervalMs, beat);
    };
    let cancel = clock.after(bookmarkIntervalMs, beat);
    this.#cancels.push(() => cancel());
    const lastMs = lifetimeMs - LAST_BOOKMARK_BEFORE_END_MS;
    if (lastMs > 0) this.#cancels.push(clock.after(lastMs, () => this.#bookmark()));
  }

  #bookmark(): void {
    // After a restore, a client that knows a later revision is sent nothing until the server passes it.
    if (this.#deps.revision() < (this.#options.revision ?? 0)) return;
    // It is sent after the initial state and earlier events.
    this.#push({ kind: 'line', line: this.#encoder.bookmark(this.#deps.revision(), false) });
  }

  /** The client is too slow: drops the queued events and the connection. The client can resume. */
  #giveUp(): void {
    this.#waiting = [];
    this.#initial = [];
    this.#initialPending = false;
    this.end();
  }

  /** The revision of the oldest change, after the initial state if that waits, that waits. */
  #nextRevision(): number | undefined {
    if (this.#initial.length > 0) return this.#initialRevision + 1;
    return this.#waiting.find((waiting) => waiting.kind !== 'line')?.revision;
  }

  #offer(change: Change): void {
    const { namespace, converts } = this.#options.selection;
    const { object, previous, removed, revision } = change;
    if (namespace !== undefined && object.metadata.namespace !== namespace) return;
    if (converts) {
      const last = removed ? object : previous && atRevision(previous, revision);
      this.#push({ kind: 'change', revision, change: { ...change, previous: last } });
      return;
    }
    const event = this.#selected(change);
    if (event) this.#push(event);
  }

  /** Returns the event of a change; undefined if the object is not selected before and after it. */
  #selected({ object, previous, removed, revision }: Change): QueuedEvent | undefined {
    const { matches, converts } = this.#options.selection;
    const wasIn = previous !== undefined && matches(previous);
    if (!removed && matches(object)) {
      return { kind: 'event', revision, type: wasIn ? 'MODIFIED' : 'ADDED', object };
    }
    if (!wasIn) return undefined;
    // The last matching state, with the revision at which it stopped matching.
    const last = removed ? object : converts ? previous : atRevision(previous, revision);
    return { kind: 'event', revision, type: 'DELETED', object: last };
  }

  #push(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#wake.resolve();
  }

  /** Returns the next piece of the stream: first the initial state, then queued events. */
  #take(): Uint8Array | undefined {
    const lines: Uint8Array[] = [];
    let bytes = 0;
    for (const line of this.#lines()) {
      lines.push(line);
      bytes += line.byteLength;
      if (bytes >= CHUNK_BYTES) break;
    }
    this.#deps.sent?.(lines.length);
    return lines.length <= 1 ? lines[0] : concatBytes(lines, bytes);
  }

  /** Takes the lines that can be sent now from the queue. */
  *#lines(): Generator<Uint8Array, void, undefined> {
    const { matches, converts } = this.#options.selection;
    for (let object = this.#initial.pop(); object; object = this.#initial.pop()) {
      if (converts && !matches(object)) continue;
      yield this.#encoder.object('ADDED', object);
    }
    if (this.#initialPending) {
      this.#initialPending = false;
      if (this.#options.marksInitialEvents)
        yield this.#encoder.bookmark(this.#initialRevision, true);
    }
    let said = 0;
    try {
      for (const waiting of this.#waiting) {
        said++;
        if (waiting.kind === 'line') {
          yield waiting.line;
          continue;
        }
        const event = waiting.kind === 'event' ? waiting : this.#selected(waiting.change);
        if (event) yield this.#encoder.object(event.type, event.object, this.#deps.lines);
      }
    } finally {
      this.#waiting.splice(0, said);
    }
  }
}
