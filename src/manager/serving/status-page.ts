import type { InformerView } from '../../cache/shared-informer.ts';
import { failureReason } from '../../client/transport/connection-error.ts';
import type { Clock } from '../../util/clock.ts';
import type { LeaseSighting } from '../lease-sightings.ts';
import { jsonPages } from './page.ts';
import type { Pages } from './page.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const DEPS: OptionNames<StatusPageDeps> = {
  clock: true,
  version: true,
  informers: true,
  election: true,
  redact: true,
};

/** As much of an informer as its row shows. */
export type ShownInformer = Pick<InformerView, 'name' | 'hasSynced' | 'progress'> & {
  readonly lister: { readonly size: number };
};

/** Dependencies of `StatusPage`. */
export interface StatusPageDeps {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Of the program, as its version line has it. */
  readonly version: string;
  /** Asked at each request, as all that follows. */
  readonly informers: () => readonly ShownInformer[];
  /** Absent: there is no election, this process works alone. */
  readonly election?:
    | {
        /** What the Lease calls this process. */
        readonly identity: string;
        readonly leases: () => readonly LeaseSighting[];
      }
    | undefined;
  /** @default nothing is masked */
  readonly redact?: ((text: string) => string) | undefined;
}

/** What `/debug/status` answers. */
export interface ProcessStatus {
  readonly version: string;
  /** RFC 3339, by the wall clock. */
  readonly now: string;
  readonly upMs: number;
  /** Absent: this process works alone. */
  readonly election?: { readonly identity: string; readonly leases: readonly LeaseSighting[] };
  readonly informers: readonly InformerStatus[];
}

/** The status of an informer on `/debug/status`. */
export interface InformerStatus {
  readonly name: string;
  /** `missing`: the server does not have the resource. `stale`: no activity of the server for too long. */
  readonly state: 'missing' | 'stale' | InformerView['progress']['phase'];
  readonly stateForMs: number;
  readonly hasSynced: boolean;
  /** Since the last sign of life of the server. */
  readonly inactiveMs: number;
  readonly objects: number;
  /** Why the last call failed, until one succeeds: `connection refused`. */
  readonly error?: string;
}

/** `/debug/status`: what a live view needs besides the queues and the metrics. */
export function statusPage(deps: StatusPageDeps): Pages {
  checkOptions(deps, DEPS, 'statusPage');
  const { clock, redact } = deps;
  const json = jsonPages(redact);
  const startedMs = clock.monotonic();
  return new Map([['/debug/status', () => json(200, statusOf(deps, startedMs))]]);
}

function statusOf(
  { clock, version, informers, election }: StatusPageDeps,
  startedMs: number,
): ProcessStatus {
  const nowMs = clock.monotonic();
  return {
    version,
    now: new Date(clock.now()).toISOString(),
    upMs: nowMs - startedMs,
    ...(election && { election: { identity: election.identity, leases: election.leases() } }),
    informers: informers().map((informer) => informerStatus(informer, nowMs)),
  };
}

function informerStatus(
  { name, hasSynced, progress, lister }: ShownInformer,
  nowMs: number,
): InformerStatus {
  const { phase, sinceMs, missing, isStale, inactiveMs, lastError, lastErrorMs } = progress;
  return {
    name,
    state: missing ? 'missing' : isStale ? 'stale' : phase,
    stateForMs: nowMs - sinceMs,
    hasSynced,
    inactiveMs,
    objects: lister.size,
    ...(lastErrorMs !== undefined && { error: failureReason(lastError) }),
  };
}
