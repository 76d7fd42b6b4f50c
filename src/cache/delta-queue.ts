import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { countLazyFields, parseLazyFields, shareFields } from '../client/lazy-object.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import { occurrenceFields } from '../util/rate-limited-log.ts';
import type { RateLimitedLog } from '../util/rate-limited-log.ts';
import { nextTurn } from '../util/next-turn.ts';
import type { Indexer } from './indexer.ts';

/** One change, in the order of the server. */
export type Delta<O> =
  | {
      readonly type: 'changed';
      readonly key: ObjectKey;
      readonly object: O;
      /** Part of an unordered initial state: other changes up to its resourceVersion may be missing. */
      readonly unordered?: true;
    }
  /** `lastKnown` is the state at the deletion. */
  | { readonly type: 'deleted'; readonly key: ObjectKey; readonly lastKnown: O }
  /**
   * All objects, of a list.
   *
   * - `quorumReadMs`: `Clock.monotonic()` of the start of the quorum read; undefined if a watch cache of
   *   the server may have answered.
   */
  | {
      readonly type: 'replaced';
      readonly objects: readonly O[];
      readonly resourceVersion: string;
      readonly quorumReadMs?: number;
    }
  /** A bookmark: there are no other changes up to `resourceVersion`. */
  | { readonly type: 'synced'; readonly resourceVersion: string }
  /** Calls `onUpdate` for every object, of handlers whose resync is due. */
  | { readonly type: 'resync' };

/** Receives the deltas of a reflector. */
export interface DeltaSink<O> {
  /** Returns a promise if the producer must wait (backpressure). */
  push(delta: Delta<O>): Promise<void> | undefined;
}

/** Options of `DeltaQueue`. */
export interface DeltaQueueOptions {
  /**
   * Number of entries above which the producer must wait.
   * @default 2000
   */
  readonly highWater?: number | undefined;
  /**
   * Processing time after which the consumer yields to the event loop, in milliseconds.
   * @default 10
   */
  readonly sliceMs?: number | undefined;
  /**
   * Yields to the rest of the process.
   * @default one turn of the event loop
   */
  readonly yieldTurn?: (() => Promise<void>) | undefined;
  /** Receives the processing time of each batch without a pause, in milliseconds. */
  readonly onBatch?: ((ms: number) => void) | undefined;
}

/**
 * Processes one entry. Long work calls `slice.spend` after each unit and awaits the returned promise.
 * Later entries wait meanwhile.
 */
export type Processor<D> = (entry: D, slice: TimeSlice) => Promise<void> | undefined;

/** Time slice of the consumer. */
export interface TimeSlice {
  /** Counts one unit of work. Returns a promise if the consumer must yield first. */
  spend(): Promise<void> | undefined;
}

/** Reads the clock once for this number of units, because each reading has a cost. */
const UNITS_PER_CLOCK_READING = 16;

/** Number of units that end a slice on a clock that does not advance. */
const MAX_UNITS_PER_SLICE = 1000;

/**
 * FIFO queue without merging, like client-go's `RealFIFO`. Consumers see every change in the server's
 * order. A relist is one entry, so no consumer sees a part of it.
 *
 * A single consumer takes one entry at a time and yields to the event loop after each time slice. With
 * more than `highWater` entries, `push` returns a promise that resolves when half of that number is left.
 * Otherwise it returns undefined and costs one array slot.
 */
export class DeltaQueue<D> implements TimeSlice {
  readonly #clock: Clock;
  readonly #highWater: number;
  readonly #sliceMs: number;
  readonly #yieldTurn: () => Promise<void>;
  readonly #onBatch: ((ms: number) => void) | undefined;
  #entries: (D | undefined)[] = [];
  /** Position of the oldest entry in `#entries`; earlier positions are empty. */
  #head = 0;
  #arrival: Deferred | undefined;
  #drained: Deferred | undefined;
  #closed = false;
  /** Start of the slice: the last yield to the event loop. */
  #sliceStartMs: number;
  #units = 0;
  /** Start of the batch: the last yield, or the arrival in an empty queue. */
  #batchStartMs: number;

  constructor(clock: Clock, options: DeltaQueueOptions = {}) {
    this.#clock = clock;
    this.#highWater = options.highWater ?? 2000;
    this.#sliceMs = options.sliceMs ?? 10;
    this.#yieldTurn = options.yieldTurn ?? nextTurn;
    this.#onBatch = options.onBatch;
    this.#sliceStartMs = clock.monotonic();
    this.#batchStartMs = this.#sliceStartMs;
  }

  /** Number of queued entries. */
  get length(): number {
    return this.#entries.length - this.#head;
  }

