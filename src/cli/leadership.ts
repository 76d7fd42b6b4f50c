import type { ClusterConfig } from '../client/kube-config/cluster-config.ts';
import type { WriteFence } from '../client/write-fence.ts';
import type { LeaseClient } from '../leaderelection/lease-lock.ts';
import { UsageError } from './exit-codes.ts';
import type { LeaderElectionConfig } from './run-config.ts';

/** What a daemon needs to be one of several. */
export interface LeadershipDeps {
  /** Of a connection of its own, not behind the fence. */
  readonly client: LeaseClient;
  /** What every write of the daemon's own client passes. */
  readonly fence: WriteFence;
  /** What the Lease calls this process: no other may ever be called so. */
  readonly identity: string;
  /** Where the Lease is. */
  readonly namespace: string;
}

/** Half the time that a renewal may take, so that one request that hangs is not the end of it. */
export function leaseTimeoutMs({ renewDeadlineMs }: LeaderElectionConfig): number {
  return Math.max(1000, renewDeadlineMs / 2);
}

/** @throws {UsageError} if nobody has said where the Lease is to be */
export function leaseNamespace(
  { namespace }: LeaderElectionConfig,
  cluster: Pick<ClusterConfig, 'namespace' | 'namespaceIsAssumed' | 'source'>,
): string {
  if (namespace !== undefined) return namespace;
  if (!cluster.namespaceIsAssumed) return cluster.namespace;
  throw new UsageError(
    `--leader-elect requires a namespace for its Lease, and ${cluster.source} has none: set --leader-elect-resource-namespace`,
  );
}
