import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { MaybePromise } from '../util/maybe-promise.ts';
import type { LineCache } from './line-cache.ts';
import type { Representation } from './negotiation.ts';
import type { Collection } from './object-store.ts';
import { atRevision } from './object-store.ts';
import type { ResourceDefinition, StoredObject } from './resource-definition.ts';
import type { ListOptions } from './selection.ts';
import { StatusError, tooLargeResourceVersion } from './status-error.ts';
import type { ObjectEventType } from './watch-encoder.ts';
import { WatchEncoder } from './watch-encoder.ts';
import type { Change } from './watch-history.ts';

export interface WatcherDeps {
  readonly collection: Collection;
  readonly definition: ResourceDefinition;
  readonly clock: Clock;
  readonly lines: LineCache;
  /** The revision of the whole store. */
  readonly revision: () => number;
  /** Converts objects to the version of the watch, if their CRD has a webhook for it. */
  readonly prepare: (objects: readonly StoredObject[]) => MaybePromise<void>;
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

/** A bookmark also comes this long before the end, so that the next watch begins where it ended. */
const LAST_BOOKMARK_BEFORE_END_MS = 2000;
/** What a client was not sent yet: the event of a change, encoded when its turn comes, or a line. */
type Waiting =
  | {
      readonly kind: 'event';
      readonly revision: number;
      readonly type: ObjectEventType;
      readonly object: StoredObject;
    }
  | { readonly kind: 'line'; readonly line: Uint8Array };

/** Waiting events are handed over in pieces of about this size. */
const CHUNK_BYTES = 64 * 1024;

/**
 * One client's watch: a stream of JSON lines.
 *
 * It begins at the most recent state (every object as ADDED, then a bookmark), or after an exact
 * revision, and then says every change that its selection sees, in order, each once: an object that
 * starts to match is ADDED, one that stops is DELETED as it last matched. It ends when its time is
 * up, when its resource goes away, or when the client reads so slowly that more than `bufferLimit`
 * events wait or the history forgets one of them. An ERROR event is always the last.
 *
 * What waits are objects that the store or the history holds anyway, so a slow client costs no memory
 * of its own.
 */
export class Watcher implements AsyncIterable<Uint8Array> {
  readonly #deps: WatcherDeps;
  readonly #options: WatcherOptions;
  readonly #encoder: WatchEncoder;
  /** Objects of the initial state that were not taken yet, the last one first. */
  #initial: StoredObject[] = [];
  /** True until the end of the initial state was taken. */
  #initialPending = false;
  readonly #initialRevision: number;
  /** What came after the initial state and was not taken yet. */
  #waiting: Waiting[] = [];
  #ended = false;
  #wake = new Deferred();
  #onEnd: () => void = () => undefined;
  readonly #cancels: (() => void)[] = [];

  /** Subscribes at once: what is written from now on is not missed. */
  constructor(deps: WatcherDeps, options: WatcherOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#encoder = new WatchEncoder(deps.definition, options.representation, deps.clock);
    this.#initialRevision = deps.revision();
    if (this.#begin()) this.#follow();
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
        const events = this.#waiting.flatMap((each) =>
          each.kind === 'event' ? [each.object] : [],
        );
        const preparing = this.#deps.prepare([...this.#initial, ...events]);
        if (preparing === undefined) return;
        await preparing;
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      this.#giveUp();
      this.#refuse(error);
    }
  }

  /** Gathers what the stream begins with; false if it ends there. */
  #begin(): boolean {
    const { collection } = this.#deps;
    const { revision = 0, selection, sendInitialEvents = revision === 0 } = this.#options;
    if (sendInitialEvents) {
      if (revision > this.#initialRevision) {
        return this.#refuse(tooLargeResourceVersion(revision, this.#initialRevision));
      }
      this.#initial = collection
        .list(selection.namespace)
        .filter((object) => selection.matches(object))
        .toReversed();
      this.#initialPending = true;
      return true;
    }
    // From any state on, without that state: from now on.
    if (revision === 0) return true;
    try {
      for (const change of collection.history.since(revision)) this.#offer(change);
      return true;
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return this.#refuse(error);
    }
  }

  #refuse({ status }: StatusError): false {
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
          // A client may know a revision that is still to come; until then nothing is sent.
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
    // A client that is ahead, of a server that was restored, is sent nothing until that is past.
    if (this.#deps.revision() < (this.#options.revision ?? 0)) return;
    // It waits behind the initial state and all that came before it.
    this.#push({ kind: 'line', line: this.#encoder.bookmark(this.#deps.revision(), false) });
  }

  /** The client does not keep up: what waits is dropped with the connection, it can resume. */
  #giveUp(): void {
    this.#waiting = [];
    this.#initial = [];
    this.#initialPending = false;
    this.end();
  }

  /** The revision of the oldest change, after the initial state if that waits, that waits. */
  #nextRevision(): number | undefined {
    if (this.#initial.length > 0) return this.#initialRevision + 1;
    return this.#waiting.find((waiting) => waiting.kind === 'event')?.revision;
  }

  #offer({ object, previous, removed, revision }: Change): void {
    const { namespace, matches } = this.#options.selection;
    if (namespace !== undefined && object.metadata.namespace !== namespace) return;
    const isIn = !removed && matches(object);
    const wasIn = previous !== undefined && matches(previous);
    if (isIn) {
      this.#push({ kind: 'event', revision, type: wasIn ? 'MODIFIED' : 'ADDED', object });
    } else if (wasIn) {
      // As it last matched, at the revision at which it stopped.
      const last = removed ? object : atRevision(previous, revision);
      this.#push({ kind: 'event', revision, type: 'DELETED', object: last });
    }
  }

  #push(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#wake.resolve();
  }

  /** The next piece of the stream: first the initial state, then what waits. */
  #take(): Uint8Array | undefined {
    const lines: Uint8Array[] = [];
    let bytes = 0;
    for (const line of this.#lines()) {
      lines.push(line);
      bytes += line.byteLength;
      if (bytes >= CHUNK_BYTES) break;
    }
    return lines.length <= 1 ? lines[0] : Buffer.concat(lines, bytes);
  }

  /** What can be said now, line by line; what was said is forgotten. */
  *#lines(): Generator<Uint8Array, void, undefined> {
    for (let object = this.#initial.pop(); object; object = this.#initial.pop()) {
      yield this.#encoder.object('ADDED', object);
    }
    if (this.#initialPending) {
      this.#initialPending = false;
      if (this.#options.allowBookmarks) yield this.#encoder.bookmark(this.#initialRevision, true);
    }
    let said = 0;
    try {
      for (const waiting of this.#waiting) {
        said++;
        yield waiting.kind === 'line'
          ? waiting.line
          : this.#encoder.object(waiting.type, waiting.object, this.#deps.lines);
      }
    } finally {
      this.#waiting.splice(0, said);
    }
  }
}
