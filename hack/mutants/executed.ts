/**
 * Which lines of `src/` each test file executes. A recording by `record-lines.ts` is kept in `node_modules/.cache`. It
 * says nothing about files that have changed since.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, 'node_modules/.cache/executed-lines.json');
/** Recorded with one process for each, to load the source once. */
const FOLDERS = ['unit', 'conformance', 'simulation', 'stories'];

/** Ranges of lines, by test file and source file: `3-17 20`. */
export type Recording = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Stands for a test file: the lines that are executed when files are loaded. */
export const LOADING = '(loading)';

interface Kept {
  readonly recording: Recording;
  /** Hashes of the test files and of the files below `src/`. */
  readonly hashes: Readonly<Record<string, string>>;
}

export class ExecutedLines {
  readonly #kept: Kept;

  private constructor(kept: Kept) {
    this.#kept = kept;
  }

  /** Reads the recording. Without one, all tests are tests of each line. */
  static async load(): Promise<ExecutedLines> {
    const text = await readFile(CACHE, 'utf8').catch(() => '{"recording":{},"hashes":{}}');
    return new ExecutedLines(JSON.parse(text) as Kept);
  }

  /** Runs all tests, which takes some minutes, and keeps what they execute. */
  static async record(signal: AbortSignal): Promise<ExecutedLines> {
    return new ExecutedLines(await record(signal));
  }

  /**
   * Returns the tests that execute a line. If a line runs when its file is loaded, returns those that execute any line
   * of the file.
   */
  testsOf(file: string, line: number, tests: readonly string[]): string[] {
    const source = `src/${file}`;
    const { hashes, recording } = this.#kept;
    if (hashes[source] !== hashOf(source)) return [...tests];
    const known = (test: string) => hashes[test] === hashOf(test);
    const ranges = (test: string) => recording[test]?.[file];
    const isLoading = includes(recording[LOADING]?.[file] ?? '', line);
    return tests.filter((test) => {
      if (!known(test)) return true;
      const some = ranges(test);
      return some !== undefined && (isLoading || includes(some, line));
    });
  }
}

function includes(ranges: string, line: number): boolean {
  return ranges.split(' ').some((range) => {
    const [from, to = from] = range.split('-').map(Number);
    return from !== undefined && to !== undefined && from <= line && line <= to;
  });
}

const known = new Map<string, string>();

function hashOf(path: string): string {
  let hash = known.get(path);
  if (hash === undefined) {
    hash = createHash('sha256')
      .update(readFileSync(join(ROOT, path)))
      .digest('hex')
      .slice(0, 16);
    known.set(path, hash);
  }
  return hash;
}

async function record(signal: AbortSignal): Promise<Kept> {
  const all: Recording[] = [];
  const output = `${CACHE}.part`;
  await mkdir(dirname(CACHE), { recursive: true });
  for (const folder of FOLDERS) {
    console.log(`Recording which lines test/${folder} executes`);
    const files = globSync(`test/${folder}/**/*.test.ts`, { cwd: ROOT }).toSorted();
    const imports = ['./test/support/preload.ts', './hack/mutants/record-lines.ts'];
    const child = spawn(
      process.execPath,
      [
        ...imports.flatMap((file) => ['--import', file]),
        '--test',
        '--test-isolation=none',
        '--test-reporter=dot',
        ...files,
      ],
      { cwd: ROOT, stdio: 'ignore', signal, env: { ...process.env, RECORDED_LINES: output } },
    );
    await once(child, 'close');
    all.push(JSON.parse(await readFile(output, 'utf8')) as Recording);
    await rm(output);
  }
  const loading = all.map((one) => one[LOADING]);
  const recording: Recording = Object.assign({}, ...all, {
    [LOADING]: Object.assign({}, ...loading),
  });
  const files = [
    ...Object.keys(recording).filter((file) => file !== LOADING),
    ...globSync('src/**/*.ts', { cwd: ROOT }).filter((file) => !file.includes('/generated/')),
  ];
  const hashes = Object.fromEntries(files.map((file) => [file, hashOf(file)]));
  const kept: Kept = { recording, hashes };
  await writeFile(CACHE, JSON.stringify(kept));
  return kept;
}

export function pathInTree(path: string): string {
  return relative(ROOT, path);
}

export function pathInSource(url: string): string | undefined {
  if (!url.startsWith('file:')) return undefined;
  const path = relative(join(ROOT, 'src'), fileURLToPath(url));
  return path.startsWith('..') || path.includes('generated/') ? undefined : path;
}

export function rangesOf(lines: ReadonlySet<number>): string {
  const ranges: [number, number][] = [];
  for (const line of [...lines].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && last[1] === line - 1) last[1] = line;
    else ranges.push([line, line]);
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(' ');
}
