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

/** Returns one fault of each line, selected by the seed, so that a sample weighs code by its lines. */
export function oneOfEachLine(faults: readonly Fault[], seed: string): Fault[] {
  const byLine = Map.groupBy(faults, ({ file, line }) => `${file}:${line}`);
  return [...byLine.values()].flatMap((some) => sampleOf(some, 1, seed));
}

/** Bounds of a proportion with a confidence of 95 %, by Wilson's formula. */
export function interval(hits: number, total: number): readonly [number, number] {
  if (total === 0) return [0, 1];
  const z = 1.96;
  const share = hits / total;
  const middle = share + z ** 2 / (2 * total);
  const width = z * Math.sqrt((share * (1 - share)) / total + (z / (2 * total)) ** 2);
  const scale = 1 + z ** 2 / total;
  return [(middle - width) / scale, (middle + width) / scale];
}

function rankOf(fault: Fault, seed: string): number {
  return createHash('sha256')
    .update(`${seed} ${titleOf(fault)}`)
    .digest()
    .readUInt32BE();
}
