/** A group of bars with one scale. */
export interface Panel {
  readonly title: string;
  readonly bars: readonly {
    readonly label: string;
    readonly value: number;
    readonly text: string;
  }[];
}

const WIDTH = 720;
const LEFT = 130;
const RIGHT = 110;
const BAR = 16;
const STEP = 24;
const TITLE = 34;
const GAP = 18;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600 }
  .bar { fill: #8c959f }
  .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .bar { fill: #6e7681 }
    .ours { fill: #58a6ff }
  }
`;

/**
 * Returns an SVG document with horizontal bars, readable on light and dark backgrounds. Bars whose label starts with `ours`
 * are highlighted. The text depends on the arguments only.
 */
export function barChart(description: string, panels: readonly Panel[]): string {
  let y = GAP;
  const parts: string[] = [];
  for (const { title, bars } of panels) {
    parts.push(`<text class="title" x="${GAP}" y="${y + 14}">${escaped(title)}</text>`);
    y += TITLE;
    const largest = Math.max(...bars.map(({ value }) => value));
    for (const { label, value, text } of bars) {
      const length = Math.max(1, ((WIDTH - LEFT - RIGHT) * value) / largest).toFixed(1);
      const kind = label.startsWith('ours') ? 'ours' : 'bar';
      const base = y + 13;
      parts.push(
        `<text x="${LEFT - 8}" y="${base}" text-anchor="end">${escaped(label)}</text>`,
        `<rect class="${kind}" x="${LEFT}" y="${y}" width="${length}" height="${BAR}" rx="2"/>`,
        `<text x="${(LEFT + Number(length) + 8).toFixed(1)}" y="${base}">${escaped(text)}</text>`,
      );
      y += STEP;
    }
    y += GAP;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-label="${escaped(description)}">`,
    `<title>${escaped(description)}</title>`,
    `<style>${STYLE}</style>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
