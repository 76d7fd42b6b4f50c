import { join } from 'node:path';
import type { Plugin } from 'esbuild';
import { CLIENT_NODE_MODULE } from './client-node-bundle.ts';
import { ASSETS_MODULE } from './page-assets.ts';

/** Replaces the modules that exist for the source only: the debug page, which they build, and client-node. */
export function generatedModules(code: {
  readonly page: string;
  readonly clientNode: string;
}): Plugin {
  const modules = [
    [ASSETS_MODULE, code.page],
    [CLIENT_NODE_MODULE, code.clientNode],
  ] as const;
  return {
    name: 'generated-modules',
    setup: (builder) => {
      for (const [path, contents] of modules) {
        builder.onLoad(
          { filter: new RegExp(String.raw`[\\/]${path.replaceAll('/', String.raw`[\\/]`)}\.ts$`) },
          () => ({
            contents,
            loader: 'js',
            resolveDir: join(import.meta.dirname, '..'),
          }),
        );
      }
    },
  };
}
