/**
 * Compares the ratios to the baseline with recorded ones, in short forms of workloads that need only Node.js. Ratios
 * within a round do not depend on the speed of the machine.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runWorkload } from './rounds.ts';
import type { Results } from './results.ts';
import { ratios } from './spread.ts';
import type { Options, Workload } from './workload.ts';

/** Worse than this times the recorded ratio fails. */
const TOLERANCE = 1.25;

const ROUNDS = 5;
const OURS = 'ours';

/** Options in addition to those of the short form. */
const GUARDED: Readonly<Record<string, Options>> = {
  'watch-storm': {},
  sync: {},
  queue: {},
};

const file = join(import.meta.dirname, '../recorded.json');

/** Median ratios by `workload: case: column`. */
type Ratios = Readonly<Record<string, number>>;

/**
 * Measures the ratios, and once more those of a workload with a worse one.
 *
 * @param record whether to write the ratios instead of comparing them
 * @returns whether all ratios are good
 */
export async function guard(record: boolean): Promise<boolean> {
  const recorded = record ? {} : (JSON.parse(readFileSync(file, 'utf8')) as Ratios);
  const measured: Record<string, number> = {};
  const lines: string[] = [];
  for (const [name, options] of Object.entries(GUARDED)) {
    let found = await measure(name, options);
    const isWorse = ([id, ratio]: [string, number]) => ratio > (recorded[id] ?? 0) * TOLERANCE;
    if (!record && Object.entries(found).some(isWorse)) {
      console.error(`bench: ${name} is worse than recorded, measuring again`);
      const again = await measure(name, options);
      found = Object.fromEntries(
        Object.entries(found).map(([id, ratio]) => [id, Math.min(ratio, again[id] ?? ratio)]),
      );
    }
    Object.assign(measured, found);
    for (const [id, ratio] of Object.entries(found)) {
      const before = recorded[id];
      const verdict = record || !isWorse([id, ratio]) ? 'ok' : 'WORSE';
      lines.push(
        `${id}: ${ratio.toFixed(2)}, recorded ${before?.toFixed(2) ?? 'nothing'}: ${verdict}`,
      );
    }
  }
  console.log(lines.join('\n'));
  if (record) writeFileSync(file, `${JSON.stringify(rounded(measured), undefined, 2)}\n`);
  return !lines.some((line) => line.endsWith('WORSE'));
}

async function measure(name: string, more: Options): Promise<Ratios> {
  const { workload } = (await import(`../workloads/${name}.ts`)) as { workload: Workload };
  const { results } = await runWorkload(name, workload, {
    options: { ...workload.options, ...workload.short, ...more },
    rounds: ROUNDS,
    contestants: ['bare', 'plain', OURS],
    resume: false,
    seconds: Number.POSITIVE_INFINITY,
    save: false,
  });
  return ratiosOf(workload, results);
}

function ratiosOf({ columns }: Workload, { workload, cases }: Results): Ratios {
  const found: Record<string, number> = {};
  for (const { name, rounds } of cases) {
    for (const { key, title, ratio } of columns) {
      if (!ratio) continue;
      const values = (contestant: (names: readonly string[]) => string | undefined) =>
        rounds.map(({ samples }) => {
          const chosen = contestant(Object.keys(samples));
          return (chosen === undefined ? undefined : samples[chosen]?.[key]) ?? Number.NaN;
        });
      const ours = values((names) => names.find((one) => one === OURS));
      const baseline = values((names) => names.find((one) => one !== OURS));
      found[`${workload}: ${name}: ${title}`] = ratios(ours, baseline).median;
    }
  }
  return found;
}

function rounded(all: Ratios): Ratios {
  return Object.fromEntries(
    Object.entries(all).map(([id, ratio]) => [id, Number(ratio.toFixed(2))]),
  );
}
