/**
 * The faults to plant: all that the operators offer, and those on the lists in `planted/`.
 *
 * A list is read line by line. A line without indentation is a file below `src/`. A line below it is
 * one fault:
 *
 *   OPERATOR SYMBOL HASH[~N] [=> REPLACEMENT] [-- WHY IT HAS NO EFFECT]
 *
 * The hash is the fingerprint of the place (see `syntax.ts`), N counts places in one symbol with one
 * fingerprint. The operator `replace` puts a text of its own in place of a node; `$0` and `$p0` are
 * the variables and private members around it, in the order in which they come.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Change } from './operators.ts';
import { changesAt } from './operators.ts';
import type { Place } from './syntax.ts';
import { SourceFile, spanOf, symbolOf } from './syntax.ts';

const SRC = join(import.meta.dirname, '../../src');
const LISTS = join(import.meta.dirname, 'planted');

/** A line of a list. */
export interface Entry {
  /** The file, below `src/`. */
  readonly file: string;
  readonly operator: string;
  readonly symbol: string;
  readonly hash: string;
  /** What a `replace` puts in place of the node. */
  readonly put?: string | undefined;
  /** Why no test can notice the fault, if none can. */
  readonly harmless?: string | undefined;
}

/** A fault with its place in the source as it is. */
export interface Fault extends Entry {
  readonly change: Change;
  readonly line: number;
  /** The text that the change replaces. */
  readonly old: string;
}

export function folderOf({ file }: Entry): string {
  return file.split('/')[0] ?? '';
}

export function titleOf({ file, operator, symbol, hash, put }: Entry): string {
  return `${file} ${operator} ${symbol} ${hash}${put === undefined ? '' : ` => ${put}`}`;
}

const sources = new Map<string, SourceFile>();

export function sourceOf(file: string): SourceFile {
  let source = sources.get(file);
  if (!source) {
    source = new SourceFile(readFileSync(join(SRC, file), 'utf8'), file);
    sources.set(file, source);
  }
  return source;
}

/** The files of some folders below `src/`, without generated ones. */
export function filesOf(folders: readonly string[]): string[] {
  return folders
    .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: SRC }))
    .filter((file) => !file.includes('/generated/'))
    .sort();
}

const offered = new Map<string, readonly Fault[]>();

/** All that the operators offer in a file. */
export function faultsIn(file: string): readonly Fault[] {
  const known = offered.get(file) ?? enumerate(file);
  offered.set(file, known);
  return known;
}

function enumerate(file: string): Fault[] {
  const source = sourceOf(file);
  const numbered = numbering();
  return source.places.flatMap((place) =>
    changesAt(place, source).map((change): Fault => {
      const symbol = symbolOf(place);
      const hash = numbered(`${change.operator} ${symbol} ${source.fingerprint(place).hash}`);
      return faultAt({ file, operator: change.operator, symbol, hash }, change, source);
    }),
  );
}

/** Every node of a file as a place for a replacement. */
export function replaceable(file: string): { readonly entry: Entry; readonly place: Place }[] {
  const source = sourceOf(file);
  const numbered = numbering();
  return source.places.map((place) => {
    const symbol = symbolOf(place);
    const hash = numbered(`replace ${symbol} ${source.fingerprint(place).hash}`);
    return { entry: { file, operator: 'replace', symbol, hash }, place };
  });
}

/** Appends `~2` to the second of equal names, and so on, and returns what comes after the last space. */
function numbering(): (name: string) => string {
  const counts = new Map<string, number>();
  return (name) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return name.slice(name.lastIndexOf(' ') + 1) + (count > 1 ? `~${count}` : '');
  };
}

function faultAt(entry: Entry, change: Change, source: SourceFile): Fault {
  const line = source.text.slice(0, change.start).split('\n').length;
  return { ...entry, change, line, old: source.text.slice(change.start, change.end) };
}

/**
 * The place of an entry: where it says; else, if the symbol or the file was renamed, the only place
 * in the file, and then in the folder, with its operator and fingerprint.
 */
export function locate(entry: Entry): Fault | undefined {
  const inFile = (file: string) => (filesOf([folderOf(entry)]).includes(file) ? [file] : []);
  for (const files of [inFile(entry.file), filesOf([folderOf(entry)])]) {
    const all = files.flatMap((file) =>
      entry.operator === 'replace' ? replacements(entry, file) : faultsIn(file),
    );
    const alike = all.filter(
      ({ operator, hash }) => operator === entry.operator && hash === entry.hash,
    );
    const exact = alike.filter(({ symbol }) => symbol === entry.symbol);
    const found = exact.length > 0 ? exact : alike;
    if (found.length === 1 && found[0]) return { ...found[0], ...kept(entry) };
  }
  return undefined;
}

function kept({ put, harmless }: Entry): Pick<Entry, 'put' | 'harmless'> {
  return { put, harmless };
}

function replacements(wanted: Entry, file: string): Fault[] {
  const source = sourceOf(file);
  return replaceable(file)
    .filter(({ entry }) => entry.hash === wanted.hash)
    .map(({ entry, place }) => {
      const { names } = source.fingerprint(place);
      const put = (wanted.put ?? '').replaceAll(/\$p?\d+/g, (name) => names.get(name) ?? name);
      const [start, end] = spanOf(place.node);
      return faultAt(entry, { operator: 'replace', start, end, put }, source);
    });
}

export function readList(folder: string): Entry[] {
  let file = '';
  return readFileSync(listOf(folder), 'utf8')
    .split('\n')
    .flatMap((line): Entry[] => {
      if (line.trim() === '') return [];
      if (!line.startsWith(' ')) {
        file = line.trim();
        return [];
      }
      const [, operator, symbol, hash, put, harmless] =
        /^\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+=> (.*?))?(?:\s+-- (.*))?$/.exec(line) ?? [];
      if (operator === undefined || symbol === undefined || hash === undefined) {
        throw new Error(`${listOf(folder)} has a line that is no fault: ${line}`);
      }
      return [{ file, operator, symbol, hash, put, harmless }];
    });
}

export function printList(entries: readonly Entry[]): string {
  const files = [...new Set(entries.map(({ file }) => file))].sort();
  return files
    .map((file) => {
      const lines = entries
        .filter((entry) => entry.file === file)
        .map(({ operator, symbol, hash, put, harmless }) =>
          [
            `  ${operator} ${symbol} ${hash}`,
            ...(put === undefined ? [] : [`=> ${put}`]),
            ...(harmless === undefined ? [] : [`-- ${harmless}`]),
          ].join(' '),
        );
      return `${file}\n${[...new Set(lines)].join('\n')}\n`;
    })
    .join('');
}

export function listOf(folder: string): string {
  return join(LISTS, `${folder}.txt`);
}

/** The folders that have a list. */
export function listedFolders(): string[] {
  return globSync('*.txt', { cwd: LISTS })
    .map((name) => name.replace(/\.txt$/, ''))
    .sort();
}
