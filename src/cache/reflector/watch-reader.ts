import type { KubernetesObject } from '../../api/object.ts';
import { keyOf } from '../../api/object-key.ts';
import type { Clock } from '../../util/clock.ts';
import type { DeltaSink } from '../delta-queue.ts';
import { isOlderResourceVersion } from '../../api/resource-version.ts';
import { isPointInTime } from './freshness.ts';
import type { ObjectGuard } from './object-guard.ts';
import type { ProgressClock } from './progress.ts';
import type { WatchConnection } from './watch-connection.ts';
import type { WatchEnd } from './watch-outcome.ts';

export interface WatchReaderDeps<T extends KubernetesObject> {
  readonly sink: DeltaSink<T>;
  readonly guard: ObjectGuard;
  readonly progress: ProgressClock;
  readonly clock: Clock;
  readonly onFirstEvent: () => void;
}

/**
 * Carries the events of a watch into the sink. Every change of every object of a resource passes
 * through here, so an event costs one delta and nothing else. The resourceVersion advances after
 * the sink has the event, never before.
 */
export class WatchReader<T extends KubernetesObject> {
  readonly #deps: WatchReaderDeps<T>;

  constructor(deps: WatchReaderDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Reads to the end of the watch; never rejects.
   *
   * @param ordered false for a watch begun at no particular resourceVersion: it tells the state
   *   first, in no order, so that no resourceVersion counts until something has changed
   */
  async read(
    connection: WatchConnection<T>,
    ordered: boolean,
  ): Promise<WatchEnd & { readonly lastedMs: number; readonly events: number }> {
    const { sink, guard, progress, clock } = this.#deps;
    let events = 0;
    const soFar = () => ({ lastedMs: clock.monotonic() - connection.openedMs, events });
    try {
      for (;;) {
        const event = connection.ready() ?? (await connection.next()).value;
        if (!event) return { how: 'ended', ...soFar() };
        if (events++ === 0) this.#deps.onFirstEvent();
        let room: Promise<void> | undefined;
        switch (event.type) {
          case 'added':
          case 'modified':
          case 'deleted': {
            const { object } = event;
            if (!guard.admits(object)) break;
            if (event.type !== 'added') ordered = true;
            progress.lastEventMs = clock.monotonic();
            const key = keyOf(object);
            if (event.type === 'deleted') {
              room = sink.push({ type: 'deleted', key, lastKnown: object });
            } else if (ordered) {
              room = sink.push({ type: 'changed', key, object });
            } else {
              room = sink.push({ type: 'changed', key, object, unordered: true });
            }
            if (ordered) progress.resourceVersion = object.metadata.resourceVersion;
            break;
          }
          case 'bookmark':
            progress.lastBookmarkMs = clock.monotonic();
            connection.expectBookmarks();
            if (!isPointInTime(event.resourceVersion)) break;
            if (
              ordered &&
              isOlderResourceVersion(event.resourceVersion, progress.resourceVersion)
            ) {
              return { how: 'wentBack', ...soFar() };
            }
            ordered = true;
            room = sink.push({ type: 'synced', resourceVersion: event.resourceVersion });
            progress.resourceVersion = event.resourceVersion;
            break;
          case 'error':
            return { how: 'failed', error: event.error, ...soFar() };
        }
        if (room) await room;
      }
    } catch (error) {
      return { how: 'cut', error, ...soFar() };
    }
  }
}
