import type { LogFields, Logger } from '../../src/util/logger.ts';

export interface LogLine {
  readonly level: number | 'error';
  readonly message: string;
  readonly fields: LogFields;
  readonly error?: unknown;
}

/** Creates a logger that records all lines, or those up to `verbosity`. */
export function recordingLogger(
  lines: LogLine[] = [],
  verbosity = Number.POSITIVE_INFINITY,
): { log: Logger; lines: LogLine[] } {
  const logger = (level: number, bound: LogFields): Logger => ({
    info(message, fields) {
      if (level <= verbosity) lines.push({ level, message, fields: { ...bound, ...fields } });
    },
    error: (error, message, fields) =>
      lines.push({ level: 'error', message, fields: { ...bound, ...fields }, error }),
    enabled: level <= verbosity,
    v: (next) => logger(next, bound),
    with: (fields) => logger(level, { ...bound, ...fields }),
    named: () => logger(level, bound),
  });
  return { log: logger(0, {}), lines };
}
