import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as Esbuild from 'esbuild';

/** Code and style of the page. */
export interface PageAssets {
  readonly script: string;
  readonly style: string;
}

/**
 * Returns the code and the style of the page from the source. `hack/page-assets.ts` replaces this module by its result
 * in `dist/` and in bundles, which have neither the source nor esbuild.
 */
export function pageAssets(): PageAssets {
  return buildPage({ minify: false });
}

/** Builds the page from the source, with the list of its files. */
export function buildPage({ minify }: { readonly minify: boolean }): PageAssets & {
  readonly metafile: Esbuild.Metafile;
} {
  // Loaded here, because a program that shows no page does not need it.
  const esbuild = createRequire(import.meta.url)('esbuild') as typeof Esbuild;
  const { outputFiles, metafile } = esbuild.buildSync({
    absWorkingDir: join(import.meta.dirname, '../../..'),
    entryPoints: ['main.tsx', 'style.css'].map((file) =>
      join(import.meta.dirname, 'browser', file),
    ),
    outdir: 'page',
    bundle: true,
    write: false,
    metafile: true,
    minify,
    format: 'esm',
    target: 'es2024',
    legalComments: 'none',
  });
  const textOf = (extension: string) =>
    outputFiles.find(({ path }) => path.endsWith(extension))?.text ?? '';
  return { script: textOf('.js'), style: textOf('.css'), metafile };
}
