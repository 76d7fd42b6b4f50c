import { flagNamed, sortedOptions } from '../../src/cli/flags/flag-parser.ts';
import type { Option, Options } from '../../src/cli/flags/option.ts';

/** Returns the table of the daemon's flags for the documentation, as Markdown. */
export function optionsTable(options: Options): string {
  const lines = ['| Flag | Default | Meaning |', '| --- | --- | --- |'];
  let group = '';
  for (const [name, option] of sortedOptions(options)) {
    if (option.hidden) continue;
    if (option.group !== group) lines.push(`| **${option.group}** | | |`);
    group = option.group;
    lines.push(tableRow(name, option));
  }
  return `${lines.join('\n')}\n`;
}

function tableRow(name: string, option: Option<unknown>): string {
  const names = [name, ...(option.aliases ?? [])].map((each) => `\`${flagNamed(each)}\``);
  const initial = option.default === '' ? '' : `\`${option.default}\``;
  return `| ${names.join(', ')} | ${initial} | ${option.help.replaceAll(/[|*]/g, String.raw`\$&`)} |`;
}
