import type { ObjectKey } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';

/** One step of the cache's history, in the order the server told it. */
export type Delta<O> =
  | {
      readonly type: 'changed';
      readonly key: ObjectKey;
      readonly object: O;
      /** Part of a state sent in no particular order: its resourceVersion says nothing of others. */
      readonly unordered?: true;
    }
  /** `lastKnown` is the state in which the server deleted it. */
  | { readonly type: 'deleted'; readonly key: ObjectKey; readonly lastKnown: O }
  /**
   * These objects and no others.
   *
   * - `quorumReadMs`: `Clock.monotonic()` when the quorum read began that fetched them; absent if a
   *   cache of the server may have answered.
   */
  | {
      readonly type: 'replaced';
      readonly objects: readonly O[];
      readonly resourceVersion: string;
      readonly quorumReadMs?: number;
    }
  /** Nothing more has changed up to `resourceVersion`: a bookmark. */
  | { readonly type: 'synced'; readonly resourceVersion: string }
  /** Handlers whose resync is due see every object again. */
  | { readonly type: 'resync' };

/** Where a reflector puts what it learns. */
export interface DeltaSink<O> {
  /** A promise only if the producer should wait before it goes on. */
  push(delta: Delta<O>): Promise<void> | undefined;
}

/** Options of `DeltaQueue`. */
export interface DeltaQueueOptions {
  /**
   * Entries that may wait before the producer is asked to.
   * @default 2000
   */
  readonly highWater?: number;
  /**
   * How long entries are processed before other work of the process gets a turn, in milliseconds.
   * @default 10
   */
  readonly sliceMs?: number;
  /**
   * Lets the rest of the process run.
   * @default one turn of the event loop
   */
  readonly yieldTurn?: () => Promise<void>;
  /** Told how long it took to process each run of entries without a pause, in milliseconds. */
  readonly onBatch?: (ms: number) => void;
}

/**
 * Handles one entry. Work that may be long calls `turn.spend` between its pieces and awaits what
 * it returns; entries behind it wait meanwhile.
 */
export type Processor<D> = (entry: D, turn: Turn) => Promise<void> | undefined;

/** The processor's share of time. */
export interface Turn {
  /** One piece of work is done; a promise if it is time to let others run. */
  spend(): Promise<void> | undefined;
}

/** Reading the clock is cheap, not free: it is asked once for so many pieces of work. */
const PIECES_PER_CLOCK_READING = 16;

/** On a clock that stands still, a turn ends after so many pieces. */
const PIECES_PER_TURN = 1000;

/**
 * First in, first out; nothing is merged and nothing overtakes. Consumers see every transition in
 * the server's order, and a relist is a single entry, so no one sees half of it.
 *
 * One consumer takes entries one at a time and gives way to the event loop when its time slice is
 * used up. When more than `highWater` entries wait, `push` returns a promise that resolves once half
 * of them are gone; until then it returns nothing and costs one array slot.
 */
export class DeltaQueue<D> implements Turn {
  readonly #clock: Clock;
  readonly #highWater: number;
  readonly #sliceMs: number;
  readonly #yieldTurn: () => Promise<void>;
  readonly #onBatch: ((ms: number) => void) | undefined;
  #entries: (D | undefined)[] = [];
  /** Position of the oldest entry in `#entries`; those before it are gone. */
  #head = 0;
  #arrival: Deferred | undefined;
  #room: Deferred | undefined;
  #closed = false;
  /** The slice: since the process last had a turn. */
  #sliceStartMs: number;
  #pieces = 0;
  /** The run: since there was last nothing to do, or the process had a turn. */
  #runStartMs: number;

  constructor(clock: Clock, options: DeltaQueueOptions = {}) {
    this.#clock = clock;
    this.#highWater = options.highWater ?? 2000;
    this.#sliceMs = options.sliceMs ?? 10;
    this.#yieldTurn =
      options.yieldTurn ?? (() => new Promise((resolve) => void setImmediate(resolve)));
    this.#onBatch = options.onBatch;
    this.#sliceStartMs = clock.monotonic();
    this.#runStartMs = this.#sliceStartMs;
  }

  /** Entries that wait. */
  get length(): number {
    return this.#entries.length - this.#head;
  }

  /** Appends an entry; once the consumer has ended, drops it. */
  push(entry: D): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#entries.push(entry);
    this.#arrival?.resolve();
    if (this.length <= this.#highWater) return undefined;
    return (this.#room ??= new Deferred()).promise;
  }

  /**
   * Processes entries in order until `signal` aborts; what then waits is dropped. Rejects if
   * `process` throws: an entry that cannot be processed leaves a state nobody can vouch for.
   */
  async consume(process: Processor<D>, signal: AbortSignal): Promise<void> {
    const wake = () => this.#arrival?.resolve();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted) {
        if (this.length === 0) {
          await this.#idle();
          continue;
        }
        const working = process(this.#take(), this);
        if (working) await working;
        const rest = this.spend();
        if (rest) await rest;
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#close();
    }
  }

  spend(): Promise<void> | undefined {
    this.#pieces++;
    if (this.#pieces % PIECES_PER_CLOCK_READING !== 0) return undefined;
    const spentMs = this.#clock.monotonic() - this.#sliceStartMs;
    if (spentMs < this.#sliceMs && this.#pieces < PIECES_PER_TURN) return undefined;
    return this.#rest();
  }

  async #rest(): Promise<void> {
    this.#endRun();
    await this.#yieldTurn();
    this.#startSlice();
  }

  /**
   * Waits for an entry. A slice outlasts a short idleness: entries that come one by one, each as
   * soon as the last is done, would otherwise keep the process busy without an end.
   */
  async #idle(): Promise<void> {
    this.#endRun();
    const sinceMs = this.#clock.monotonic();
    this.#arrival = new Deferred();
    await this.#arrival.promise;
    this.#arrival = undefined;
    this.#runStartMs = this.#clock.monotonic();
    if (this.#runStartMs - sinceMs >= this.#sliceMs) this.#startSlice();
  }

  #startSlice(): void {
    this.#pieces = 0;
    this.#sliceStartMs = this.#clock.monotonic();
    this.#runStartMs = this.#sliceStartMs;
  }

  #endRun(): void {
    if (this.#pieces > 0) this.#onBatch?.(this.#clock.monotonic() - this.#runStartMs);
  }

  #take(): D {
    const entry = this.#entries[this.#head];
    if (entry === undefined) throw new RangeError('The queue is empty');
    this.#entries[this.#head++] = undefined;
    if (this.#head === this.#entries.length) {
      this.#entries.length = 0;
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    if (this.#room && this.length * 2 <= this.#highWater) this.#makeRoom();
    return entry;
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #close(): void {
    this.#closed = true;
    this.#entries.length = 0;
    this.#head = 0;
    this.#makeRoom();
  }
}
