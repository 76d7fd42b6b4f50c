import { parseArgs } from 'node:util';
import { report } from './report.ts';
import { runWorkload } from './rounds.ts';
import type { Options, Workload } from './workload.ts';

const ROUNDS = 5;

/** Runs a workload with the options of the command line, and prints its table. */
export async function runCommand(name: string, args: readonly string[]): Promise<void> {
  const { workload } = (await import(`../workloads/${name}.ts`)) as { workload: Workload };
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(Object.keys(workload.options).map((option) => [option, text])),
      rounds: text,
      contestants: text,
      seconds: text,
      resume: { type: 'boolean' },
      short: { type: 'boolean' },
      json: { type: 'boolean' },
    },
  });
  const { rounds, contestants, seconds, resume = false, short, json, ...given } = values;
  const options: Options = {
    ...workload.options,
    ...(short && workload.short),
    ...(given as Options),
  };
  const { results, isComplete } = await runWorkload(name, workload, {
    options,
    rounds: Number(rounds ?? (short ? 3 : (workload.rounds ?? ROUNDS))),
    contestants: contestants?.split(','),
    resume,
    seconds: Number(seconds ?? Number.POSITIVE_INFINITY),
  });
  console.log(json ? JSON.stringify(results) : report(workload, results));
  if (!isComplete) console.error('bench: rounds are missing; run the command again with --resume');
}
