/**
 * Writes `docs/demo.svg`, a recording of the first 15 seconds of the demo: `node hack/docs/record-demo.ts`.
 *
 * The SVG has text and one animation, because GitHub runs no scripts in a picture. Run it on an idle machine: the times of the
 * recording are those of the run.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = join(import.meta.dirname, '../..');
const FILE = join(ROOT, 'docs/demo.svg');

const RECORDED_MS = 15_000;
/** Time for which the last lines stay before the recording starts again. */
const PAUSE_MS = 5_000;

const COLUMNS = 104;
const ROWS = 24;
const LINE_HEIGHT = 18;
const WIDTH = 860;
const MARGIN = 14;

interface Line {
  readonly atMs: number;
  readonly text: string;
}

const lines = await record();
writeFileSync(FILE, picture(lines));
console.log(`${FILE}: ${lines.length} lines`);

/** Runs the demo for the recorded time. */
async function record(): Promise<Line[]> {
  const start = performance.now();
  const demo = spawn(process.execPath, ['src/cli/main.ts', 'demo'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const recorded: Line[] = [];
  createInterface(demo.stdout).on('line', (text) => {
    const atMs = performance.now() - start;
    if (atMs <= RECORDED_MS) recorded.push({ atMs, text });
  });
  const stop = setTimeout(() => demo.kill(), RECORDED_MS);
  await once(demo, 'close');
  clearTimeout(stop);
  if (recorded.length < ROWS) throw new Error(`The demo printed ${recorded.length} lines only`);
  return recorded;
}

/** Returns the picture of a terminal in which all lines move up by one when a line is printed. */
function picture(recorded: readonly Line[]): string {
  const totalMs = RECORDED_MS + PAUSE_MS;
  const printed = [{ atMs: 0, text: '$ npm run demo' }, ...recorded];
  const steps = printed.map(({ atMs }, index) => {
    const at = ((100 * atMs) / totalMs).toFixed(2);
    return `${at}%{transform:translateY(${(ROWS - index - 1) * LINE_HEIGHT}px)}`;
  });
  const end = (ROWS - printed.length) * LINE_HEIGHT;
  const height = ROWS * LINE_HEIGHT;
  const label = 'Recording of the first 15 seconds of the demo';
  const text = printed.map(({ text: line }, index) => {
    const y = (index + 1) * LINE_HEIGHT - 5;
    return `<text y="${y}"${classOf(line)}>${toXml(line)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height + 2 * MARGIN}" role="img" aria-label="${label}">
<title>${label}</title>
<style>
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d0d7de; white-space: pre }
  .title { fill: #ffffff; font-weight: 600 }
  .command { fill: #79c0ff }
  .check { fill: #56d364 }
  .lines { transform: translateY(${end}px); animation: print ${totalMs}ms step-end infinite }
  @keyframes print { ${steps.join(' ')} 100%{transform:translateY(${end}px)} }
  @media (prefers-reduced-motion: reduce) { .lines { animation: none } }
</style>
<rect width="100%" height="100%" rx="8" fill="#161b22"/>
<svg x="${MARGIN}" y="${MARGIN}" width="${WIDTH - 2 * MARGIN}" height="${height}">
<g class="lines">
${text.join('\n')}
</g>
</svg>
</svg>
`;
}

function classOf(line: string): string {
  if (line.startsWith('==')) return ' class="title"';
  if (line.startsWith('$')) return ' class="command"';
  return line.startsWith('✓') ? ' class="check"' : '';
}

/** Shortens a line to the width of the terminal, and escapes it. */
function toXml(line: string): string {
  const shown = line.length > COLUMNS ? `${line.slice(0, COLUMNS - 1)}…` : line;
  return shown
    .replace(/[&<>]/g, (character) => `&#${character.codePointAt(0)};`)
    .replaceAll(/\p{Cc}/gu, '');
}
