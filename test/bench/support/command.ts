import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { guard } from './guard.ts';
import { publish } from './publish.ts';
import type { Measured } from './publish.ts';
import { report } from './report.ts';
import { readResults } from './results.ts';
import { runWorkload } from './rounds.ts';
import type { Options, Workload } from './workload.ts';

const ROUNDS = 5;

/** A workload with other options, which has a table of its own. */
interface Variant {
  readonly workload: string;
  readonly description: string;
  readonly options: Options;
}

const VARIANTS: Readonly<Record<string, Variant>> = {
  'main-job-large': {
    workload: 'main-job',
    description: 'the same controller with 10,000 Foos',
    options: { objects: '10000', workers: '0', start: 'existing' },
  },
  'main-job-embedded': {
    workload: 'main-job',
    description: 'the same controller on the embedded server',
    options: { server: 'embedded' },
  },
};

/** In the order of the chart. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  benchmarks: [
    'main-job',
    'main-job-large',
    'main-job-embedded',
    'watch-storm',
    'sync',
    'latency',
    'relist',
    'queue',
    'start',
    'weight',
    'apiserver',
  ],
  scaling: ['scale'],
};

/** Commands apart from the names of workloads. */
export const COMMANDS: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  /** Runs all workloads, or what is left of them, and writes the pages. */
  async all(args) {
    for (const name of Object.values(PAGES).flat()) await runCommand(name, [...args, '--resume']);
    await COMMANDS['docs']!([]);
  },
  /** Writes the pages from the results. */
  async docs() {
    for (const [page, names] of Object.entries(PAGES)) {
      const measured: Measured[] = [];
      for (const name of names) {
        const results = readResults(name);
        if (results) measured.push({ workload: await workloadOf(name), results });
      }
      if (measured.length > 0) await publish(page, measured);
    }
  },
  async guard(args) {
    if (!(await guard(args.includes('--record')))) process.exitCode = 1;
  },
};

export function workloadNames(): string[] {
  const folder = join(import.meta.dirname, '../workloads');
  const files = globSync('*.ts', { cwd: folder }).map((file) => basename(file, '.ts'));
  return [...files, ...Object.keys(VARIANTS)];
}

async function workloadOf(name: string): Promise<Workload> {
  const variant = VARIANTS[name];
  const { workload } = (await import(`../workloads/${variant?.workload ?? name}.ts`)) as {
    workload: Workload;
  };
  if (!variant) return workload;
  // Without a chart: it would repeat that of the base.
  return {
    ...workload,
    description: variant.description,
    options: { ...workload.options, ...variant.options },
    chart: [],
  };
}

/** Runs a workload with the options of the command line, and prints its table. */
export async function runCommand(name: string, args: readonly string[]): Promise<void> {
  const workload = await workloadOf(name);
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
    save: true,
  });
  console.log(json ? JSON.stringify(results) : report(workload, results));
  if (!isComplete) console.error('bench: rounds are missing; run the command again with --resume');
}
