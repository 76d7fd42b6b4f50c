/**
 * Leader election on Leases. `runControllers` uses it by its option `leaderElection`.
 *
 * @public
 * @module
 */
export { LeaderElector } from './leaderelection/leader-elector.ts';
export type {
  LeaderElectorDeps,
  LeaderElectorOptions,
  LeadershipRecorder,
} from './leaderelection/leader-elector.ts';
export type { LeaseClient } from './leaderelection/lease-lock.ts';
