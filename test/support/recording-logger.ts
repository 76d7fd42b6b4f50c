import type { LogFields, Logger } from '../../src/util/logger.ts';

export interface LogLine {
  readonly level: number | 'error';
  readonly message: string;
  readonly fields: LogFields;
  readonly error?: unknown;
}

/** A logger that keeps what it was told, at every verbosity. */
export function recordingLogger(lines: LogLine[] = []): { log: Logger; lines: LogLine[] } {
  const logger = (level: number, bound: LogFields): Logger => ({
    info: (message, fields) => lines.push({ level, message, fields: { ...bound, ...fields } }),
    error: (error, message, fields) =>
      lines.push({ level: 'error', message, fields: { ...bound, ...fields }, error }),
    enabled: true,
    v: (next) => logger(next, bound),
    with: (fields) => logger(level, { ...bound, ...fields }),
    named: () => logger(level, bound),
  });
  return { log: logger(0, {}), lines };
}
