import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** An event that is buffered or being written. */
export interface PendingEvent {
  /** Key of the event on the server; equal keys are merged. */
  readonly key: string;
  /** Identity of the involved object; its events are written in order. */
  readonly object: string;
  /** Its latest state. */
  event: RecordedEvent;
  /** Number of attempts. */
  attempts: number;
  /** Resolves after the first attempt, or when no attempt will be made soon. Never rejects. */
  readonly attempted: Deferred;
}

/** The pending events of one object, in order. The state is `writing` while the first one is written. */
interface Lane {
  readonly events: PendingEvent[];
  state: 'ready' | 'writing' | 'waiting';
  /** Cancels the retry timer of a lane that is `waiting`. */
  cancel?: () => void;
}

/**
 * Buffer of events to write, with at most `capacity` entries. An event with the key of a buffered event
 * replaces its state, also if the buffer is full. Events of one object are written one at a time, in order.
 * Objects take turns. A retried event delays only events of the same object.
 */
export class EventBuffer {
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #lanes = new Map<string, Lane>();
  /** Ready lanes, in order. */
  readonly #ready: Lane[] = [];
  /** Events that are not being written: their state can be replaced. */
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

  /** Waits for the next event to write; undefined after `close`. Call `done` or `retry` for it. */
  take(): Promise<PendingEvent | undefined> {
    const taker = new Deferred<PendingEvent | undefined>();
    if (this.#isClosed) {
      taker.resolve(undefined);
    } else {
      this.#takers.push(taker);
      this.#dispatch();
    }
    return taker.promise;
  }

  /** Removes an event that was written or dropped. */
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

  /** Makes the event available again after `ms`, with its latest state, before other events of its object. */
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

  /** Ends all retry delays. */
  endRetryDelays(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.state !== 'waiting') continue;
      lane.cancel?.();
      this.#makeReady(lane);
    }
  }

  /** Calls `callback` whenever the buffer becomes empty. Returns a function that unsubscribes. */
  onEmpty(callback: () => void): () => void {
    this.#emptied.add(callback);
    return () => this.#emptied.delete(callback);
  }

  /** Drops all events, including those being written, and ends all waits. Returns the number of dropped events. */
  close(): number {
    const lost = this.#size;
    this.#isClosed = true;
    for (const lane of this.#lanes.values()) {
      lane.cancel?.();
      for (const { attempted } of lane.events) attempted.resolve();
    }
    this.#lanes.clear();
    this.#ready.length = 0;
    this.#waiting.clear();
    this.#size = 0;
    for (const taker of this.#takers.splice(0)) taker.resolve(undefined);
    return lost;
  }

  #makeReady(lane: Lane): void {
    lane.state = 'ready';
    this.#ready.push(lane);
    this.#dispatch();
  }

  #dispatch(): void {
    while (this.#takers.length > 0) {
      const lane = this.#ready.shift();
      const pending = lane?.events[0];
      if (!lane || !pending) return;
      lane.state = 'writing';
      this.#waiting.delete(pending.key);
      pending.attempts++;
      this.#takers.shift()?.resolve(pending);
    }
  }
}
