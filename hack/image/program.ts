import type { Script } from 'node:vm';

/** The program in a bundle: an expression, see `WRAPPER`. */
export const PROGRAM_FILE = 'program.cjs';

/** V8 keeps text in this encoding in one byte for each character. */
export const PROGRAM_ENCODING = 'latin1';

/** The code caches beside it, which `code-cache.ts` writes: of the daemon, and of the API server. */
export const CODE_CACHE_FILE = 'program.cache';
export const SERVE_CACHE_FILE = 'program.serve.cache';

/** Text around the CommonJS code of the program. The bundler inserts it, so that source maps include it. */
export const WRAPPER = {
  start: '((require, module, exports, importMetaUrl) => {',
  end: '})',
};

type Wrapped = (
  require: NodeJS.Require,
  module: { exports: object },
  exports: object,
  importMetaUrl: string,
) => void;

/** A loaded program. */
export interface LoadedProgram {
  readonly script: Script;
  readonly runCrdController: () => Promise<void>;
}

/**
 * Loads the program of a bundle from a folder. V8 reads compiled functions from the code cache. It ignores a
 * cache that another version of V8 or of the program wrote; the start then takes longer.
 */
export function loadProgram(folder: string): LoadedProgram {
  // Unlike an import, this does not read all exports of the modules, some of which load others.
  const { readFileSync } = process.getBuiltinModule('node:fs');
  const { createRequire } = process.getBuiltinModule('node:module');
  const { pathToFileURL } = process.getBuiltinModule('node:url');
  const vm = process.getBuiltinModule('node:vm');
  const file = `${folder}/${PROGRAM_FILE}`;
  const source = readFileSync(file, PROGRAM_ENCODING);
  const { href } = pathToFileURL(file);
  const script = new vm.Script(source, { filename: href, cachedData: codeCache(folder) });
  const wrapped: Wrapped = script.runInThisContext();
  const module = { exports: {} as Pick<LoadedProgram, 'runCrdController'> };
  wrapped(createRequire(file), module, module.exports, href);
  return { script, runCrdController: module.exports.runCrdController };
}

function codeCache(folder: string): Buffer | undefined {
  try {
    const file = process.argv[2] === 'serve' ? SERVE_CACHE_FILE : CODE_CACHE_FILE;
    return process.getBuiltinModule('node:fs').readFileSync(`${folder}/${file}`);
  } catch {
    return undefined;
  }
}
