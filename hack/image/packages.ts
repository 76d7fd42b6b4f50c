import type { Metafile } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A package of which a bundle contains code. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Subresource integrity of the installed package. */
  readonly integrity: string;
  /** Installation folder, relative to the root: `node_modules/yargs`. */
  readonly folder: string;
  /** Folders of the packages that it imports, if they are in the bundle. */
  readonly imports: readonly string[];
}

/** An entry of package-lock.json. */
interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The last `node_modules/NAME` of a path, and everything before it. */
const FOLDER = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

/**
 * Returns the packages with code in the outputs of a build, without installed packages that are not used. A
 * difference from the lock file is an error.
 */
export function bundledPackages(root: string, { outputs }: Metafile): readonly BundledPackage[] {
  const lockfile: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    readFileSync(join(root, 'package-lock.json'), 'utf8'),
  );
  const locked = new Map(Object.entries(lockfile.packages));
  const folders = new Set(
    Object.values(outputs).flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => {
        const [folder] = FOLDER.exec(path) ?? [];
        return folder === undefined || bytesInOutput === 0 ? [] : [folder];
      }),
    ),
  );
  return [...folders].toSorted(byText).map((folder) => {
    const { version, license, integrity, ...rest } = locked.get(folder) ?? {};
    const { name, version: installed } = manifestOf(join(root, folder));
    if (version === undefined || license === undefined || integrity === undefined) {
      throw new Error(`package-lock.json has no complete entry for ${folder}`);
    }
    if (installed !== version) {
      throw new Error(`${folder} is ${installed}, package-lock.json has ${version}: run npm ci`);
    }
    const wanted = Object.keys({ ...rest.dependencies, ...rest.optionalDependencies });
    const imports = wanted
      .flatMap((dependency) => resolved(folder, dependency, locked) ?? [])
      .filter((found) => folders.has(found))
      .toSorted(byText);
    return { name, version, license, integrity, folder, imports };
  });
}

function manifestOf(folder: string): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/** Returns the folder where Node.js resolves `name` from `folder`: the nearest node_modules. */
function resolved(
  folder: string,
  name: string,
  locked: ReadonlyMap<string, unknown>,
): string | undefined {
  for (
    let from = folder;
    ;
    from = from.slice(0, Math.max(0, from.lastIndexOf('node_modules') - 1))
  ) {
    const found = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (locked.has(found)) return found;
    if (from === '') return undefined;
  }
}

export function byText(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
