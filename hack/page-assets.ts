import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { buildPage } from '../src/serving/page/assets.ts';
import { licences } from './image/licences.ts';
import { bundledPackages } from './image/packages.ts';

/** The module that builds the page from its source, relative to the folder of the program's source or output. */
export const ASSETS_MODULE = 'serving/page/assets';

/**
 * Returns the module that replaces it where there is no source: the same code and style without white space, with
 * the licences of the packages in the code.
 */
export function builtAssets(): { readonly code: string; readonly metafile: Metafile } {
  const { script, style, metafile } = buildPage({ minify: true });
  const root = join(import.meta.dirname, '..');
  const notice = licences(root, bundledPackages(root, metafile));
  const assets = JSON.stringify({ script, style });
  return {
    code: `/*! The page contains:\n\n${notice}*/\nexport function pageAssets() {\n  return ${assets};\n}\n`,
    metafile,
  };
}
