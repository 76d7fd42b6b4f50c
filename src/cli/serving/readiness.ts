import type { Informer } from '../../cache/informer.ts';
import { failureReason } from '../../client/transport/connection-error.ts';
import type { HealthCheck } from '../../manager/serving/health-probe.ts';
import type { Clock } from '../../util/clock.ts';
import { formatSeconds } from '../../util/duration.ts';

/** What is looked at of an informer. */
export type Watched = Pick<Informer, 'name' | 'hasSynced' | 'progress'>;

/**
 * A cache that is not there yet makes us unready, and so does one that has gone deaf; one whose
 * resource the server does not have is waited for, and nobody is served worse by us than by nobody.
 */
export function readiness(
  informers: () => readonly Watched[],
  clock: Pick<Clock, 'monotonic'>,
): HealthCheck[] {
  const failing = (what: string, isFailing: (informer: Watched) => boolean) => {
    const names = informers()
      .filter((informer) => !informer.progress.missing && isFailing(informer))
      .map(({ name }) => name);
    return names.length > 0 ? `${what}: ${names.join(', ')}` : undefined;
  };
  return [
    {
      name: 'informer-sync',
      check: () => failing('not synced', ({ hasSynced }) => !hasSynced),
    },
    {
      name: 'informer-progress',
      check: () =>
        failing(
          'no word from the server for too long',
          ({ hasSynced, progress }) => hasSynced && progress.isStale,
        ),
      detail: () => informers().map((informer) => stateOf(informer, clock.monotonic())),
    },
  ];
}

/**
 * One informer in one line. Errors appear by their reason alone: who may ask for this may not be who
 * may know where the server is and what it said.
 *
 * `pods: watching for 4m10s; synced; heard from 12s ago`
 */
function stateOf({ name, hasSynced, progress }: Watched, nowMs: number): string {
  const { phase, sinceMs, missing, lastErrorMs } = progress;
  const parts = [
    missing
      ? 'waiting for the server to have it'
      : `${phase} for ${formatSeconds(nowMs - sinceMs)}`,
    hasSynced ? 'synced' : 'not synced',
    progress.lastByteMs === undefined
      ? 'never heard from'
      : `heard from ${formatSeconds(progress.inactiveMs)} ago`,
    ...(lastErrorMs === undefined
      ? []
      : [
          `last error ${formatSeconds(nowMs - lastErrorMs)} ago: ${failureReason(progress.lastError)}`,
        ]),
  ];
  return `${name}: ${parts.join('; ')}`;
}
