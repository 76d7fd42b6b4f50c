import { isApiError } from '../../api/api-error.ts';
import { EVENTS } from '../../api/builtin.ts';
import type { Event } from '../../api/builtin.ts';
import { Rejections } from '../../manager/rejections.ts';
import { NOT_SENT } from '../../record/event-recorder.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Runnable } from '../../util/runnable.ts';
import { messageOf } from '../../util/values.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

/** Number of times that events are listed within their time to live. */
const LISTS_PER_TTL = 6;

const PAGE_SIZE = 500;

const silent: EventRecorder = { normal: () => NOT_SENT, warning: () => NOT_SENT };

/** Returns recorders that record nothing. */
export const NO_EVENTS = { recorder: (): EventRecorder => silent };

/**
 * Deletes events that nothing has changed for `ttlMs`, as kube-apiserver's `--event-ttl`. It lists them
 * from time to time and keeps no copy, because there can be many.
 */
export function eventExpiry({ client, clock, log }: ClusterDeps, ttlMs: number): Runnable {
  const remove = async (metadata: Event['metadata'], signal: AbortSignal) => {
    const { uid, resourceVersion } = metadata;
    try {
      await client.delete(EVENTS, metadata, { uid, resourceVersion, signal });
    } catch (error) {
      // It was deleted, or has happened again and is in the next list.
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  };
  const expire = async (signal: AbortSignal) => {
    const rejections = new Rejections();
    let after: string | undefined;
    do {
      const page = { limit: PAGE_SIZE, continueToken: after, signal };
      const { items, continueToken } = await client.list(EVENTS, page);
      const expired = items.filter((one) => changedAt(one) <= clock.now() - ttlMs);
      for (const { metadata } of expired) {
        await rejections.catch({ kind: EVENTS.kind, metadata }, () => remove(metadata, signal));
      }
      after = continueToken;
    } while (after);
    rejections.throw();
  };
  return {
    name: 'event-expiry',
    run: async (signal) => {
      for (;;) {
        await clock.sleep(ttlMs / LISTS_PER_TTL, signal);
        if (signal.aborted) return;
        try {
          await expire(signal);
        } catch (error) {
          if (signal.aborted) return;
          log.v(1).info('Unable to delete expired events; retrying', { err: messageOf(error) });
        }
      }
    },
  };
}

function changedAt({ metadata, lastTimestamp, eventTime, series }: Event): number {
  const times = [series?.lastObservedTime, lastTimestamp, eventTime, metadata.creationTimestamp];
  return times.reduce<number>((latest, time) => Math.max(latest, Date.parse(time ?? '') || 0), 0);
}
