import { createHash } from 'node:crypto';
import type { Fault } from './faults.ts';
import { titleOf } from './faults.ts';

/**
 * Returns at most `size` faults, evenly distributed: one of each section of equal length, selected by the seed.
 */
export function sampleOf(faults: readonly Fault[], size: number, seed: string): Fault[] {
  if (faults.length <= size) return [...faults];
  return Array.from({ length: size }, (_, at) => {
    const from = Math.floor((at * faults.length) / size);
    const to = Math.floor(((at + 1) * faults.length) / size);
    return faults
      .slice(from, to)
      .map((fault) => ({ fault, rank: rankOf(fault, seed) }))
      .sort((a, b) => a.rank - b.rank)[0]?.fault;
  }).filter((fault) => fault !== undefined);
}

function rankOf(fault: Fault, seed: string): number {
  return createHash('sha256')
    .update(`${seed} ${titleOf(fault)}`)
    .digest()
    .readUInt32BE();
}
