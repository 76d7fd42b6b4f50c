import type { WriteFence } from '../client/write-fence.ts';
import { LeaderElector } from '../leaderelection/leader-elector.ts';
import { LeaderTerms } from '../leaderelection/leader-terms.ts';
import type { LeaderElectorDeps } from '../leaderelection/leader-elector.ts';
import { ELECTOR_OPTIONS } from '../leaderelection/leader-elector-options.ts';
import type { LeaderElectorOptions } from '../leaderelection/leader-elector-options.ts';
import type { LeaseClient } from '../leaderelection/lease-lock.ts';
import type { EventBroadcaster } from '../record/event-broadcaster.ts';
import { Shards } from '../sharding/shards.ts';
import type { Leadership } from './manager.ts';
import type { Sharding } from './controller-options.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const { deferMs: _, ...ELECTION } = ELECTOR_OPTIONS;

const OPTIONS: OptionNames<LeaderElectionOptions> = {
  ...ELECTION,
  client: true,
  fence: true,
  shards: true,
  stepDown: true,
};

/** How replicas share the work: a single leader, or shards. */
export interface LeaderElectionOptions extends Omit<LeaderElectorOptions, 'deferMs'> {
  /** A client without a rate limit and with a short timeout: other requests must not delay renewals. */
  readonly client: LeaseClient;
  /** The fence around the transport of the controllers' client: the `wrapTransport` option of `connectCluster`. */
  readonly fence: WriteFence;
  /**
   * Number of shards. Each replica works on the shards whose Leases (`NAME-0` and so on) it holds. With 1, one
   * replica leads and the others are standbys.
   * @default 1
   */
  readonly shards?: number | undefined;
  /**
   * Whether a process that lost its lease stops its controllers and stands by again. Otherwise the program ends with an
   * `AbruptStop` of the kind `leadershipLost`. If the controllers do not stop within `gracefulShutdownTimeoutMs`, it ends, too. Not
   * possible with shards.
   * @default false
   */
  readonly stepDown?: boolean | undefined;
}

/** Options of the leader election of a program, which has defaults for the others. */
export type GivenElection = {
  readonly [K in keyof LeaderElectionOptions]?: LeaderElectionOptions[K] | undefined;
};

/** Dependencies of `newCoordination`. */
export interface CoordinationDeps extends Pick<
  LeaderElectorDeps,
  'clock' | 'random' | 'log' | 'metrics' | 'onLease'
> {
  readonly events: EventBroadcaster;
  /** Time for the controllers to stop after a lost lease, in milliseconds. */
  readonly stepDownTimeoutMs: number;
}

/** The role of this replica among several. */
export interface Coordination {
  readonly leadership: Leadership & Pick<LeaderElector, 'mayWrite' | 'health'>;
  /** Decides which keys belong to this replica; undefined if the leader has all keys. */
  readonly sharding: Sharding | undefined;
  /** The leadership, if the process stands by again after a lost lease. */
  readonly terms: LeaderTerms | undefined;
}

/**
 * Creates a leader elector, or shards with one Lease each, and lets it guard the fence.
 *
 * @throws {RangeError} on `stepDown` with shards
 */
export function newCoordination(
  deps: CoordinationDeps,
  options: LeaderElectionOptions,
): Coordination {
  checkOptions(options, OPTIONS, 'leaderElection');
  const { client, fence, shards = 1, stepDown = false, ...election } = options;
  const { events, stepDownTimeoutMs, log, ...rest } = deps;
  if (stepDown && shards > 1) {
    throw new RangeError('stepDown must be false with shards: a replica that lost a shard ends');
  }
  const electorDeps: LeaderElectorDeps = {
    ...rest,
    client,
    log: log.named('leaderelection'),
    recorder: events.recorder(election.name),
  };
  const sharding = shards > 1 ? new Shards(electorDeps, { ...election, count: shards }) : undefined;
  const terms = stepDown ? new LeaderTerms(electorDeps, election, stepDownTimeoutMs) : undefined;
  const leadership = sharding ?? terms ?? new LeaderElector(electorDeps, election);
  fence.guardedBy(
    () => leadership.mayWrite(),
    () => leadership.mayWriteEvents(),
  );
  return { leadership, sharding, terms };
}
