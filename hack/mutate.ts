/**
 * Mutation tests: plants one fault at a time and runs the tests that import the changed file. A fault that no
 * test detects shows behaviour without a test.
 *
 *   node hack/mutate.ts [OPTION…] [FOLDER | FILE]…     below src/; default: all folders with a list
 *
 *   (no option)      plants the faults on the lists in hack/mutants/planted/
 *   --list           plants nothing; prints listed faults whose code no longer exists
 *   --sample N       plants N other faults for each argument, or for all of src, spread evenly over the lines, and
 *                    prints the share of detected faults by folder
 *   --seed S         selects another sample
 *   --save           adds the detected faults of a sample to the lists; with --list, updates the symbols
 *                    and files of faults whose code was renamed or moved
 *   --unit           runs unit tests only, without conformance tests, simulations and stories
 *   --record         first records which lines each test file executes, in some minutes. Later runs, with and without
 *                    this option, only run the tests that execute the changed line. After a change of a file, all tests
 *                    that import it are run again
 *   --help           prints this text
 *
 * Works on copies of the tree in a temporary folder, two faults at a time. Exits with 1 if a fault survived or
 * its code no longer exists, and with 2 if the check failed: a listed fault does not compile, or tests fail
 * without a fault.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Entry, Fault } from './mutants/faults.ts';
import {
  faultsIn,
  filesOf,
  folderOf,
  listedFolders,
  listOf,
  locate,
  printList,
  readList,
  titleOf,
} from './mutants/faults.ts';
import { ExecutedLines } from './mutants/executed.ts';
import { interval, oneOfEachLine, sampleOf } from './mutants/sample.ts';
import { testsOf } from './mutants/tests-of.ts';
import type { Kind } from './mutants/tests-of.ts';
import type { Verdict } from './mutants/trial.ts';
import { CannotCheck, compilerErrors, copyTree, Trial } from './mutants/trial.ts';

/** Concurrent faults, each with a copy of the tree and a process. */
const LANES = 2;
/** Compiled faults for each fault of a sample, because most do not compile. */
const OVERSAMPLE = 4;

const UNIT: readonly Kind[] = ['direct', 'unit', 'others', 'documentation'];

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean', default: false },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    save: { type: 'boolean', default: false },
    unit: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const wanted = positionals.map((argument) => argument.replace(/^(?:\.\/)?src\/|\/$/g, ''));
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stop.abort(new CannotCheck(`stopped by ${signal}`)));
}
const scratch = await mkdtemp(join(tmpdir(), 'mutate-'));
try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error('mutate:', error instanceof CannotCheck ? error.message : error);
  process.exitCode = 2;
} finally {
  await rm(scratch, { recursive: true, force: true });
}

/** Returns false if a fault survived or its code no longer exists. */
async function main(): Promise<boolean> {
  if (options.help) {
    const [, text = ''] =
      /\/\*\*\n(.*?)\n \*\//s.exec(readFileSync(import.meta.filename, 'utf8')) ?? [];
    console.log(text.replaceAll(/^ \* ?/gm, ''));
    return true;
  }
  if (options.sample !== undefined) return await plantSample(Number(options.sample));
  const { faults, lost } = locateListed();
  for (const entry of lost) console.log(`LOST      ${titleOf(entry)}`);
  if (!options.list) return (await plant(faults)).survivors.length + lost.length === 0;
  if (options.save) for (const folder of foldersOf(faults)) await save(folder, faults);
  console.log(`${faults.length} faults found, ${lost.length} lost`);
  return lost.length === 0;
}

function isWanted(file: string): boolean {
  return wanted.length === 0 || wanted.some((part) => file === part || file.startsWith(`${part}/`));
}

function locateListed(): { readonly faults: Fault[]; readonly lost: Entry[] } {
  const entries = listedFolders()
    .flatMap((folder) => readList(folder))
    .filter(({ file }) => isWanted(file));
  const faults = entries.map((entry) => locate(entry));
  return {
    faults: faults.filter((fault) => fault !== undefined),
    lost: entries.filter((_, at) => faults[at] === undefined),
  };
}

function foldersOf(entries: readonly Entry[]): string[] {
  return [...new Set(entries.map(folderOf))];
}

/** Writes the list of a folder with these entries and the existing ones of other files. */
async function save(folder: string, entries: readonly Entry[]): Promise<void> {
  const others = listedFolders().includes(folder) ? readList(folder) : [];
  const names = new Set(entries.map(titleOf));
  const all = options.list
    ? [...entries, ...others.filter(({ file }) => !isWanted(file))]
    : [...others.filter((entry) => !names.has(titleOf(entry))), ...entries];
  await writeFile(listOf(folder), printList(all.filter((entry) => folderOf(entry) === folder)));
}

