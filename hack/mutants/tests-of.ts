/** Finds the tests that can detect a fault in a file: those that import it, the nearest and fastest first. */
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/** Imports of each file, relative to the root of the tree. */
const imports = new Map(
  globSync('{src,test}/**/*.ts', { cwd: ROOT }).map((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const targets = Array.from(text.matchAll(IMPORT), ([, target = '']) =>
      normalize(join(dirname(file), target)),
    );
    return [file, targets];
  }),
);

/** Returns the distance of each file that a file imports, directly or indirectly. */
function distancesFrom(file: string): ReadonlyMap<string, number> {
  const distances = new Map([[file, 0]]);
  for (const [current, distance] of distances) {
    for (const target of imports.get(current) ?? []) {
      if (!distances.has(target)) distances.set(target, distance + 1);
    }
  }
  return distances;
}

const TESTS = globSync('test/{unit,simulation,stories,conformance}/**/*.test.ts', {
  cwd: ROOT,
}).map((file) => ({
  file,
  distances: distancesFrom(file),
}));

/** Compares documented defaults with those of the source. */
const DOCUMENTATION = 'test/docs.test.ts';

export type Kind =
  'direct' | 'unit' | 'others' | 'documentation' | 'conformance' | 'simulation' | 'stories';

/**
 * Returns groups of test files that reach a file below `src/`: unit tests that import it directly, or the nearest
 * ones if there are none, other unit tests of its folder, those of other folders, the test of the documentation,
 * conformance tests, simulations, stories. Within a group, the nearest come first.
 */
export function testsOf(file: string, kinds: readonly Kind[]): string[][] {
  const source = `src/${file}`;
  const folder = `test/unit/${file.split('/')[0]}/`;
  const reaching = TESTS.flatMap((test) => {
    const distance = test.distances.get(source);
    return distance === undefined ? [] : [{ file: test.file, distance }];
  });
  const unit = reaching.filter((test) => isUnit(test.file)).map(({ distance }) => distance);
  const nearest = Math.max(1, Math.min(...unit));
  const folderRank = (test: string) =>
    basename(test).startsWith(basename(file, '.ts')) && test.includes(`/${dirname(file)}/`) ? 0 : 1;
  const group = (belongs: (test: string, distance: number) => boolean) =>
    reaching
      .filter((test) => belongs(test.file, test.distance))
      .sort((a, b) => folderRank(a.file) - folderRank(b.file) || a.distance - b.distance)
      .map((test) => test.file);
  const isIn: Record<
    Exclude<Kind, 'documentation'>,
    (test: string, distance: number) => boolean
  > = {
    direct: (test, distance) => isUnit(test) && distance <= nearest,
    unit: (test, distance) => test.startsWith(folder) && distance > nearest,
    others: (test, distance) => isUnit(test) && !test.startsWith(folder) && distance > nearest,
    conformance: (test) => test.startsWith('test/conformance/'),
    simulation: (test) => test.startsWith('test/simulation/'),
    stories: (test) => test.startsWith('test/stories/'),
  };
  return kinds
    .map((kind) => (kind === 'documentation' ? [DOCUMENTATION] : group(isIn[kind])))
    .filter((files) => files.length > 0);
}

/**
 * Returns the changed test files, and for each other changed file the tests that import it directly, or the nearest
 * ones if there are none. Paths are relative to the root of the tree.
 */
export function testsOfChanges(changed: readonly string[]): string[] {
  const nearest = changed.flatMap((file) => {
    const all = TESTS.map((test) => test.distances.get(file) ?? Infinity);
    const least = Math.min(...all);
    return TESTS.filter((_, at) => least < Infinity && all[at] === least);
  });
  const given = changed.filter((file) => file.endsWith('.test.ts') && imports.has(file));
  return [...new Set([...nearest.map(({ file }) => file), ...given])].toSorted();
}

function isUnit(test: string): boolean {
  return test.startsWith('test/unit/');
}
