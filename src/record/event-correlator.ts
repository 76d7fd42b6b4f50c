import type { Clock } from '../util/clock.ts';
import { LruMap } from '../util/lru-map.ts';
import { TokenBucket } from '../util/token-bucket.ts';
import { eventName } from './event-name.ts';
import { joinKey, objectIdentity } from './recorded-event.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** Dependencies of `EventCorrelator`. */
export interface EventCorrelatorDeps {
  readonly clock: Clock;
}

/** The defaults are client-go's. */
export interface EventCorrelatorOptions {
  /**
   * Number of different messages of one (object, type, reason) at which they are combined.
   * @default 10
   */
  readonly maxSimilar?: number | undefined;
  /**
   * Time without a similar event after which the count of messages restarts, in milliseconds.
   * @default 600_000
   */
  readonly similarIntervalMs?: number | undefined;
  /**
   * Burst of events of one (object, type).
   * @default 25
   */
  readonly burst?: number | undefined;
  /**
   * Time after which one more event is allowed, in milliseconds.
   * @default 300_000
   */
  readonly refillMs?: number | undefined;
  /**
   * Maximum number of remembered objects and events.
   * @default 4096
   */
  readonly cacheSize?: number | undefined;
}

/** A correlated event. */
export interface Correlated {
  /** Equal for all states of one event on the server: only the latest state must be written. */
  readonly key: string;
  /** Identity of the involved object. */
  readonly object: string;
  /** Has the name of its first occurrence and the current count. */
  readonly event: RecordedEvent;
}

/** Events that differ by message only. */
interface Group {
  /** Messages with separate events; fewer than `maxSimilar`. */
  readonly messages: Set<string>;
  lastMs: number;
}

/** An event on the server, as far as this process knows. */
interface Series {
  readonly name: string;
  readonly firstTimestamp: string;
  readonly count: number;
}

/**
 * Correlates events as client-go does, in this order:
 *
 * 1. **Aggregate.** The tenth different message of one (object, type, reason), and all new ones after
 *    it, become one event with the message `(combined from similar events): ` and the latest message.
 * 2. **Count.** A repeated event becomes the same event with a higher count.
 * 3. **Filter.** Each (object, type) has a token bucket with 25 tokens and one more every 5 minutes. Without a token an
 *    event is counted but not written. One difference from client-go: the first event of an (object, type, reason)
 *    is always written, so that a frequent reason does not hide others.
 *
 * The caches are bounded (LRU). The source is part of every key.
 */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #options: { readonly [K in keyof EventCorrelatorOptions]-?: number };
  readonly #groups: LruMap<string, Group>;
  readonly #series: LruMap<string, Series>;
  readonly #buckets: LruMap<string, TokenBucket>;
  /** The (object, type, reason) that had their first event. */
  readonly #known: LruMap<string, true>;

  constructor(deps: EventCorrelatorDeps, options: EventCorrelatorOptions = {}) {
    const {
      maxSimilar = 10,
      similarIntervalMs = 600_000,
      burst = 25,
      refillMs = 300_000,
      cacheSize = 4096,
    } = options;
    this.#clock = deps.clock;
    this.#options = { maxSimilar, similarIntervalMs, burst, refillMs, cacheSize };
    this.#groups = new LruMap(cacheSize);
    this.#series = new LruMap(cacheSize);
    this.#buckets = new LruMap(cacheSize);
    this.#known = new LruMap(cacheSize);
  }

  /** @returns undefined if the spam filter drops the event */
  correlate(event: RecordedEvent): Correlated | undefined {
    const counted = this.count(event);
    return this.accepts(counted) ? counted : undefined;
  }

  /** Aggregates and counts an event. */
  count(event: RecordedEvent): Correlated {
    return this.#count(this.#combine(event, objectIdentity(event)));
  }

  #combine(event: RecordedEvent, object: string): Correlated {
    const { maxSimilar, similarIntervalMs } = this.#options;
    const key = joinKey([
      object,
      event.type,
      event.reason,
      event.reportingComponent,
      event.reportingInstance,
    ]);
    const now = this.#clock.monotonic();
    let group = this.#groups.get(key);
    if (!group || now - group.lastMs > similarIntervalMs) {
      group = { messages: new Set(), lastMs: now };
      this.#groups.set(key, group);
    }
    group.lastMs = now;
    if (!group.messages.has(event.message)) {
      if (group.messages.size + 1 >= maxSimilar)
        return { key, object, event: this.#combined(event) };
      group.messages.add(event.message);
    }
    const { type, reason, message, involvedObject, action, related } = event;
    const { fieldPath } = involvedObject;
    return {
      key: joinKey([object, fieldPath, type, reason, message, action, related?.uid, related?.name]),
      object,
      event,
    };
  }

  /** Annotations are those of one occurrence, and are left out. */
  #combined(event: RecordedEvent): RecordedEvent {
    const message = `(combined from similar events): ${event.message}`;
    const name = eventName({ ...event, message });
    return { ...event, metadata: { name, namespace: event.metadata.namespace }, message };
  }

  #count({ key, object, event }: Correlated): Correlated {
    const series = this.#series.get(key);
    const { metadata, firstTimestamp, count } = event;
    const next: Series = series
      ? { ...series, count: series.count + count }
      : { name: metadata.name, firstTimestamp, count };
    this.#series.set(key, next);
    return {
      key,
      object,
      event: {
        ...event,
        metadata: { ...metadata, name: next.name },
        firstTimestamp: next.firstTimestamp,
        count: next.count,
      },
    };
  }

  /** Takes a token for a counted event. Returns false if the spam filter drops it. */
  accepts({ event, object }: Correlated): boolean {
    const { burst, refillMs } = this.#options;
    const key = joinKey([object, event.type]);
    let bucket = this.#buckets.get(key);
    if (!bucket) {
      bucket = new TokenBucket(this.#clock, { burst, intervalMs: refillMs });
      this.#buckets.set(key, bucket);
    }
    const accepted = bucket.tryTake();

    const kind = joinKey([object, event.type, event.reason]);
    const isFirst = !this.#known.get(kind);
    if (isFirst) this.#known.set(kind, true);
    return accepted || isFirst;
  }
}
