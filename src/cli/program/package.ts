import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ProgramOptions } from './program.ts';

export interface PackageManifest {
  readonly version: string;
  /** Commit of the build, if known. */
  readonly gitHead?: string;
}

/**
 * Returns the folder with the `package.json`, `crds` and `examples` of this package, with a final slash.
 * Works from `src`, from `dist` and bundled.
 *
 * @throws {Error} if the installation is broken
 */
export function packageRoot(from: string = import.meta.url): URL {
  for (let folder = new URL('.', from); ; folder = new URL('..', folder)) {
    if (existsSync(new URL('package.json', folder))) return folder;
    if (folder.pathname === new URL('..', folder).pathname) {
      throw new Error(
        `No package.json in a parent folder of ${fileURLToPath(from)}: reinstall crd-controller`,
      );
    }
  }
}

export function manifest(root: URL = packageRoot()): PackageManifest {
  const { version, gitHead }: PackageManifest = JSON.parse(
    readFileSync(new URL('package.json', root), 'utf8'),
  );
  return gitHead === undefined ? { version } : { version, gitHead };
}

/** Part of `process` that the version line shows. */
export interface Platform {
  readonly versions: { readonly node: string };
  readonly platform: string;
  readonly arch: string;
}

/** Returns `crd-controller v0.1.0 (commit 1a2b3c4, node v24.21.0, linux/amd64)`. */
export function versionLine(
  { name, version, revision }: Pick<ProgramOptions, 'name' | 'version' | 'revision'>,
  platform: Platform,
): string {
  const commit = revision ? [`commit ${revision.slice(0, 7)}`] : [];
  const details = [...commit, `node v${platform.versions.node}`, goPlatform(platform)];
  return `${name} v${version} (${details.join(', ')})`;
}

/** Returns the platform in Go's terms, as images do. */
function goPlatform({ platform, arch }: Platform): string {
  const system = platform === 'win32' ? 'windows' : platform;
  const processor = arch === 'x64' ? 'amd64' : arch === 'ia32' ? '386' : arch;
  return `${system}/${processor}`;
}
