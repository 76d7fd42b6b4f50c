/** A sample of a scrape. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Parses the samples of a response in the text format of Prometheus, as prom-client writes it. */
export function parseExposition(text: string): Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      if (name === undefined) throw new SyntaxError(`Not a sample: ${line}`);
      const pairs = [...labels.matchAll(LABEL)].map(
        ([, label = '', quoted = '']): [string, string] => [
          label,
          quoted.replaceAll(/\\(.)/g, (_, it: string) => (it === 'n' ? '\n' : it)),
        ],
      );
      return { name, labels: Object.fromEntries(pairs), value: numberOf(value) };
    });
}

function numberOf(text: string): number {
  return /^[+-]?Inf$/.test(text) ? Number(`${text}inity`) : Number(text);
}
