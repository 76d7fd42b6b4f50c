import type { Caller } from './caller.ts';

/** One `pattern=N` of `--vmodule`: verbosity N for files whose base name matches. */
export interface VModulePattern {
  readonly pattern: RegExp;
  readonly verbosity: number;
}

/**
 * Parses `reflector=6,work-*=4`. A pattern matches the base name of a source file without its
 * extension; `*` stands for any characters, `?` for one.
 *
 * @throws {SyntaxError} naming the part that is wrong
 */
export function parseVModule(text: string): VModulePattern[] {
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const match = /^([^=]+)=(\d{1,9})$/.exec(part);
      const [, glob, verbosity] = match ?? [];
      if (glob === undefined || glob.length > 128) {
        throw new SyntaxError(`"${part}" must have the form pattern=N, as in reflector=6`);
      }
      return { pattern: globPattern(glob), verbosity: Number(verbosity) };
    });
}

/** Returns the verbosity of the first pattern that matches the file of the caller. */
export function verbosityOf(
  caller: Caller,
  patterns: readonly VModulePattern[],
): number | undefined {
  const module = caller.file.replace(/\.[^.]*$/, '');
  return patterns.find(({ pattern }) => pattern.test(module))?.verbosity;
}

/** Consecutive `*` are merged, so that matching is fast for every pattern. */
function globPattern(glob: string): RegExp {
  const source = glob
    .replaceAll(/\*+/g, '*')
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's');
}
