/**
 * Compiles src/ to dist/ for publication: JavaScript, and the types that the entry points of the package reach.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { build } from 'esbuild';
import { CALLERS_SUFFIX } from '../src/cli/logs/caller.ts';
import { isRecord } from '../src/util/values.ts';
import { callersIn } from './callers.ts';
import { clientNodeBundle } from './client-node-bundle.ts';
import { generatedModules } from './generated-modules.ts';
import { builtAssets } from './page-assets.ts';
import { smallModules } from './small-modules.ts';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', root, '--emitDeclarationOnly'], {
  stdio: 'inherit',
});
if (tsc.status === 0) {
  await writeCode();
  keepReachableTypes();
} else process.exitCode = 1;

/**
 * Writes a module for each entry point and command, and modules with what several of them have in common: Node.js loads few
 * files much faster than many. Beside each is a file with the source positions of its log lines.
 */
async function writeCode(): Promise<void> {
  const names = [...entryPoints(), 'cli/main', 'cli/envtest/main'];
  const generated = generatedModules({
    page: builtAssets().code,
    clientNode: await clientNodeBundle(),
  });
  const options = {
    absWorkingDir: root,
    entryPoints: names.map((name) => ({ in: `src/${name}.ts`, out: name })),
    outdir: 'dist',
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node22.19',
    sourcemap: 'external',
    sourcesContent: false,
    write: false,
    metafile: true,
    logLevel: 'warning',
  } as const;
  const { metafile } = await build({ ...options, plugins: [generated] });
  const { outputFiles } = await build({
    ...options,
    plugins: [generated, smallModules(root, metafile.inputs)],
  });
  const texts = new Map(outputFiles.map(({ path, text }) => [path, text]));
  for (const [path, code] of texts) {
    if (!path.endsWith('.js')) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
    const callers = callersIn(code, JSON.parse(texts.get(`${path}.map`) ?? ''));
    if (Object.keys(callers).length > 0) {
      writeFileSync(`${path}${CALLERS_SUFFIX}`, JSON.stringify(callers));
    }
  }
  chmodSync(join(dist, 'cli/main.js'), 0o755);
}

/** Names of the modules that package.json exports. */
function entryPoints(): string[] {
  const { exports }: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  return Object.values(exports).flatMap((entry) =>
    isRecord(entry) ? [basename(String(entry['default']), '.js')] : [],
  );
}

/** Removes the types that no entry point imports, directly or through others. */
function keepReachableTypes(): void {
  const reached = new Set(globSync('*.d.ts', { cwd: dist }));
  for (const path of reached) {
    const text = readFileSync(join(dist, path), 'utf8');
    for (const [, imported = ''] of text.matchAll(/(?:\bfrom |\bimport\()['"](\..*?)\.ts['"]/g)) {
      reached.add(join(dirname(path), `${imported}.d.ts`));
    }
    // TypeScript loads the types of Node.js into a user's program only if something refers to them.
    if (dirname(path) === '.') {
      writeFileSync(join(dist, path), `/// <reference types="node" />\n${text}`);
    }
  }
  for (const path of globSync('**/*.d.ts', { cwd: dist })) {
    if (!reached.has(path)) rmSync(join(dist, path));
  }
}
