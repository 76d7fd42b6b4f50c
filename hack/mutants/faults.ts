/**
 * The faults to plant: those that the operators generate, and those on the lists in `planted/`.
 *
 * A line of a list without indentation is a file below `src/`. Each indented line below it is a fault:
 *
 *   OPERATOR SYMBOL HASH[~N] [=> REPLACEMENT] [-- WHY IT HAS NO EFFECT]
 *
 * The hash is the fingerprint of the place (see `syntax.ts`). N counts places with one fingerprint in a symbol.
 * The operator `replace` replaces a node by the given text; `$0` and `$p0` are the variables and private
 * members around it, in order of occurrence.
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
  /** The replacement of a `replace`. */
  readonly put?: string | undefined;
  /** Why the fault has no effect that a test could detect. */
  readonly harmless?: string | undefined;
}

/** A fault with its position in the current source. */
export interface Fault extends Entry {
  readonly change: Change;
  readonly line: number;
  /** The replaced text. */
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

/** Returns the files of folders below `src/`, without generated ones. */
export function filesOf(folders: readonly string[]): string[] {
  return folders
    .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: SRC }))
    .filter((file) => !file.includes('/generated/'))
    .sort();
}

const offered = new Map<string, readonly Fault[]>();

/** Returns all faults that the operators generate in a file. */
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

/** Returns every node of a file as a place for a replacement. */
export function replaceable(file: string): { readonly entry: Entry; readonly place: Place }[] {
  const source = sourceOf(file);
  const numbered = numbering();
  return source.places.map((place) => {
    const symbol = symbolOf(place);
    const hash = numbered(`replace ${symbol} ${source.fingerprint(place).hash}`);
    return { entry: { file, operator: 'replace', symbol, hash }, place };
  });
}

/**
 * Returns a function that appends `~2` to the second equal name, and so on, and returns the part after the last
 * space.
 */
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
 * Returns the position of an entry. If its symbol or file was renamed, returns the only place with its operator
 * and fingerprint in the file, or else in the folder. A replacement that changes nothing has no position.
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
    const [fault] = found;
    if (found.length === 1 && fault && fault.old !== fault.change.put) {
      return { ...fault, ...kept(entry) };
    }
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
        throw new Error(`${listOf(folder)} has an invalid line: ${line}`);
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

/** Returns the folders that have a list. */
export function listedFolders(): string[] {
  return globSync('*.txt', { cwd: LISTS })
    .map((name) => name.replace(/\.txt$/, ''))
    .sort();
}
