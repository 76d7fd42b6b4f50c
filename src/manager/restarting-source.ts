import { Backoff } from '../util/backoff.ts';
import { formatDuration } from '../util/duration.ts';
import type { ControllerDeps, Source } from './controller-options.ts';

/** Backoff of a source that is restarted. */
const SOURCE_BACKOFF = { initialMs: 800, maxMs: 30_000, jitter: 1 };

/** Returns a source that logs a rejection of `source`, and calls it again with backoff. */
export function restartingSource(
  source: Source,
  { clock, log, random }: Pick<ControllerDeps, 'clock' | 'log' | 'random'>,
): Source {
  return async (queue, signal) => {
    const backoff = new Backoff(SOURCE_BACKOFF, random);
    while (!signal.aborted) {
      const startedMs = clock.monotonic();
      try {
        await source(queue, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (clock.monotonic() - startedMs > SOURCE_BACKOFF.maxMs) backoff.reset();
        const delayMs = backoff.next();
        log.error(error, 'Source failed; restarting it', { after: formatDuration(delayMs) });
        await clock.sleep(delayMs, signal);
      }
    }
  };
}
