import { Counter, Gauge } from 'prom-client';
import type { Registry } from './registry.ts';

/** What becomes of one lease, by the name of its lock. */
export interface LeaderElectionMetrics {
  /** Whether this process leads. */
  leading(lock: string, leads: boolean): void;
  /** A renewal did not succeed at once, by an update without a read. */
  slowPath(lock: string): void;
}

/** Counts nothing. */
export const noLeaderElectionMetrics: LeaderElectionMetrics = {
  leading: () => undefined,
  slowPath: () => undefined,
};

/** Who leads, and how easily. Call it once for a registry. */
export function leaderElectionMetrics(registry: Registry): LeaderElectionMetrics {
  const master = new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process leads: 0 is a standby, 1 the leader',
    labelNames: ['name'],
    registers: [registry],
  });
  const slowPaths = new Counter({
    name: 'leader_election_slowpath_total',
    help: 'Renewals of the lease that took more than one update',
    labelNames: ['name'],
    registers: [registry],
  });
  return {
    leading: (name, leads) => {
      master.set({ name }, leads ? 1 : 0);
      slowPaths.inc({ name }, 0);
    },
    slowPath: (name) => slowPaths.inc({ name }),
  };
}
