import type { ProcessStatus } from '../../debug-pages.ts';
import type { Tone } from './results.ts';

/** Returns the role of the process in the leader election, for the head of the page. */
export function roleOf({ election }: ProcessStatus): {
  readonly tone: Tone;
  readonly text: string;
  readonly note: string;
} {
  if (!election) return { tone: 'good', text: 'Single replica', note: 'No leader election' };
  const { identity, leases } = election;
  const note = `Identity ${identity}`;
  const held = leases.filter(({ holder }) => holder === identity);
  if (leases.length > 1) {
    const tone = held.length > 0 ? 'good' : 'warning';
    return { tone, text: `Owner of ${held.length} of ${leases.length} shards`, note };
  }
  if (held.length > 0) return { tone: 'good', text: 'Leader', note };
  const [lease] = leases;
  const leader = lease?.holder ? `leader ${lease.holder}` : 'no leader known';
  return {
    tone: lease?.holder ? 'neutral' : 'warning',
    text: 'Standby',
    note: `${note}; ${leader}`,
  };
}
