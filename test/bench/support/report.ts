import type { CaseResults, Results } from './results.ts';
import { ratios, spreadOf, textOf } from './spread.ts';
import { table } from './table.ts';
import type { Column, Workload } from './workload.ts';

/** Returns a Markdown table with medians, spread and ratios. */
export function report(workload: Workload, results: Results): string {
  const { columns } = workload;
  const titles = columns.flatMap(({ title, ratio }) =>
    ratio ? [title, `${title}, ratio`] : [title],
  );
  const rows = workload.cases(results.options).flatMap((one) => {
    const found = results.cases.find(({ name }) => name === one.name);
    if (!found) return [];
    return one.contestants
      .map((contestant) => rowOf(found, contestant, { columns, baseline: one.contestants[0]! }))
      .filter((row) => row !== undefined);
  });
  return table(['case', 'contestant', ...titles], rows);
}

function rowOf(
  { name, rounds }: CaseResults,
  contestant: string,
  { columns, baseline }: { columns: readonly Column[]; baseline: string },
): string[] | undefined {
  const failure = rounds.findLast(({ failures }) => contestant in failures)?.failures[contestant];
  if (failure !== undefined) return [name, contestant, failure];
  const measured = rounds.filter(({ samples }) => contestant in samples);
  if (measured.length === 0) return undefined;
  const cells = columns.flatMap(({ key, digits = 0, ratio }) => {
    const values = (of: string) => measured.map(({ samples }) => samples[of]?.[key] ?? Number.NaN);
    const own = values(contestant);
    const text = own.some(Number.isNaN) ? '' : textOf(spreadOf(own), digits);
    if (!ratio) return [text];
    const base = values(baseline);
    return [text, base.some(Number.isNaN) ? '' : textOf(ratios(own, base))];
  });
  return [name, contestant, ...cells];
}
