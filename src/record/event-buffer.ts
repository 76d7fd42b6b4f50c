import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** An event that waits to be written, or is being written. */
export interface PendingEvent {
  /** What it coalesces by. */
  readonly key: string;
  /** What it keeps its order within. */
  readonly object: string;
  /** Its latest state. */
  event: RecordedEvent;
  /** How often it was handed out. */
  attempts: number;
  /** Resolves when it was tried once, well or not, or will not be tried soon, or at all. */
  readonly attempted: Deferred;
}

/** The pending events of one object, in order. The first one is `held` while it is written. */
interface Lane {
  readonly events: PendingEvent[];
  state: 'ready' | 'held' | 'waiting';
  /** Ends the wait of a lane that is `waiting`. */
  cancel?: () => void;
}

/**
 * Events on their way to the server. There are at most `capacity`; one that is waiting already
 * takes its newer state in, whatever the fill. Events about one object are handed out one at a
 * time, in order; objects take turns, and one whose event must be tried again later waits alone.
 */
export class EventBuffer {
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #lanes = new Map<string, Lane>();
  /** The lanes that are `ready`, in order of their turns. */
  readonly #turns: Lane[] = [];
  /** Events that are not being written, which can therefore still change. */
  readonly #waiting = new Map<string, PendingEvent>();
  readonly #takers: Deferred<PendingEvent | undefined>[] = [];
  readonly #emptied = new Set<() => void>();
  #size = 0;
  #isClosed = false;

  constructor(clock: Clock, capacity: number) {
    this.#clock = clock;
    this.#capacity = capacity;
  }

  /** Events that are waiting or being written. */
  get size(): number {
    return this.#size;
  }

  /** @returns undefined if it is full or closed */
  put(key: string, object: string, event: RecordedEvent): PendingEvent | undefined {
    if (this.#isClosed) return undefined;
    const waiting = this.#waiting.get(key);
    if (waiting) {
      waiting.event = event;
      return waiting;
    }
    if (this.#size >= this.#capacity) return undefined;
    const pending = { key, object, event, attempts: 0, attempted: new Deferred() };
    this.#size++;
    this.#waiting.set(key, pending);
    const lane = this.#lanes.get(object);
    if (lane) {
      lane.events.push(pending);
      if (lane.state === 'waiting') pending.attempted.resolve();
    } else {
      const fresh: Lane = { events: [pending], state: 'ready' };
      this.#lanes.set(object, fresh);
      this.#makeReady(fresh);
    }
    return pending;
  }

  /** The next event to write, when there is one; undefined once closed. End it by `done` or `retry`. */
  take(): Promise<PendingEvent | undefined> {
    const taker = new Deferred<PendingEvent | undefined>();
    if (this.#isClosed) {
      taker.resolve(undefined);
    } else {
      this.#takers.push(taker);
      this.#handOut();
    }
    return taker.promise;
  }

  /** The event was written or given up. */
  done(pending: PendingEvent): void {
    pending.attempted.resolve();
    const lane = this.#lanes.get(pending.object);
    if (!lane) return;
    lane.events.shift();
    this.#size--;
    if (lane.events.length === 0) this.#lanes.delete(pending.object);
    else this.#makeReady(lane);
    if (this.#size === 0) for (const callback of this.#emptied) callback();
  }

  /** Hands the event out again, in its then latest state and before others of its object, after `ms`. */
  retry(pending: PendingEvent, ms: number): void {
    const lane = this.#lanes.get(pending.object);
    if (!lane) return;
    for (const { attempted } of lane.events) attempted.resolve();
    const newer = this.#waiting.get(pending.key);
    if (newer) {
      pending.event = newer.event;
      lane.events.splice(lane.events.indexOf(newer), 1);
      this.#size--;
    }
    this.#waiting.set(pending.key, pending);
    lane.state = 'waiting';
    lane.cancel = this.#clock.after(ms, () => this.#makeReady(lane));
  }

  /** Ends all waits for another attempt. */
  hurry(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.state !== 'waiting') continue;
      lane.cancel?.();
      this.#makeReady(lane);
    }
  }

  /** Calls `callback` whenever the last event is done. The returned function ends that. */
  onEmpty(callback: () => void): () => void {
    this.#emptied.add(callback);
    return () => this.#emptied.delete(callback);
  }

  /** Forgets everything, for good; those being written too. Returns how many events that was. */
  close(): number {
    const lost = this.#size;
    this.#isClosed = true;
    for (const lane of this.#lanes.values()) {
      lane.cancel?.();
      for (const { attempted } of lane.events) attempted.resolve();
    }
    this.#lanes.clear();
    this.#turns.length = 0;
    this.#waiting.clear();
    this.#size = 0;
    for (const taker of this.#takers.splice(0)) taker.resolve(undefined);
    return lost;
  }

  #makeReady(lane: Lane): void {
    lane.state = 'ready';
    this.#turns.push(lane);
    this.#handOut();
  }

  #handOut(): void {
    while (this.#takers.length > 0) {
      const lane = this.#turns.shift();
      const pending = lane?.events[0];
      if (!lane || !pending) return;
      lane.state = 'held';
      this.#waiting.delete(pending.key);
      pending.attempts++;
      this.#takers.shift()?.resolve(pending);
    }
  }
}
