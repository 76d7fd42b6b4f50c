import { CONFIG_API_VERSION, CONFIG_KIND, fieldsOf } from './config-file.ts';
import { flagNamed, sortedOptions } from './flag-parser.ts';
import type { Option, Options } from './option.ts';

/** Lines of the sample are no longer than this. */
const WIDTH = 100;

const HEADER = `# What crd-controller --config=FILE reads: every field there is, with its default. Each is a flag
# of the same name, --leader-elect of leaderElect; a flag comes before its environment variable, and
# that before this file. Written by: npm run generate
apiVersion: ${CONFIG_API_VERSION}
kind: ${CONFIG_KIND}
`;

/** A configuration file with every field that `options` have, all of them commented out. */
export function configSample(options: Options): string {
  const fields = new Map(
    [...fieldsOf(options)].map(([field, [flag]]): [string, string] => [flag, field]),
  );
  const sections: string[] = [HEADER];
  let group = '';
  for (const [flag, option] of sortedOptions(options)) {
    const field = fields.get(flag);
    if (field === undefined || option.hidden) continue;
    if (option.group !== group) sections.push(`# == ${option.group}\n`);
    group = option.group;
    const title = flag.length === 1 ? `${flagNamed(flag)}: ${option.help}` : option.help;
    sections.push(`${commented(title)}\n# ${field}: ${valueOf(option)}\n`);
  }
  return sections.join('\n');
}

/** The default as YAML has it. */
function valueOf({ type, default: initial }: Option<unknown>): string {
  switch (type) {
    case 'boolean':
    case 'integer':
      return initial;
    case 'text':
      return quoted(initial);
    case 'list':
      return `[${initial.split(',').filter(Boolean).map(quoted).join(', ')}]`;
    case 'switches':
      return '{}';
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function commented(text: string): string {
  const lines: string[] = [];
  let line = '#';
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = '#';
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
}
