import type { Logger } from '../../util/logger.ts';
import type { Caller } from './caller.ts';

/** Verbosity of a running process. */
export interface LogLevel {
  /** Lines of this verbosity and below are written. */
  readonly verbosity: number;

  /**
   * Sets the verbosity of all loggers of the process, and logs the change.
   *
   * @throws {RangeError} unless the value is an integer from 0 to 2147483647, as in klog
   */
  setVerbosity(verbosity: number): void;
}

const HIGHEST_VERBOSITY = 2 ** 31 - 1;

/**
 * Least verbosity at which request bodies are logged, cut to a maximum length; from `WHOLE_BODIES` they are
 * complete.
 */
const BODIES = 8;
const WHOLE_BODIES = 10;

/** Verbosity that can change; loggers read it for each line. */
export class ChangeableLogLevel implements LogLevel {
  #verbosity: number;
  readonly #log: () => Logger;

  /** `log` is called when there is something to log, because it depends on this level. */
  constructor(verbosity: number, log: () => Logger) {
    this.#verbosity = verbosity;
    this.#log = log;
  }

  get verbosity(): number {
    return this.#verbosity;
  }

  setVerbosity(verbosity: number): void {
    if (!Number.isInteger(verbosity) || verbosity < 0 || verbosity > HIGHEST_VERBOSITY) {
      throw new RangeError(
        `verbosity must be an integer from 0 to ${HIGHEST_VERBOSITY}: got ${verbosity}`,
      );
    }
    const previous = this.#verbosity;
    if (previous === verbosity) return;
    this.#verbosity = verbosity;
    this.#log().info('Changed verbosity', { from: previous, to: verbosity });
    this.warn();
  }

  /** Logs a warning if request bodies are logged. */
  warn(): void {
    if (this.#verbosity < BODIES) return;
    this.#log().info('The log contains request bodies: protect it like the objects themselves', {
      bodies: this.#verbosity >= WHOLE_BODIES ? 'whole' : 'cut',
    });
  }
}

/** Part of `process` that delivers the signal. */
export interface LevelSignalSource {
  on(signal: 'SIGUSR2', listener: () => void): unknown;
  off(signal: 'SIGUSR2', listener: () => void): unknown;
}

/** Verbosities that SIGUSR2 sets in turn. */
const CYCLE = [2, 4, 6] as const;

/**
 * Sets the next higher verbosity of 2, 4 and 6 on each SIGUSR2, or 2 if it is 6 or higher. `dispose` removes
 * the signal handler.
 */
export function cycleVerbosityOnSignal(
  source: LevelSignalSource,
  level: LogLevel,
): { dispose(): void } {
  const listener = () =>
    level.setVerbosity(CYCLE.find((next) => next > level.verbosity) ?? CYCLE[0]);
  source.on('SIGUSR2', listener);
  return { dispose: () => source.off('SIGUSR2', listener) };
}

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
