import { transformSync } from 'esbuild';
import { pageAssets } from '../src/serving/page/assets.ts';

/** The module that reads the page's source, relative to the folder of the program's source or output. */
export const ASSETS_MODULE = 'serving/page/assets';

/** Returns the module that replaces it where there is no source: the same code and style without white space. */
export function builtAssets(): string {
  const { script, style } = pageAssets();
  const assets = {
    script: transformSync(script, { minify: true, format: 'esm', target: 'es2024' }).code,
    style: transformSync(style, { minify: true, loader: 'css', target: 'es2024' }).code,
  };
  return `export function pageAssets() {\n  return ${JSON.stringify(assets)};\n}\n`;
}
