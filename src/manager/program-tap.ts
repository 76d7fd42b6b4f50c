import type { ObjectKey } from '../api/object-key.ts';
import type { Informer } from '../cache/informer.ts';
import type { CacheSelection } from '../cache/informer-set.ts';
import type { Client } from '../client/client.ts';
import type { RecordedEvent } from '../record/recorded-event.ts';
import type { Clock } from '../util/clock.ts';
import type { Runnable } from '../util/runnable.ts';
import type { KeyHandler } from '../workqueue/worker-pool.ts';

/**
 * Receives what the controllers of one program see and do, and may replace it: a recorder passes it on, a replay answers
 * from a recording. `runControllers` calls `clock` first and once.
 */
export interface ProgramTap extends Runnable {
  /** Runs from before the caches start until all else has stopped. */
  run(signal: AbortSignal): Promise<void>;
  /** Returns the clock of the program. */
  clock(clock: Clock): Clock;
  /** Returns the random numbers of the program. */
  random(random: () => number): () => number;
  /** Returns the client of a cluster; `cluster` is undefined for the program's own. */
  client(client: Client, cluster?: string): Client;
  /** Returns the function that sends the requests of `callService`. */
  fetch(send: typeof fetch | undefined): typeof fetch | undefined;
  /** Called for each informer before it runs. */
  informer(informer: Informer, selection: CacheSelection): void;
  /** Called for each event that a recorder records. */
  event(event: RecordedEvent): void;
  /** Returns the function that syncs a key of a controller, after all checks whether it may be synced now. */
  sync(controller: string, sync: KeyHandler<ObjectKey>): KeyHandler<ObjectKey>;
  /** Returns what runs while the controllers run. */
  term(isElected: boolean): Runnable;
}
