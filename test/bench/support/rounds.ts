import { isDeepStrictEqual } from 'node:util';
import { Unavailable } from './programs.ts';
import { readResults, writeResults } from './results.ts';
import type { CaseResults, Results, Round } from './results.ts';
import type { Options, Sample, Setting, Workload } from './workload.ts';

export interface RunOptions {
  readonly options: Options;
  readonly rounds: number;
  /** Contestants to measure; undefined: all. */
  readonly contestants: readonly string[] | undefined;
  /** Whether the rounds of an earlier run with the same options count. */
  readonly resume: boolean;
  /** No round starts that is expected to end later than this after the start of the process. */
  readonly seconds: number;
  /** Whether to write the results to `results/`. */
  readonly save: boolean;
}

/**
 * Measures the rounds of all cases. In a round, the contestants run one after another, so that a slow round
 * affects all of them. The results are written after each round.
 *
 * @returns the results so far, and whether rounds are missing because there was no time
 */
export async function runWorkload(
  name: string,
  workload: Workload,
  { options, rounds, contestants, resume, seconds, save }: RunOptions,
): Promise<{ readonly results: Results; readonly isComplete: boolean }> {
  const settings = { ...options, contestants: contestants?.join(',') ?? '' };
  const earlier = resume ? readResults(name) : undefined;
  const known = isDeepStrictEqual(earlier?.options, settings) ? (earlier?.cases ?? []) : [];
  const cases = new Map(known.map((one) => [one.name, one]));
  const wanted = workload.cases(options);
  const snapshot = (): Results => ({
    workload: name,
    options: settings,
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cases: wanted.flatMap((one) => cases.get(one.name) ?? []),
  });

  let longestMs = 0;
  for (const one of wanted) {
    const done = cases.get(one.name)?.rounds.length ?? 0;
    if (done >= rounds) continue;
    const hasTime = () => performance.now() + longestMs <= seconds * 1000;
    if (!hasTime()) return { results: snapshot(), isComplete: false };
    const chosen = one.contestants.filter(
      (contestant) => contestants?.includes(contestant) ?? true,
    );
    await using setting = await one.open(chosen);
    for (let round = done; round < rounds; round++) {
      if (!hasTime()) return { results: snapshot(), isComplete: false };
      const started = performance.now();
      const next = await runRound(setting, { name: one.name, round, chosen });
      longestMs = Math.max(longestMs, performance.now() - started);
      const before: CaseResults = cases.get(one.name) ?? { name: one.name, rounds: [] };
      cases.set(one.name, { name: one.name, rounds: [...before.rounds, next] });
      if (save) writeResults(snapshot());
    }
  }
  return { results: snapshot(), isComplete: true };
}

async function runRound(
  setting: Setting,
  { name, round, chosen }: { name: string; round: number; chosen: readonly string[] },
): Promise<Round> {
  // Each round starts with another contestant, so that none is always measured in the state that another left.
  const first = round % Math.max(1, chosen.length);
  const samples: Record<string, Sample> = {};
  const failures: Record<string, string> = {};
  for (const contestant of [...chosen.slice(first), ...chosen.slice(0, first)]) {
    const prefix = `${name}, round ${round + 1}, ${contestant}`;
    try {
      const sample = await setting.sample(contestant);
      samples[contestant] = sample;
      const numbers = Object.entries(sample).map(([key, value]) => `${key} ${value.toFixed(2)}`);
      console.error(`${prefix}: ${numbers.join(', ')}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      failures[contestant] = error instanceof Unavailable ? message : `wrong: ${message}`;
      console.error(`${prefix}: ${failures[contestant]}`);
      if (!(error instanceof Unavailable)) process.exitCode = 1;
    }
  }
  return { samples, failures };
}
