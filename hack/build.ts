/** Compiles src/ to dist/ for publication. */
import { spawnSync } from 'node:child_process';
import { chmodSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLIENT_NODE_MODULE, clientNodeBundle } from './client-node-bundle.ts';
import { ASSETS_MODULE, builtAssets } from './page-assets.ts';

const root = join(import.meta.dirname, '..');

rmSync(join(root, 'dist'), { recursive: true, force: true });
const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', root], { stdio: 'inherit' });
if (tsc.status === 0) {
  chmodSync(join(root, 'dist/cli/main.js'), 0o755);
  const replaced = {
    [ASSETS_MODULE]: builtAssets().code,
    [CLIENT_NODE_MODULE]: await clientNodeBundle(),
  };
  for (const [module, code] of Object.entries(replaced)) {
    const file = join(root, 'dist', `${module}.js`);
    writeFileSync(file, code);
    // Its map and types are those of the source.
    rmSync(`${file}.map`);
    rmSync(join(root, 'dist', `${module}.d.ts`));
  }
  // TypeScript loads the types of Node.js into a user's program only if something refers to them.
  for (const entryPoint of globSync(join(root, 'dist/*.d.ts'))) {
    const text = readFileSync(entryPoint, 'utf8');
    writeFileSync(entryPoint, `/// <reference types="node" />\n${text}`);
  }
} else process.exitCode = 1;