  /** Appends an entry, or drops it after the consumer has ended. */
  push(entry: D): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#entries.push(entry);
    if (this.#arrival) this.#wake();
    if (this.length <= this.#highWater) return undefined;
    return (this.#drained ??= new Deferred()).promise;
  }

  /**
   * Processes entries in order until `signal` aborts, and drops the rest. Rejects if `process` throws,
   * because the store is in an unknown state then.
   */
  async consume(process: Processor<D>, signal: AbortSignal): Promise<void> {
    const wake = () => this.#wake();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted) {
        if (this.length === 0) {
          await this.#idle();
          continue;
        }
        const working = process(this.#take(), this);
        if (working) await working;
        const pause = this.spend();
        if (pause) await pause;
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#close();
    }
  }

  spend(): Promise<void> | undefined {
    this.#units++;
    if (this.#units % UNITS_PER_CLOCK_READING !== 0) return undefined;
    const spentMs = this.#clock.monotonic() - this.#sliceStartMs;
    if (spentMs < this.#sliceMs && this.#units < MAX_UNITS_PER_SLICE) return undefined;
    return this.#yield();
  }

  async #yield(): Promise<void> {
    this.#endBatch();
    await this.#yieldTurn();
    this.#startSlice();
  }

  /**
   * Waits for an entry. A short wait does not start a new slice. Otherwise entries that arrive one by
   * one, each as soon as the last is done, would occupy the process without a yield.
   */
  async #idle(): Promise<void> {
    this.#endBatch();
    const sinceMs = this.#clock.monotonic();
    this.#arrival = new Deferred();
    await this.#arrival.promise;
    this.#batchStartMs = this.#clock.monotonic();
    if (this.#batchStartMs - sinceMs >= this.#sliceMs) this.#startSlice();
  }

  /** Ends the wait for an entry. Only the first of the entries that arrive together does so. */
  #wake(): void {
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }

  #startSlice(): void {
    this.#units = 0;
    this.#sliceStartMs = this.#clock.monotonic();
    this.#batchStartMs = this.#sliceStartMs;
  }

  #endBatch(): void {
    if (this.#units > 0) this.#onBatch?.(this.#clock.monotonic() - this.#batchStartMs);
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
    if (this.#drained && this.length * 2 <= this.#highWater) this.#releaseProducer();
    return entry;
  }

  #releaseProducer(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  #close(): void {
    this.#closed = true;
    this.#entries.length = 0;
    this.#head = 0;
    this.#releaseProducer();
  }
}

/** Changes an object before it is cached, for example to drop fields. May modify it in place. */
export type Transform<T extends KubernetesObject> = (object: T) => T;

/** Dependencies of `TransformingSink`. */
export interface TransformingSinkDeps<T extends KubernetesObject> {
  readonly queue: DeltaSink<DeepReadonly<T>>;
  readonly indexer: Indexer<T>;
  readonly log: Logger;
  readonly errors: RateLimitedLog;
  readonly metrics: InformerMetrics;
  readonly transform: Transform<T> | undefined;
  /** Whether to freeze every object deeply. */
  readonly freeze: boolean;
}

/**
 * Transforms each object once, before it enters the delta queue. An object whose transform throws is
 * logged, counted and skipped. If the cache contains an earlier state of it, that state remains, since
 * a failed transform is not a deletion.
 */
export class TransformingSink<T extends KubernetesObject> implements DeltaSink<T> {
  readonly #deps: TransformingSinkDeps<T>;
  readonly #isIdentity: boolean;

  constructor(deps: TransformingSinkDeps<T>) {
    this.#deps = deps;
    this.#isIdentity = deps.transform === undefined && !deps.freeze;
  }

  push(delta: Delta<T>): Promise<void> | undefined {
    const { queue } = this.#deps;
    if (this.#isIdentity) return queue.push(shared(delta));
    switch (delta.type) {
      case 'changed': {
        const object = this.#transform(delta.object);
        return object && queue.push(readOnly({ ...delta, object }));
      }
      case 'deleted':
        // A deletion applies even if the transform of the last state fails.
        return queue.push(
          readOnly({ ...delta, lastKnown: this.#transform(delta.lastKnown) ?? delta.lastKnown }),
        );
      case 'replaced':
        return queue.push({ ...delta, objects: this.#transformAll(delta.objects) });
      case 'synced':
      case 'resync':
        return queue.push(delta);
    }
  }

  #transformAll(objects: readonly T[]): DeepReadonly<T>[] {
    const results: DeepReadonly<T>[] = [];
    for (const object of objects) {
      const transformed = this.#transform(object);
      const result = transformed ? readOnly(transformed) : this.#deps.indexer.get(keyOf(object));
      if (result !== undefined) results.push(result);
    }
    return results;
  }

  #transform(object: T): T | undefined {
    const { transform, freeze, log, errors, metrics } = this.#deps;
    try {
      const transformed = transform ? transformWith(transform, object) : object;
      if (freeze) deepFreeze(transformed);
      shareFields(transformed);
      return transformed;
    } catch (error) {
      metrics.objectRefused();
      errors.report('transform', keyOf(object), (seen) =>
        log.error(error, 'Could not transform an object', occurrenceFields('key', 'keys', seen)),
      );
      return undefined;
    }
  }
}

/** A transform that drops a field must not leave its text in memory. */
function transformWith<T extends KubernetesObject>(transform: Transform<T>, object: T): T {
  const before = countLazyFields(object);
  const transformed = transform(object);
  if (transformed === object && countLazyFields(object) < before) parseLazyFields(object);
  return transformed;
}

/** Declares that the objects of a delta are not modified any more. */
function shared<O extends KubernetesObject>(delta: Delta<O>): Delta<DeepReadonly<O>> {
  switch (delta.type) {
    case 'changed':
      shareFields(delta.object);
      break;
    case 'replaced':
      for (const object of delta.objects) shareFields(object);
      break;
    case 'deleted':
    case 'synced':
    case 'resync':
  }
  return readOnly(delta);
}

/** Changes the type of a shared value to read-only. */
function readOnly<O extends KubernetesObject>(object: O): DeepReadonly<O>;
function readOnly<O>(delta: Delta<O>): Delta<DeepReadonly<O>>;
function readOnly(value: unknown): unknown {
  return value;
}

/**
 * Freezes a JSON value deeply, so that code that modifies a shared object throws at that place.
 * Iterative, because the server determines the depth.
 */
export function deepFreeze(root: object): void {
  const pending: object[] = [root];
  for (let value = pending.pop(); value; value = pending.pop()) {
    if (Object.isFrozen(value)) continue;
    Object.freeze(value);
    for (const member of Object.values(value)) {
      if (typeof member === 'object' && member !== null) pending.push(member);
    }
  }
}
