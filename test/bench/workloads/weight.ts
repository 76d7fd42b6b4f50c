/**
 * Time and memory of importing each entry point of the built library, and the size of an installation; the same of other
 * clients for Node.js.
 */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Case, Sample, Setting, Workload } from '../support/workload.ts';

const root = join(import.meta.dirname, '../../..');
const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
};
const run = promisify(execFile);

/** Node.js without an import. */
const NODE = 'node';
const PEERS = ['@kubernetes/client-node', 'kubernetes-fluent-client'];

/** Files by the name of the entry point. */
const ENTRY_POINTS = Object.entries(exports).flatMap(([path, target]) =>
  typeof target === 'string' ? [] : [[join(name, path), join(root, target.default)] as const],
);

/** Prints what the import of a module costs. */
const MEASURE = `
const before = performance.now();
if (process.argv[1]) await import(process.argv[1]);
const importMs = performance.now() - before;
console.log(JSON.stringify({ importMs, rssMb: process.memoryUsage.rss() / 2 ** 20 }));
process.exit();`;

/** Prints what a module loads. The hook would slow down a measured import. */
const COUNT = `
import { registerHooks } from 'node:module';
import { statSync } from 'node:fs';
let modules = 0, bytes = 0;
const packages = new Set();
registerHooks({ load(url, context, next) {
  if (url.startsWith('file:')) {
    modules++;
    bytes += statSync(new URL(url)).size;
    const [, found] = /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? [];
    if (found) packages.add(found);
  }
  return next(url, context);
} });
if (process.argv[1]) await import(process.argv[1]);
console.log(JSON.stringify({ modules, loadedKb: bytes / 1024, packages: packages.size }));
process.exit();`;

export const workload: Workload = {
  description: 'what an installation, and an import of each entry point cost',
  options: {},
  short: {},
  columns: [
    { key: 'importMs', title: 'import ms' },
    { key: 'rssMb', title: 'RSS MiB', digits: 1 },
    { key: 'modules', title: 'modules' },
    { key: 'loadedKb', title: 'loaded KiB' },
    { key: 'packages', title: 'packages' },
    { key: 'diskMb', title: 'on disk MiB', digits: 1 },
  ],
  cases(): readonly Case[] {
    const contestants = [NODE, ...ENTRY_POINTS.map(([entry]) => entry), ...PEERS];
    return [
      { name: 'import', contestants, open },
      { name: 'installation', contestants: [name, ...PEERS], open: openInstallations },
    ];
  },
};

async function open(): Promise<Setting> {
  await run(process.execPath, [join(root, 'hack/build.ts')]);
  return {
    sample: async (contestant) => {
      const url = moduleOf(contestant);
      return { ...(await evaluated(MEASURE, url)), ...(await evaluated(COUNT, url)) };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function openInstallations(): Promise<Setting> {
  await run(process.execPath, [join(root, 'hack/build.ts')]);
  return {
    sample: async (contestant) => {
      const folders = installed(
        contestant === name ? root : folderOf(contestant, import.meta.dirname),
      );
      const sizes = await Promise.all(
        folders.map((folder) => (folder === root ? packed() : sizeOf(folder))),
      );
      const bytes = sizes.reduce((sum, size) => sum + size, 0);
      return { packages: folders.length, diskMb: bytes / 2 ** 20 };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Returns the folders of the package in `folder` and of the packages that are installed with it. */
function installed(folder: string): string[] {
  const folders = new Set([folder]);
  for (const each of folders) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(each, 'package.json'), 'utf8')) as {
      readonly dependencies?: Readonly<Record<string, string>>;
    };
    for (const dependency of Object.keys(dependencies)) folders.add(folderOf(dependency, each));
  }
  return [...folders];
}

/** Returns the folder that Node.js uses for a package. @throws {Error} if it is not installed */
function folderOf(wanted: string, from: string): string {
  const found = join(from, 'node_modules', wanted);
  if (existsSync(found)) return found;
  if (dirname(from) === from) throw new Error(`${wanted} is not installed: run npm ci`);
  return folderOf(wanted, dirname(from));
}

/** Returns the size of our package as npm unpacks it. */
async function packed(): Promise<number> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
  });
  const [{ unpackedSize = Number.NaN } = {}] = JSON.parse(stdout) as { unpackedSize?: number }[];
  return unpackedSize;
}

/** Returns the size of a package without its nested packages. */
async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true });
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.name !== 'node_modules')
      .map(async (entry) => {
        const path = join(folder, entry.name);
        return entry.isDirectory() ? sizeOf(path) : (await stat(path)).size;
      }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Returns the URL of the module, and for Node.js itself nothing. @throws {Error} if it is not installed */
function moduleOf(contestant: string): string {
  if (contestant === NODE) return '';
  const file = new Map(ENTRY_POINTS).get(contestant);
  return pathToFileURL(file ?? createRequire(import.meta.url).resolve(contestant)).href;
}

async function evaluated(script: string, url: string): Promise<Sample> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script, url]);
  return JSON.parse(stdout) as Sample;
}
