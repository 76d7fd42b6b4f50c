/** Copies of the tree, and runs of tests in them with a fault planted. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { Change } from './operators.ts';
import type { Fault } from './faults.ts';
import { titleOf } from './faults.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What the tests do not need of the tree. */
const NOT_COPIED = new Set(['node_modules', '.git', 'dist']);
/** A run may take so many times what it takes without a fault, and the least it may take. */
const PATIENCE = 4;
const LEAST_TIMEOUT_MS = 20_000;
const LONGEST_TIMEOUT_MS = 600_000;

/** How the tests took a fault. */
export type Verdict =
  | { readonly kind: 'killed'; readonly by: string }
  | { readonly kind: 'survived' }
  | { readonly kind: 'broken'; readonly output: string };

/** Something is wrong with the check itself. */
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
 * Writes each file with each fault beside the file, compiles all of them at once, and returns what the
 * compiler says of each fault. A copy without a fault is compiled too: what the compiler says of that
 * is not due to the fault.
 */
export async function complaints(
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
  const refused = new Map(
    found.flatMap(({ name, text }): [Fault, string][] => {
      const fault = faults[Number(name)];
      return fault && !innocent.has(text) ? [[fault, text]] : [];
    }),
  );
  // While there are errors of syntax, the compiler reports no others.
  if (![...refused.values()].some((text) => / TS1\d{3}: /.test(text))) return refused;
  const rest = faults.filter((fault) => !refused.has(fault));
  return new Map([...refused, ...(await complaints(tree, rest, signal))]);
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

/** Runs groups of test files with a fault and without, and remembers how long they take. */
export class Trial {
  readonly #signal: AbortSignal;
  /** By the files of a group: how long it may take. */
  readonly #timeouts = new Map<string, Promise<number>>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Plants a fault in a tree, runs groups of tests until one notices it, and removes the fault. */
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
      const verdict = await this.#run(tree, files, LONGEST_TIMEOUT_MS);
      if (verdict.kind === 'survived') {
        return Math.max(LEAST_TIMEOUT_MS, PATIENCE * (performance.now() - startedMs));
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
