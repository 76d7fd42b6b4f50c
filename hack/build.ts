/**
 * Compiles src/ to dist/ for publication: JavaScript with the lines of the source, and the types that the entry points of the package reach.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLIENT_NODE_MODULE, clientNodeBundle } from './client-node-bundle.ts';
import { ASSETS_MODULE, builtAssets } from './page-assets.ts';
import { stripSource } from './strip-source.ts';

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

async function writeCode(): Promise<void> {
  const generated: Readonly<Record<string, string>> = {
    [`${ASSETS_MODULE}.ts`]: builtAssets().code,
    [`${CLIENT_NODE_MODULE}.ts`]: await clientNodeBundle(),
  };
  const sources = globSync('**/*.ts', {
    cwd: join(root, 'src'),
    // For browsers; part of the generated module.
    exclude: ['serving/page/browser/**'],
  });
  for (const path of sources) {
    const file = join(dist, path.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(file), { recursive: true });
    const code = generated[path] ?? stripSource(readFileSync(join(root, 'src', path), 'utf8'));
    writeFileSync(file, code);
  }
  chmodSync(join(dist, 'cli/main.js'), 0o755);
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
