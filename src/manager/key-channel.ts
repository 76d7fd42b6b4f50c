import type { ObjectKey } from '../api/object-key.ts';
import { untilAborted } from '../util/abort.ts';
import type { Source } from './controller-options.ts';
import type { KeySink } from './enqueue.ts';

/**
 * Passes keys from callbacks, such as the routes of an HTTP server, to controllers, as controller-runtime's
 * `source.Channel`: `controller.source(channel.source)`. Each running controller receives each key. Keys that are
 * added while no controller runs, as on a standby, are dropped, because a controller that starts syncs all objects.
 *
 * @experimental
 */
export class KeyChannel implements KeySink {
  readonly #queues = new Set<KeySink>();

  /** Enqueues the keys of the channel. Several controllers can use it. */
  readonly source: Source = async (queue, signal) => {
    this.#queues.add(queue);
    await untilAborted(signal);
    this.#queues.delete(queue);
  };

  /** Adds a key to the queue of each running controller. */
  add(key: ObjectKey, options?: Parameters<KeySink['add']>[1]): void {
    for (const queue of this.#queues) queue.add(key, options);
  }
}
