import type { WriteFence } from '../client/write-fence.ts';
import { LeaderElector } from '../leaderelection/leader-elector.ts';
import type { LeaderElectorDeps } from '../leaderelection/leader-elector.ts';
import type { LeaderElectorOptions } from '../leaderelection/leader-elector-options.ts';
import type { LeaseClient } from '../leaderelection/lease-lock.ts';
import type { EventBroadcaster } from '../record/event-broadcaster.ts';
import { Shards } from '../sharding/shards.ts';
import type { Leadership } from './manager.ts';
import type { Sharding } from './serve-shards.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const OPTIONS: OptionNames<LeaderElectionOptions> = {
  client: true,
  fence: true,
  shards: true,
  namespace: true,
  name: true,
  labels: true,
  identity: true,
  leaseDurationMs: true,
  renewDeadlineMs: true,
  retryPeriodMs: true,
  jitter: true,
  releaseOnCancel: true,
  healthToleranceMs: true,
};

/** How several replicas get along. */
export interface LeaderElectionOptions extends Omit<LeaderElectorOptions, 'deferMs'> {
  /** Of a connection of its own: renewals must not wait behind other requests. */
  readonly client: LeaseClient;
  /** What the controllers' client has around its transport: the `around` of `connectCluster`. */
  readonly fence: WriteFence;
  /**
   * Into how many shards the work is split: each replica does those whose Lease it holds, and those
   * are called `NAME-0` and so on. With 1, one replica does everything, and the others stand by.
   * @default 1
   */
  readonly shards?: number | undefined;
}

export interface PartDeps extends Pick<
  LeaderElectorDeps,
  'clock' | 'random' | 'log' | 'metrics' | 'onLease'
> {
  readonly events: EventBroadcaster;
  /** How long events may take that are told before a Lease is given back, in milliseconds. */
  readonly flushTimeoutMs: number;
}

/** What one replica may do, as one of several. */
export interface Part {
  readonly leadership: Leadership & Pick<LeaderElector, 'mayWrite' | 'health'>;
  /** Which keys are its own; undefined: all, once it leads. */
  readonly sharding: Sharding | undefined;
}

/** Leadership by one Lease, or shards by several: what guards the fence. */
export function partOf(deps: PartDeps, options: LeaderElectionOptions): Part {
  checkOptions(options, OPTIONS, 'leaderElection');
  const { client, fence, shards = 1, ...terms } = options;
  const { events, flushTimeoutMs, log, ...rest } = deps;
  const electorDeps: LeaderElectorDeps = {
    ...rest,
    client,
    log: log.named('leaderelection'),
    recorder: events.recorder(terms.name),
    flushEvents: () => events.flush(flushTimeoutMs),
  };
  const sharding = shards > 1 ? new Shards(electorDeps, { ...terms, count: shards }) : undefined;
  const leadership = sharding ?? new LeaderElector(electorDeps, terms);
  fence.guardedBy(() => leadership.mayWrite());
  return { leadership, sharding };
}
