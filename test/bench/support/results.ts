import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Options, Sample } from './workload.ts';

/** All rounds of a workload, as written to `results/NAME.json`. */
export interface Results {
  readonly workload: string;
  readonly options: Options;
  /** Of the last round: `2026-11-22`. */
  readonly date: string;
  readonly node: string;
  readonly cases: readonly CaseResults[];
}

export interface CaseResults {
  readonly name: string;
  readonly rounds: readonly Round[];
}

/** Measured one after another. */
export interface Round {
  readonly samples: Readonly<Record<string, Sample>>;
  /** By contestant: why it has no sample, or why its sample is wrong. */
  readonly failures: Readonly<Record<string, string>>;
}

const folder = join(import.meta.dirname, '../results');

export function readResults(workload: string): Results | undefined {
  const file = fileOf(workload);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : undefined;
}

export function writeResults(results: Results): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(fileOf(results.workload), `${JSON.stringify(results, undefined, 1)}\n`);
}

function fileOf(workload: string): string {
  return join(folder, `${workload}.json`);
}
