import { join } from 'node:path';
import type { Metafile, Plugin } from 'esbuild';

/** Maximum length of a module and its comments, in bytes. */
const MAX_BYTES = 8192;

/**
 * Returns a plugin that makes one chunk of the small modules of the root entry that import nothing else. Otherwise, esbuild makes
 * a chunk of those that are needed by the same entry points, which are more than a hundred, and Node.js loads few files much
 * faster than many.
 *
 * @param inputs of an earlier build
 */
export function smallModules(root: string, inputs: Metafile['inputs']): Plugin {
  const paths = pathsOfSmall(inputs);
  const files = new Set(paths.map((path) => join(root, path)));
  return {
    name: 'small-modules',
    setup: (builder) => {
      builder.onResolve({ filter: /^\./ }, ({ path, importer, resolveDir, kind }) =>
        kind === 'import-statement' && files.has(join(resolveDir, path)) && !files.has(importer)
          ? { path: 'small', namespace: 'small-modules' }
          : undefined,
      );
      builder.onLoad({ filter: /^/, namespace: 'small-modules' }, () => ({
        // Exported names are unique.
        contents: paths.map((path) => `export * from '${join(root, path)}';`).join('\n'),
        resolveDir: root,
      }));
    },
  };
}

/** Returns the paths of the small modules of the root entry that import only one another. */
function pathsOfSmall(inputs: Metafile['inputs']): string[] {
  const reached = new Set(['src/index.ts']);
  for (const path of reached) {
    for (const each of inputs[path]?.imports ?? []) {
      if (each.kind === 'import-statement' && !each.external) reached.add(each.path);
    }
  }
  const small = new Set([...reached].filter((path) => (inputs[path]?.bytes ?? 0) <= MAX_BYTES));
  for (let before = -1; before !== small.size;) {
    before = small.size;
    for (const path of small) {
      if (inputs[path]?.imports.some((each) => !small.has(each.path))) small.delete(path);
    }
  }
  return [...small];
}
