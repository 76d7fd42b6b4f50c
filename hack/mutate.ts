/**
 * The mutation check: plants one small fault at a time, out of hack/mutants/, and runs the tests of
 * its folder. A fault that no test notices is a promise that no test holds.
 *
 *   node hack/mutate.ts [FOLDER…]    cache, workqueue, record, leaderelection; all unless told otherwise
 *
 * It works on copies of the tree in a temporary folder, two faults at a time, and takes some
 * minutes: a check for the desk, not for CI. It ends with 1 if a fault survived, and with 2 if it
 * could not do its work: a piece of code to change is not there exactly once, a changed file does not
 * compile, or the tests fail as it is.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, glob, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { Mutant } from './mutants/mutant.ts';
import { placesOf } from './mutants/mutant.ts';
import { MUTANTS } from './mutants/mutants.ts';

const ROOT = join(import.meta.dirname, '..');
/** What the tests of a folder need of the tree. */
const COPIED = ['src', 'test', 'crds', 'package.json', 'tsconfig.json'];
/** Mutants at once, each with a copy of the tree and one process. */
const LANES = 2;
/** A run may take so many times what it takes without a fault, and the least it may take. */
const PATIENCE = 10;
const LEAST_TIMEOUT_MS = 20_000;

interface Fault {
  readonly mutant: Mutant;
  readonly folder: string;
  /** The file from the root of the tree. */
  readonly path: string;
}

/** How the tests took a fault. */
type Verdict =
  | { readonly kind: 'killed'; readonly by: string }
  | { readonly kind: 'survived' }
  | { readonly kind: 'broken'; readonly output: string };

/** Something is wrong with the check itself. */
class CannotCheck extends Error {}

const folders = process.argv.slice(2).map((argument) => basename(argument));
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stop.abort(new CannotCheck(`stopped by ${signal}`)));
}
const scratch = await mkdtemp(join(tmpdir(), 'mutate-'));
try {
  process.exitCode = (await check(faultsOf(folders))) ? 0 : 1;
} catch (error) {
  console.error('mutate:', error instanceof CannotCheck ? error.message : error);
  process.exitCode = 2;
} finally {
  await rm(scratch, { recursive: true, force: true });
}

function faultsOf(names: readonly string[]): Fault[] {
  const wanted = names.length > 0 ? names : Object.keys(MUTANTS);
  return wanted.flatMap((folder) => {
    const mutants = MUTANTS[folder];
    if (!mutants) {
      throw new CannotCheck(`no mutants for ${folder}; there are ${Object.keys(MUTANTS).join()}`);
    }
    return mutants.map((mutant) => ({ mutant, folder, path: `src/${folder}/${mutant.file}` }));
  });
}

/** @returns true if nothing survived but what is known to change nothing */
async function check(faults: readonly Fault[]): Promise<boolean> {
  const lanes = await Promise.all(Array.from({ length: LANES }, (_, lane) => copyTree(lane)));
  const [first] = lanes;
  if (first === undefined) throw new CannotCheck('there is no lane');
  await requireCompiling(first, faults);
  const timeouts = await timeoutsOf(first, faults);
  const startedMs = performance.now();
  const pending = [...faults];
  const survivors: Fault[] = [];
  let killed = 0;
  const work = async (tree: string) => {
    for (let fault = pending.shift(); fault; fault = pending.shift()) {
      const verdict = await verdictOn(fault, tree, timeouts.get(fault.folder) ?? 0);
      report(fault, verdict);
      if (verdict.kind === 'killed') killed++;
      else if (fault.mutant.equivalent === undefined) survivors.push(fault);
    }
  };
  const giveUp = (error: unknown) => stop.abort(error);
  // All of them end before their trees are removed.
  await Promise.all(lanes.map((tree) => work(tree).catch(giveUp)));
  stop.signal.throwIfAborted();
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const harmless = faults.length - killed - survivors.length;
  console.log(
    `\n${killed} of ${faults.length} faults killed, ${harmless} without effect, ` +
      `${survivors.length} survived (${seconds} s)`,
  );
  return survivors.length === 0;
}

async function copyTree(lane: number): Promise<string> {
  const tree = join(scratch, String(lane));
  const keep = (source: string) => basename(source) !== 'node_modules';
  for (const entry of COPIED) {
    await cp(join(ROOT, entry), join(tree, entry), { recursive: true, filter: keep });
  }
  await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}

/**
 * Puts every mutant beside its file and compiles them all at once: what the compiler refuses reaches
 * nobody, and that a test fails on it says nothing about the test. A copy without a fault is compiled
 * too: what the compiler says of that is not the fault's doing.
 */
