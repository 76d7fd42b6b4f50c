import { Counter, Gauge } from './prom-client.ts';
import type { Registry } from './registry.ts';

/** Records the state of leases by the name of their lock. */
export interface LeaderElectionMetrics {
  /** This process became or is no longer the leader. */
  leading(lock: string, leads: boolean): void;
  /** A renewal was not a single update: it had to read the lease first. */
  slowPath(lock: string): void;
}

/** Registers the leader election metrics of client-go. Called once per registry. */
export function leaderElectionMetrics(registry: Registry): LeaderElectionMetrics {
  const master = new Gauge({
    name: 'leader_election_master_status',
    help: '1 if this process is the leader, 0 if it is a standby',
    labelNames: ['name'],
    registers: [registry],
  });
  const slowPaths = new Counter({
    name: 'leader_election_slowpath_total',
    help: 'Number of lease renewals that took more than a single update',
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
