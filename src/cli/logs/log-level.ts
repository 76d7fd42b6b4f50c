import type { Logger } from '../../util/logger.ts';

/** The verbosity of a running process, for whoever may change it. */
export interface LogLevel {
  /** Lines of this verbosity and below are shown. */
  readonly verbosity: number;

  /**
   * From now on, lines of `verbosity` and below are shown, by every logger of the process. Tells so
   * in the log.
   *
   * @throws {RangeError} if it is not an integer from 0 to 2147483647, which is what klog takes
   */
  setVerbosity(verbosity: number): void;
}

const HIGHEST_VERBOSITY = 2 ** 31 - 1;

/** From here on bodies of requests are shown, cut; from `WHOLE_BODIES` on, all of them. */
const BODIES = 8;
const WHOLE_BODIES = 10;

/** The level that the loggers made with it read for each line. */
export class ChangeableLogLevel implements LogLevel {
  #verbosity: number;
  readonly #log: () => Logger;

  /** `log` is asked for when there is something to tell, not before. */
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

  /** Says what a reader of such a log should know about it; nothing, below the level of bodies. */
  warn(): void {
    if (this.#verbosity < BODIES) return;
    this.#log().info('The log contains request bodies: protect it like the objects themselves', {
      bodies: this.#verbosity >= WHOLE_BODIES ? 'whole' : 'cut',
    });
  }
}

/** As much of `process` as it takes to be told to say more or less. */
export interface LevelSignalSource {
  on(signal: 'SIGUSR2', listener: () => void): unknown;
  off(signal: 'SIGUSR2', listener: () => void): unknown;
}

/** What SIGUSR2 leads to, one after the other and then from the start. */
const CYCLE = [2, 4, 6] as const;

/**
 * Each SIGUSR2 leads to the next of the verbosities 2, 4 and 6 above the present one, and to 2 from
 * 6 and above. `dispose` gives the signal back.
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