async function requireCompiling(tree: string, faults: readonly Fault[]): Promise<void> {
  const complaints: string[] = [];
  const written: string[] = [];
  const write = async (path: string, name: string, text: string) => {
    const beside = join(tree, path.replace(/\.ts$/, `.mutant-${name}.ts`));
    await writeFile(beside, text);
    written.push(beside);
  };
  for (const [number, fault] of faults.entries()) {
    const source = await readFile(join(tree, fault.path), 'utf8');
    await write(fault.path, 'none', source);
    try {
      await write(fault.path, String(number), mutated(fault, source));
    } catch (error) {
      complaints.push(error instanceof Error ? error.message : String(error));
    }
  }
  if (complaints.length > 0) throw new CannotCheck(complaints.join('\n'));
  const messages = (await compile(tree)).matchAll(/^(.*)\.mutant-(\w+)\.ts\S*: error (.*)$/gm);
  const found = Array.from(messages, ([, path, name, message]) => ({
    name,
    what: `${path}: ${message}`,
  }));
  const innocent = new Set(found.filter(({ name }) => name === 'none').map(({ what }) => what));
  for (const { name, what } of found) {
    if (!innocent.has(what)) complaints.push(`"${faults[Number(name)]?.mutant.fault}": ${what}`);
  }
  if (complaints.length > 0) throw new CannotCheck(complaints.join('\n'));
  await Promise.all([...new Set(written)].map((path) => rm(path)));
}

/** What the compiler has to say. */
async function compile(tree: string): Promise<string> {
  const compiler = join(ROOT, 'node_modules/.bin/tsc');
  const lenient = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false'];
  try {
    const options = { cwd: tree, signal: stop.signal };
    return (await promisify(execFile)(compiler, ['--noEmit', ...lenient], options)).stdout;
  } catch (error) {
    stop.signal.throwIfAborted();
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
    if (output === '') throw error;
    return output;
  }
}

/** @throws {CannotCheck} if the piece is not there exactly once */
function mutated({ path, mutant }: Fault, source: string): string {
  const { fault, find, put } = mutant;
  const places = placesOf(mutant, source);
  if (places !== 1) {
    throw new CannotCheck(
      `${path} has ${places} times what "${fault}" changes: ${JSON.stringify(find)}`,
    );
  }
  return source.split(find).join(put);
}

/** How long the tests of each folder may take; they pass as they are. */
async function timeoutsOf(
  tree: string,
  faults: readonly Fault[],
): Promise<ReadonlyMap<string, number>> {
  const timeouts = new Map<string, number>();
  for (const folder of new Set(faults.map(({ folder }) => folder))) {
    const startedMs = performance.now();
    const verdict = await runTests(tree, folder, 600_000);
    if (verdict.kind !== 'survived') {
      const why = verdict.kind === 'killed' ? verdict.by : verdict.output;
      throw new CannotCheck(`the tests of ${folder} fail as they are: ${why}`);
    }
    const tookMs = performance.now() - startedMs;
    timeouts.set(folder, Math.max(LEAST_TIMEOUT_MS, PATIENCE * tookMs));
  }
  return timeouts;
}

async function verdictOn(fault: Fault, tree: string, timeoutMs: number): Promise<Verdict> {
  const path = join(tree, fault.path);
  const source = await readFile(path, 'utf8');
  await writeFile(path, mutated(fault, source));
  try {
    const verdict = await runTests(tree, fault.folder, timeoutMs);
    if (verdict.kind === 'broken') {
      throw new CannotCheck(`the tests of "${fault.mutant.fault}" did not run:\n${verdict.output}`);
    }
    return verdict;
  } finally {
    await writeFile(path, source);
  }
}

/** Runs the tests in one process, until the first one fails. */
async function runTests(tree: string, folder: string, timeoutMs: number): Promise<Verdict> {
  const files: string[] = [];
  for await (const file of glob(`test/unit/${folder}/**/*.test.ts`, { cwd: tree }))
    files.push(file);
  const flags = ['--test', '--test-isolation=none', '--test-reporter=tap'];
  const child = spawn(process.execPath, [...flags, ...files.toSorted()], {
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
  stop.signal.addEventListener('abort', onStop, { once: true });
  const timer = setTimeout(() => end({ kind: 'killed', by: 'a run without an end' }), timeoutMs);
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
      const failed = /^ *not ok \d+ - (.*)$/m.exec(output)?.[1];
      if (failed !== undefined) end({ kind: 'killed', by: failed });
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  stop.signal.removeEventListener('abort', onStop);
  stop.signal.throwIfAborted();
  if (verdict) return verdict;
  if (!/^# tests [1-9]/m.test(output)) return { kind: 'broken', output };
  return code === 0
    ? { kind: 'survived' }
    : { kind: 'killed', by: `the process ended with ${code}` };
}

function report({ path, mutant: { fault, equivalent } }: Fault, verdict: Verdict): void {
  const what = `${path}: ${fault}`;
  if (verdict.kind === 'killed') console.log(`killed    ${what}\n          by ${verdict.by}`);
  else if (equivalent === undefined) console.log(`SURVIVED  ${what}`);
  else console.log(`no effect ${what}\n          ${equivalent}`);
}
