import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectName } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import { Informer } from '../cache/informer.ts';
import { listerWatcher } from '../cache/lister-watcher.ts';
import type { Client } from '../client/client.ts';
import { settledBeforeAbort } from '../util/abort.ts';
import { Backoff } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { runAll } from '../util/runnable.ts';

/** Default time without a write that resets the backoff of writes, in milliseconds. */
const STABLE_MS = 10 * 60_000;

/** The longest time between two syncs, because the wall clock may jump, in milliseconds. */
const RECHECK_MS = 60 * 60_000;

/** Dependencies of `ObjectSync`. */
export interface ObjectSyncDeps {
  readonly client: Pick<Client, 'list' | 'watch'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /**
   * Time without a write that resets the backoff of writes, in milliseconds.
   * @default 600_000
   */
  readonly stableMs?: number | undefined;
}

/** Watches one object by its name, and calls a sync handler after each change and after the time that it returned. */
export class ObjectSync<T extends KubernetesObject> {
  readonly #clock: Clock;
  /** Writes back off, because another writer may revert each of them. */
  readonly #backoff: Backoff;
  readonly #stableMs: number;
  readonly #informer: Informer<T>;
  readonly #key: ReturnType<typeof objectKey>;
  /** State after the last write, until the cache has it. */
  #written: T | undefined;
  #mayWriteMs = -Infinity;
  #isChanged = false;
  #wake = () => {};

  constructor(deps: ObjectSyncDeps, resource: Resource<T>, { namespace, name }: ObjectName) {
    const { client, clock, log, random, stableMs = STABLE_MS } = deps;
    const fieldSelector = `metadata.name=${name}`;
    const source = listerWatcher(client, resource, { namespace, fieldSelector });
    this.#clock = clock;
    this.#backoff = new Backoff({ initialMs: 200, maxMs: stableMs / 2, jitter: 0.5 }, random);
    this.#stableMs = stableMs;
    this.#key = objectKey(namespace, name);
    this.#informer = new Informer<T>(resource, source, { namespace, clock, log, random });
    const changed = () => this.changed();
    this.#informer.addHandler({ onAdd: changed, onUpdate: changed, onDelete: changed });
  }

  /** The object in the cache, or as last written if the cache does not have this state yet. */
  get current(): DeepReadonly<T> | undefined {
    const written = this.#written;
    if (written && !this.#informer.hasReached(written.metadata.resourceVersion)) {
      return written as DeepReadonly<T>;
    }
    this.#written = undefined;
    return this.#informer.lister.get(this.#key);
  }

  /** Milliseconds until the next write is allowed. */
  get holdMs(): number {
    return Math.max(0, this.#mayWriteMs - this.#clock.monotonic());
  }

  /** Number of writes without a pause of `stableMs`. */
  get writes(): number {
    return this.#backoff.attempts;
  }

  /** Allows the next write at once, because its reason is new. */
  resetBackoff(): void {
    this.#backoff.reset();
    this.#mayWriteMs = -Infinity;
  }

  /** Reads the object again by a quorum read. */
  relist(): void {
    this.#informer.relist();
  }

  /** Calls the sync handler soon. */
  changed(): void {
    this.#isChanged = true;
    this.#wake();
  }

  /** Sends a write, and delays the next one. After an error, the object is read again. */
  async write(send: () => Promise<T>): Promise<T> {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#mayWriteMs >= this.#stableMs) this.#backoff.reset();
    this.#mayWriteMs = nowMs + this.#backoff.next();
    try {
      this.#written = await send();
      return this.#written;
    } catch (error) {
      this.relist();
      throw error;
    }
  }

  /**
   * Runs until `signal` aborts.
   *
   * @param sync sync handler; returns the milliseconds until its next call. Must not reject
   */
  run(sync: (signal: AbortSignal) => Promise<number>, signal: AbortSignal): Promise<void> {
    const loop = async (signal: AbortSignal) => {
      if (!(await settledBeforeAbort(this.#informer.synced, signal))) return;
      while (!signal.aborted) {
        this.#isChanged = false;
        const delayMs = await sync(signal);
        if (!this.#isChanged) await this.#pause(delayMs, signal);
      }
    };
    return runAll([(signal) => this.#informer.run(signal), loop], signal);
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const delay = Math.min(Math.max(0, delayMs), RECHECK_MS);
    await this.#clock.sleep(delay, AbortSignal.any([signal, woken.signal]));
  }
}
