/** Copies the tree, and runs tests in the copies with a planted fault. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { Change } from './operators.ts';
import type { Fault } from './faults.ts';
import { titleOf } from './faults.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Not needed by tests. */
const NOT_COPIED = new Set(['node_modules', '.git', 'dist']);
/** Longest duration of a run, as a multiple of the duration without a fault. */
const TIMEOUT_FACTOR = 4;
const MIN_TIMEOUT_MS = 20_000;
const MAX_TIMEOUT_MS = 600_000;

/** Result of the tests for a fault. */
export type Verdict =
  | { readonly kind: 'killed'; readonly by: string }
  | { readonly kind: 'survived' }
  | { readonly kind: 'broken'; readonly output: string };

/** An error of the check itself. */
export class CannotCheck extends Error {}

export async function copyTree(tree: string): Promise<void> {
  const filter = (source: string) => !NOT_COPIED.has(basename(source));
  await cp(ROOT, tree, { recursive: true, filter });
  await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
}

function changed(source: string, { start, end, put }: Change): string {
  return source.slice(0, start) + put + source.slice(end);
}

/**
 * Writes each file with each fault beside the file, compiles all of them at once, and returns the compiler
 * errors of each fault. Errors that also occur in a copy without a fault are ignored.
 */
export async function compilerErrors(
  tree: string,
  faults: readonly Fault[],
  signal: AbortSignal,
): Promise<ReadonlyMap<Fault, string>> {
  const written = new Set<string>();
  const write = async (file: string, name: string, text: string) => {
    const path = join(tree, 'src', file.replace(/\.ts$/, `.mutant-${name}.ts`));
    await writeFile(path, text);
    written.add(path);
  };
  for (const [number, fault] of faults.entries()) {
    const source = await readFile(join(tree, 'src', fault.file), 'utf8');
    await write(fault.file, 'none', source);
    await write(fault.file, String(number), changed(source, fault.change));
  }
  const output = await compile(tree, signal);
  await Promise.all([...written].map((path) => rm(path)));
  const messages = output.matchAll(/^(.*)\.mutant-(\w+)\.ts\S*: error (.*)$/gm);
  const found = Array.from(messages, ([, path, name, text]) => ({
    name,
    text: `${path}: ${text}`,
  }));
  const innocent = new Set(found.filter(({ name }) => name === 'none').map(({ text }) => text));
  const rejected = new Map(
    found.flatMap(({ name, text }): [Fault, string][] => {
      const fault = faults[Number(name)];
      return fault && !innocent.has(text) ? [[fault, text]] : [];
    }),
  );
  // While there are syntax errors, the compiler reports no others.
  if (![...rejected.values()].some((text) => / TS1\d{3}: /.test(text))) return rejected;
  const rest = faults.filter((fault) => !rejected.has(fault));
  return new Map([...rejected, ...(await compilerErrors(tree, rest, signal))]);
}

async function compile(tree: string, signal: AbortSignal): Promise<string> {
  const compiler = join(ROOT, 'node_modules/.bin/tsc');
  const lenient = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false'];
  try {
    const options = { cwd: tree, signal, maxBuffer: 2 ** 28 };
    return (await promisify(execFile)(compiler, ['--noEmit', ...lenient], options)).stdout;
  } catch (error) {
    signal.throwIfAborted();
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
    if (output === '') throw error;
    return output;
  }
}

/** Runs groups of test files with and without a fault, and caches the durations. */
export class Trial {
  readonly #signal: AbortSignal;
  /** Timeout by the files of a group. */
  readonly #timeouts = new Map<string, Promise<number>>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Plants a fault in a tree, runs groups of tests until one fails, and removes the fault. */
  async verdictOn(fault: Fault, tree: string, groups: readonly string[][]): Promise<Verdict> {
    const path = join(tree, 'src', fault.file);
    const source = await readFile(path, 'utf8');
    for (const files of groups) {
      const timeoutMs = await this.#timeoutOf(files, tree);
      await writeFile(path, changed(source, fault.change));
      let verdict: Verdict;
      try {
        verdict = await this.#run(tree, files, timeoutMs);
      } finally {
        await writeFile(path, source);
      }
      if (verdict.kind === 'broken') {
        throw new CannotCheck(`The tests of ${titleOf(fault)} did not run:\n${verdict.output}`);
      }
      if (verdict.kind === 'killed') return verdict;
    }
    return { kind: 'survived' };
  }

  #timeoutOf(files: readonly string[], tree: string): Promise<number> {
    const key = files.toSorted().join();
    let timeout = this.#timeouts.get(key);
    if (!timeout) {
      timeout = this.#measure(files, tree);
      this.#timeouts.set(key, timeout);
    }
    return timeout;
  }

  async #measure(files: readonly string[], tree: string): Promise<number> {
    let why = '';
    // Tests in real time may fail on a busy machine.
    for (let tries = 0; tries < 3; tries++) {
      const startedMs = performance.now();
      const verdict = await this.#run(tree, files, MAX_TIMEOUT_MS);
      if (verdict.kind === 'survived') {
        return Math.max(MIN_TIMEOUT_MS, TIMEOUT_FACTOR * (performance.now() - startedMs));
      }
      why = verdict.kind === 'killed' ? verdict.by : verdict.output;
    }
    throw new CannotCheck(`Tests fail without a fault: ${files.join(' ')}: ${why}`);
  }

  /** Runs test files in one process, until the first test fails. */
  async #run(tree: string, files: readonly string[], timeoutMs: number): Promise<Verdict> {
    const flags = ['--test', '--test-isolation=none', '--test-reporter=tap'];
    const preload = ['--import', './test/support/preload.ts'];
    const child = spawn(process.execPath, [...preload, ...flags, ...files], {
      cwd: tree,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let verdict: Verdict | undefined;
    const end = (by: Verdict) => {
      verdict ??= by;
      child.kill('SIGKILL');
    };
    const onStop = () => child.kill('SIGKILL');
    this.#signal.addEventListener('abort', onStop, { once: true });
    const timer = setTimeout(
      () => end({ kind: 'killed', by: 'a run that did not end' }),
      timeoutMs,
    );
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
        const failed = /^ *not ok \d+ - (.*)$/m.exec(output)?.[1];
        if (failed !== undefined) end({ kind: 'killed', by: failed });
      });
    }
    const [code] = (await once(child, 'close')) as [number | null];
    clearTimeout(timer);
    this.#signal.removeEventListener('abort', onStop);
    this.#signal.throwIfAborted();
    if (verdict) return verdict;
    if (code !== 0) return { kind: 'killed', by: `the process ended with ${code}` };
    return /^# tests [1-9]/m.test(output) ? { kind: 'survived' } : { kind: 'broken', output };
  }
}
