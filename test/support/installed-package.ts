import { build } from 'esbuild';
import { cpSync, globSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLIENT_NODE_MODULE, clientNodeBundle } from '../../hack/client-node-bundle.ts';
import { ASSETS_MODULE, builtAssets } from '../../hack/page-assets.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A module of the package in the imports that esbuild prints. */
const IMPORTED = /((?:^(?:import|export|\})[^"\n]*|import\()"\.{1,2}\/[^"\n]*)\.ts"/gm;

/**
 * Writes the package of this checkout to an empty folder, without types. Faster than `hack/build.ts`: the lines are not those of
 * the source.
 */
export async function writePackage(folder: string): Promise<void> {
  const dist = join(folder, 'dist');
  const sources = join(ROOT, 'src');
  const entryPoints = globSync('**/*.ts', { cwd: sources, exclude: ['serving/page/browser/**'] });
  const { outputFiles } = await build({
    absWorkingDir: sources,
    entryPoints,
    outdir: dist,
    format: 'esm',
    target: 'esnext',
    write: false,
    logLevel: 'warning',
  });
  const generated: Readonly<Record<string, string>> = {
    [join(dist, `${ASSETS_MODULE}.js`)]: builtAssets().code,
    [join(dist, `${CLIENT_NODE_MODULE}.js`)]: await clientNodeBundle(),
  };
  for (const { path, text } of outputFiles) {
    mkdirSync(join(path, '..'), { recursive: true });
    const code = generated[path] ?? text;
    writeFileSync(path, code.replaceAll(IMPORTED, '$1.js"'));
  }
  for (const path of ['package.json', 'crds', 'hack/deploy', 'examples'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
}

/** Links the packages in folders to a folder `node_modules`; later ones replace earlier ones. */
export function linkPackages(linked: string, folders: readonly string[]): void {
  for (const folder of folders) {
    for (const name of readdirSync(folder).filter((each) => !each.startsWith('.'))) {
      const isScope = name.startsWith('@');
      mkdirSync(join(linked, isScope ? name : ''), { recursive: true });
      const packages = isScope ? readdirSync(join(folder, name)) : [''];
      for (const each of packages) {
        rmSync(join(linked, name, each), { force: true });
        symlinkSync(join(folder, name, each), join(linked, name, each));
      }
    }
  }
}
