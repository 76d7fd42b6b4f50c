import type { Activity } from './clock.ts';
import { nextTurn } from './next-turn.ts';

/** Number of syncs of a key at one instant of virtual time that make a loop. Each event of an owned object can cause one. */
const MAX_SYNCS = 10_000;

/** Number of requests to one path that make a loop. */
const MAX_REQUESTS = 50_000;

/** The same for some methods while the test waits: a POST creates another object each time. */
const MAX_REPEATED: ReadonlyMap<string, number> = new Map([
  ['GET', 10_000],
  ['DELETE', 100],
  ['PUT', 1000],
  ['PATCH', 1000],
]);

/** Number of activities after which timers and I/O of the process have a turn. */
const TURN_EVERY = 500;

/** Number of requests and causes that an error names. */
const MAX_NAMED = 5;

/** Number of syncs of each kind that an error names. */
const MAX_NAMED_SYNCS = 2;

/** Number of syncs of a key at one instant that can be part of a loop. */
const MIN_REPEATED = 20;

type Sync = Activity & { readonly kind: 'sync' };

interface SyncedKey {
  readonly sync: Sync;
  times: number;
  readonly causes: Map<string, number>;
}

/** Counts syncs and requests at one instant of virtual time, and finds loops in which no time passes. */
export class ActivityWatch {
  readonly #syncs = new Map<string, SyncedKey>();
  /** Syncs that have not ended, also of former instants. */
  readonly #running = new Map<string, Sync>();
  readonly #requests = new Map<string, number>();
  #count = 0;
  #loop: string | undefined;
  #release: () => void = () => undefined;
  #released: Promise<void> | undefined;

  /** Number of activities at this instant. */
  get count(): number {
    return this.#count;
  }

  /** Description of the loop that was found at this instant. */
  get loop(): string | undefined {
    return this.#loop;
  }

  /** Starts another instant, and releases the syncs of a loop. */
  reset(): void {
    if (this.#count === 0) return;
    this.#count = 0;
    this.#syncs.clear();
    this.#requests.clear();
    this.#loop = undefined;
    this.#release();
    this.#released = undefined;
  }

  /**
   * Records an activity. If it is part of a loop, a sync waits for the next instant, and a request is rejected.
   *
   * @param isAdvancing whether the test waits. It may itself change an object often
   */
  add(activity: Activity, isAdvancing: boolean): Promise<void> | undefined {
    if (activity.kind === 'syncEnd') {
      this.#running.delete(idOf(activity));
      return undefined;
    }
    this.#count++;
    const times = activity.kind === 'sync' ? this.#addSync(activity) : this.#addRequest(activity);
    const isLooping = times >= limitOf(activity, isAdvancing);
    if (isLooping) this.#loop ??= this.#describe();
    if (this.#loop !== undefined && activity.kind === 'sync') {
      this.#released ??= new Promise((resolve) => (this.#release = resolve));
      return this.#released;
    }
    if (isLooping && !isAdvancing) {
      return Promise.reject(
        new Error(`Virtual time does not pass, because of a loop:\n${this.#loop}`),
      );
    }
    // Chains of promises would otherwise block the process.
    return this.#loop !== undefined || this.#count % TURN_EVERY === 0 ? nextTurn() : undefined;
  }

  #addSync(sync: Sync): number {
    const id = idOf(sync);
    const synced = this.#syncs.get(id) ?? { sync, times: 0, causes: new Map() };
    this.#syncs.set(id, synced);
    this.#running.set(id, sync);
    synced.times++;
    for (const { text, times } of sync.causes) {
      synced.causes.set(text, (synced.causes.get(text) ?? 0) + times);
    }
    return synced.times;
  }

  #addRequest({ method, path }: Activity & { kind: 'request' }): number {
    const id = `${method} ${path.replace(/\?.*/, '')}`;
    const times = (this.#requests.get(id) ?? 0) + 1;
    this.#requests.set(id, times);
    return times;
  }

  #describe(): string {
    const repeated = [...this.#syncs]
      .filter(([, { times }]) => times >= MIN_REPEATED)
      .sort(([, a], [, b]) => b.times - a.times)
      .slice(0, MAX_NAMED_SYNCS);
    const ids = new Set(repeated.map(([id]) => id));
    const endless = [...this.#running].filter(([id]) => !ids.has(id)).slice(0, MAX_NAMED_SYNCS);
    return [
      ...repeated.map(
        ([, { sync, times, causes }]) =>
          `  controller "${sync.controller}" synced ${sync.key} ${times} times: ${frequent(causes).join(', ')}`,
      ),
      ...endless.map(([, { controller, key, causes }]) => {
        const texts = frequent(new Map(causes.map(({ text, times }) => [text, times])));
        return `  controller "${controller}" has not ended the sync of ${key}: ${texts.join(', ')}`;
      }),
      ...frequent(this.#requests).map((line) => `  ${line}`),
    ].join('\n');
  }
}

function idOf({ controller, key }: { readonly controller: string; readonly key: string }): string {
  return `${controller} ${key}`;
}

function limitOf(activity: Exclude<Activity, { kind: 'syncEnd' }>, isAdvancing: boolean): number {
  if (activity.kind === 'sync') return MAX_SYNCS;
  return (isAdvancing ? MAX_REPEATED.get(activity.method) : undefined) ?? MAX_REQUESTS;
}

/** Returns the most frequent texts with their numbers. */
function frequent(counts: ReadonlyMap<string, number>): string[] {
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_NAMED)
    .map(([text, times]) => `${text} (${times} times)`);
}