async function plantSample(size: number): Promise<boolean> {
  const listed = new Set(locateListed().faults.map((fault) => titleOf(fault)));
  const tree = join(scratch, 'compiler');
  await copyTree(tree);
  const parts = wanted.length > 0 ? wanted : [''];
  const candidates = parts.map((part) =>
    sampleOf(
      filesOf([part.split('/')[0] || '*'])
        .filter((file) => part === '' || file === part || file.startsWith(`${part}/`))
        .flatMap((file) => oneOfEachLine(faultsIn(file), options.seed))
        .filter((fault) => !listed.has(titleOf(fault))),
      size * OVERSAMPLE,
      options.seed,
    ),
  );
  const rejected = await compilerErrors(tree, candidates.flat(), stop.signal);
  const faults = candidates.flatMap((some) =>
    sampleOf(
      some.filter((fault) => !rejected.has(fault)),
      size,
      options.seed,
    ),
  );
  const { survivors, killed } = await plant(faults);
  if (options.save) for (const folder of foldersOf(killed)) await save(folder, killed);
  for (const folder of foldersOf(faults).toSorted()) {
    const of = (some: readonly Fault[]) => some.filter((fault) => folderOf(fault) === folder);
    console.log(shareLine(folder, of(killed).length, of(faults).length));
  }
  console.log(shareLine('all', killed.length, faults.length));
  return survivors.length === 0;
}

function shareLine(name: string, killed: number, total: number): string {
  const percent = (share: number) => `${Math.round(100 * share)} %`;
  const [low, high] = interval(killed, total);
  const share = `${percent(killed / total)} (${percent(low)} to ${percent(high)})`;
  return `${name.padEnd(16)} ${killed} of ${total} killed: ${share}`;
}

interface Outcome {
  readonly killed: readonly Fault[];
  readonly survivors: readonly Fault[];
}

async function plant(faults: readonly Fault[]): Promise<Outcome> {
  const trees = Array.from({ length: LANES }, (_, lane) => join(scratch, String(lane)));
  await Promise.all(trees.map((tree) => copyTree(tree)));
  const rejected = await compilerErrors(trees[0] ?? '', faults, stop.signal);
  if (rejected.size > 0) {
    const lines = Array.from(rejected, ([fault, text]) => `${titleOf(fault)}: ${text}`);
    throw new CannotCheck(
      `The compiler rejects listed faults; correct or remove them:\n${lines.join('\n')}`,
    );
  }
  const executed = options.record
    ? await ExecutedLines.record(stop.signal)
    : await ExecutedLines.load();
  const trial = new Trial(stop.signal);
  const startedMs = performance.now();
  const pending = [...faults];
  const killed: Fault[] = [];
  const survivors: Fault[] = [];
  const work = async (tree: string) => {
    for (let fault = pending.shift(); fault; fault = pending.shift()) {
      const kinds = options.unit
        ? UNIT
        : ([...UNIT, 'conformance', 'simulation', 'stories'] as const);
      const groups = testsOf(fault.file, kinds)
        .map((files) => executed.testsOf(fault.file, fault.line, files))
        .filter((files) => files.length > 0);
      const verdict = await trial.verdictOn(fault, tree, groups);
      report(fault, verdict);
      if (verdict.kind === 'killed') killed.push(fault);
      else if (fault.harmless === undefined) survivors.push(fault);
    }
  };
  const giveUp = (error: unknown) => stop.abort(error);
  // All workers end before their copies are removed.
  await Promise.all(trees.map((tree) => work(tree).catch(giveUp)));
  stop.signal.throwIfAborted();
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const harmless = faults.length - killed.length - survivors.length;
  console.log(
    `\n${killed.length} of ${faults.length} faults killed, ${harmless} explained, ` +
      `${survivors.length} survived (${seconds} s)`,
  );
  return { killed, survivors };
}

function report(fault: Fault, verdict: Verdict): void {
  const { file, line, old, change, harmless } = fault;
  const what = `${titleOf(fault)}\n          ${file}:${line}: ${brief(old)} → ${brief(change.put)}`;
  if (verdict.kind === 'killed') console.log(`killed    ${what}\n          by ${verdict.by}`);
  else if (harmless === undefined) console.log(`SURVIVED  ${what}`);
  else console.log(`no effect ${what}\n          ${harmless}`);
}

function brief(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 120 ? `${line.slice(0, 117)}...` : line || '(nothing)';
}
