/** A key in the work queue and the worker pool, and an object in the indexer, without a server. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SCENARIOS } from '../queue/contender.ts';
import type { QueueOptions, QueueReport } from '../queue/contender.ts';
import { nodeProgram } from '../support/programs.ts';
import { numberIn } from '../support/workload.ts';
import type { Case, Options, Workload } from '../support/workload.ts';

/** The baseline comes first. */
const CONTESTANTS = ['plain', 'ours', 'p-queue'] as const;

export const workload: Workload = {
  description: 'cost of a key in the work queue, and of an object in the indexer',
  options: { keys: '20000', waves: '10', scenarios: SCENARIOS.join(',') },
  short: { waves: '4', scenarios: 'plain,backoff,handler' },
  columns: [
    { key: 'cpuUs', title: 'CPU µs/key', digits: 2, ratio: true },
    { key: 'peakRssMb', title: 'peak RSS MiB' },
  ],
  cases(options: Options): readonly Case[] {
    const keys = numberIn(options, 'keys');
    const waves = numberIn(options, 'waves');
    const wanted = (options['scenarios'] ?? '').split(',');
    return SCENARIOS.filter((scenario) => wanted.includes(scenario)).map((scenario) => ({
      name: scenario,
      contestants: CONTESTANTS.filter((name) => name !== 'p-queue' || scenario !== 'indexer'),
      open: async () => ({
        sample: async (contestant) => {
          const { file, args } = nodeProgram(`queue/contenders/${contestant}.ts`);
          const given: QueueOptions = { scenario, keys, waves };
          const { stdout } = await promisify(execFile)(file, [...args, JSON.stringify(given)]);
          const { cpuMs, peakRssKb } = JSON.parse(stdout) as QueueReport;
          return { cpuUs: (cpuMs * 1000) / (keys * waves), peakRssMb: peakRssKb / 1024 };
        },
        [Symbol.asyncDispose]: async () => undefined,
      }),
    }));
  },
};
