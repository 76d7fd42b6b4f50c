/** Time and memory of importing each entry point of the built library, and of other clients for Node.js. */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
  description: 'what an import of each entry point costs',
  options: {},
  short: {},
  columns: [
    { key: 'importMs', title: 'import ms' },
    { key: 'rssMb', title: 'RSS MiB', digits: 1 },
    { key: 'modules', title: 'modules' },
    { key: 'loadedKb', title: 'loaded KiB' },
    { key: 'packages', title: 'packages' },
  ],
  cases(): readonly Case[] {
    const contestants = [NODE, ...ENTRY_POINTS.map(([entry]) => entry), ...PEERS];
    return [{ name: 'import', contestants, open }];
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
