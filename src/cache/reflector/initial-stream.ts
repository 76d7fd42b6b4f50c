import type { KubernetesObject } from '../../api/object.ts';
import { keyOf } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { Clock } from '../../util/clock.ts';
import type { ObjectGuard } from './object-guard.ts';
import type { WatchConnection } from './watch-connection.ts';
import { Watchdog } from './watchdog.ts';

export interface InitialState<T> {
  readonly objects: readonly T[];
  readonly resourceVersion: string;
}

export interface InitialStreamLimits {
  /** How long the stream may pause, in milliseconds. */
  readonly pauseMs: number;
  /** How long it may take, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Reads the state that a watch begins with, up to the bookmark that marks its end; the connection
 * then goes on as an ordinary watch. Objects changed or deleted meanwhile are taken as they are at
 * the end, and only the bookmark's resourceVersion counts, since the state comes in no order.
 *
 * Undefined if the bookmark did not come: the stream ended, or a limit was reached. Proxies are
 * known to swallow it. Throws the error that the stream reports.
 */
export async function readInitialState<T extends KubernetesObject>(
  connection: WatchConnection<T>,
  guard: ObjectGuard,
  clock: Clock,
  { pauseMs, timeoutMs }: InitialStreamLimits,
): Promise<InitialState<T> | undefined> {
  const objects = new Map<ObjectKey, T>();
  let lastEventMs = clock.monotonic();
  const giveUp = () => connection.close();
  const pause = new Watchdog(clock, pauseMs, () => lastEventMs, giveUp);
  const cancelTimeout = clock.after(timeoutMs, giveUp);
  try {
    for (;;) {
      const event = connection.ready() ?? (await connection.next()).value;
      if (!event) return undefined;
      switch (event.type) {
        case 'added':
        case 'modified':
          lastEventMs = clock.monotonic();
          if (guard.admits(event.object)) objects.set(keyOf(event.object), event.object);
          break;
        case 'deleted':
          lastEventMs = clock.monotonic();
          if (guard.admits(event.object)) objects.delete(keyOf(event.object));
          break;
        case 'bookmark':
          if (!event.initialEventsEnd) break;
          return { objects: [...objects.values()], resourceVersion: event.resourceVersion };
        case 'error':
          throw event.error;
      }
    }
  } finally {
    pause.stop();
    cancelTimeout();
  }
}
