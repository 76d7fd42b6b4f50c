/**
 * Preloaded into a test process that records which lines of `src/` each test file executes. Writes a JSON object of
 * `Recording` to the file in the environment variable `RECORDED_LINES`.
 *
 * V8 counts executions until they are taken, so they are taken whenever the tests of another file start.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import type { Profiler } from 'node:inspector';
import { beforeEach } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Recording } from './executed.ts';
import { LOADING, pathInSource, pathInTree, rangesOf } from './executed.ts';

const session = new Session();
session.connect();

function post(method: string, params?: object): unknown {
  let result: unknown;
  session.post(method, params, (error, value) => {
    if (error) throw error;
    result = value;
  });
  return result;
}

/** Lines by source file. */
type Lines = Map<string, Set<number>>;

const loaded: Lines = new Map();
const executed = new Map<string, Lines>();
const startsOfLines = new Map<string, readonly number[]>();

function startsOf(url: string): readonly number[] {
  let starts = startsOfLines.get(url);
  if (!starts) {
    const text = readFileSync(fileURLToPath(url), 'utf8');
    starts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
    startsOfLines.set(url, starts);
  }
  return starts;
}

/** Returns the numbers of the lines that a script executed, by its ranges, of which an inner one overrides an outer one. */
function linesOf({ url, functions }: Profiler.ScriptCoverage): Set<number> {
  const ranges = functions
    .flatMap((some) => some.ranges)
    .sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  const starts = startsOf(url);
  const counts = new Uint8Array(starts.length + 1);
  const lineAt = (offset: number, from: number) => {
    let line = from;
    while (line < starts.length && (starts[line] ?? 0) <= offset) line++;
    return line;
  };
  let from = 1;
  for (const { startOffset, endOffset, count } of ranges) {
    from = lineAt(startOffset, from);
    counts.fill(count > 0 ? 1 : 0, from, lineAt(endOffset, from) + 1);
    // The line on which a skipped block starts or ends is executed.
    if (count === 0) counts[from] = 1;
  }
  return new Set(Array.from(counts.keys()).filter((line) => counts[line] === 1));
}

function takeInto(all: readonly Lines[]): void {
  const { result } = post('Profiler.takePreciseCoverage') as Profiler.TakePreciseCoverageReturnType;
  for (const script of result) {
    const file = pathInSource(script.url);
    if (file === undefined) continue;
    const lines = linesOf(script);
    for (const into of all) into.set(file, (into.get(file) ?? new Set()).union(lines));
  }
}

/** Also removes optimized code, which does not count. */
function startCounting(): void {
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
}

post('Profiler.enable');
startCounting();

let current: Lines = loaded;
let currentFile: string | undefined;
beforeEach((context) => {
  const file = 'filePath' in context ? (context as TestContext).filePath : undefined;
  if (file === undefined || file === currentFile) return;
  const next: Lines = executed.get(file) ?? new Map();
  // Hooks of the next file may have run.
  const hasHooks = /\bbefore\(/.test(readFileSync(file, 'utf8'));
  takeInto(currentFile !== undefined && hasHooks ? [current, next] : [current]);
  startCounting();
  executed.set(file, next);
  current = next;
  currentFile = file;
});

process.once('exit', () => {
  takeInto([current]);
  // A test can start another process of this kind.
  if (executed.size === 0) return;
  const all: [string, Lines][] = [[LOADING, loaded]];
  for (const [test, lines] of executed) all.push([pathInTree(test), lines]);
  const recording: Recording = Object.fromEntries(
    all.map(([test, lines]) => [
      test,
      Object.fromEntries(Array.from(lines, ([file, some]) => [file, rangesOf(some)])),
    ]),
  );
  writeFileSync(process.env['RECORDED_LINES'] ?? '', JSON.stringify(recording));
});
