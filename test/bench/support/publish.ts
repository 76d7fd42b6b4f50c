import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { barChart } from './chart.ts';
import type { Panel } from './chart.ts';
import { report } from './report.ts';
import type { Results } from './results.ts';
import { spreadOf } from './spread.ts';
import type { Workload } from './workload.ts';

const docs = join(import.meta.dirname, '../../../docs');

/** A workload with its results. */
export interface Measured {
  readonly workload: Workload;
  readonly results: Results;
}

/**
 * Replaces the tables in a page between `<!-- bench NAME -->` and `<!-- /bench -->`, and writes its chart. Sections of
 * workloads without results stay unchanged.
 *
 * @param page name in docs/ without extension
 */
export async function publish(page: string, measured: readonly Measured[]): Promise<void> {
  const file = join(docs, `${page}.md`);
  let text = readFileSync(file, 'utf8');
  for (const { workload, results } of measured) {
    const pattern = new RegExp(`(<!-- bench ${results.workload} -->\n)[^]*?(<!-- /bench -->)`);
    if (!pattern.test(text)) continue;
    const counts = results.cases.map((one) => one.rounds.length);
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    const rounds = least === most ? `${least}` : `${least} to ${most}`;
    const origin = `Medians of ${rounds} ${most === 1 ? 'round' : 'rounds'} (minimum–maximum), ${results.date}, Node.js ${results.node}:`;
    const { description } = workload;
    const title = `## ${description.charAt(0).toUpperCase()}${description.slice(1)}`;
    const command = `\`npm run bench -- ${results.workload}\``;
    const section = `\n${title}\n\n${command}. ${origin}\n\n${report(workload, results)}\n\n`;
    text = text.replace(pattern, (_, start: string, end: string) => `${start}${section}${end}`);
  }
  const panels = measured.flatMap(panelsOf);
  if (panels.length > 0) {
    const description = 'Medians of the benchmarks; shorter bars are better';
    writeFileSync(join(docs, `${page}.svg`), barChart(description, panels));
    const image = `\n![${description}](${page}.svg)\n\n`;
    text = text.replace(
      /(<!-- bench chart -->\n)[^]*?(<!-- \/bench -->)/,
      (_, start: string, end: string) => `${start}${image}${end}`,
    );
  }
  const style = await resolveConfig(file);
  writeFileSync(file, await format(text, { ...style, parser: 'markdown' }));
}

function panelsOf({ workload, results }: Measured): Panel[] {
  const { chart = [], columns } = workload;
  return chart.flatMap(({ key, title, by = 'contestant' }) => {
    const digits = columns.find((column) => column.key === key)?.digits ?? 0;
    const shown = by === 'case' ? results.cases : results.cases.slice(0, 1);
    const bars = shown.flatMap(({ name, rounds }) =>
      workload
        .cases(results.options)
        .filter((one) => one.name === name)
        .flatMap(({ contestants }) => contestants)
        .flatMap((contestant) => {
          const values = rounds.flatMap(({ samples }) => samples[contestant]?.[key] ?? []);
          if (values.length === 0 || values.some(Number.isNaN)) return [];
          const value = spreadOf(values).median;
          return { label: by === 'case' ? name : contestant, value, text: value.toFixed(digits) };
        }),
    );
    if (bars.length === 0) return [];
    return { title: by === 'case' ? title : `${title} (${shown[0]!.name})`, bars };
  });
}
