import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BenchmarkCall } from '../benchmark.ts';
import { Arguments } from '../support/arguments.ts';
import { ratios, spreadOf, textOf } from '../support/spread.ts';
import type { Spread } from '../support/spread.ts';
import { table } from '../support/table.ts';
import { SCENARIOS } from './contender.ts';
import type { QueueOptions, QueueReport, Scenario } from './contender.ts';

/** The baseline comes first. */
const CONTENDERS = ['plain', 'ours', 'p-queue'] as const;
type Contender = (typeof CONTENDERS)[number];

interface Result {
  readonly scenario: Scenario;
  readonly contender: Contender;
  /** User and system time, in microseconds for each key. */
  readonly cpuUs: Spread;
  /** Ratio to the baseline in each round. */
  readonly ratio: Spread;
  readonly peakRssMb: Spread;
}

/**
 * Measures what a key costs in our work queue and worker pool, in p-queue alone, and in a loop over
 * arrays.
 *
 * `--keys=20000 --waves=10 --rounds=5`
 */
export async function main({ args, json }: BenchmarkCall): Promise<void> {
  const given = new Arguments(args);
  const keys = given.number('keys', 20_000);
  const waves = given.number('waves', 10);
  const rounds = given.number('rounds', 5);
  given.end();

  const results: Result[] = [];
  for (const scenario of SCENARIOS) {
    const reports = new Map<Contender, QueueReport[]>(CONTENDERS.map((name) => [name, []]));
    for (let round = 1; round <= rounds; round++) {
      for (const [contender, of] of reports) {
        const report = await run(contender, { scenario, keys, waves });
        of.push(report);
        console.error(`${scenario}, round ${round}, ${contender}: ${report.cpuMs.toFixed(0)} ms`);
      }
    }
    const micros = ({ cpuMs }: QueueReport) => (cpuMs * 1000) / (keys * waves);
    const baseline = (reports.get('plain') ?? []).map(micros);
    for (const [contender, of] of reports) {
      const cpuUs = of.map(micros);
      results.push({
        scenario,
        contender,
        cpuUs: spreadOf(cpuUs),
        ratio: ratios(cpuUs, baseline),
        peakRssMb: spreadOf(of.map(({ peakRssKb }) => peakRssKb / 1024)),
      });
    }
  }
  if (json) console.log(JSON.stringify({ benchmark: 'queue', keys, waves, rounds, results }));
  else print(results, { keys, waves, rounds });
}

async function run(contender: Contender, options: QueueOptions): Promise<QueueReport> {
  const file = join(import.meta.dirname, 'contenders', `${contender}.ts`);
  const { stdout } = await promisify(execFile)(process.execPath, [file, JSON.stringify(options)]);
  return JSON.parse(stdout) as QueueReport;
}

function print(
  results: readonly Result[],
  { keys, waves, rounds }: Readonly<Record<'keys' | 'waves' | 'rounds', number>>,
): void {
  console.log(
    `queue: ${waves} waves of ${keys} keys, each added twice; median (min–max) of ${rounds} rounds\n`,
  );
  const rows = results.map(({ scenario, contender, cpuUs, ratio, peakRssMb }) => [
    contender,
    scenario,
    textOf(cpuUs),
    textOf(ratio, 1),
    textOf(peakRssMb, 0),
  ]);
  console.log(table(['queue', 'scenario', 'CPU µs/key', 'to plain', 'peak RSS MiB'], rows));
}
