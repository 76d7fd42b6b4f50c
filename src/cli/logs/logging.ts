import { pino } from 'pino';
import type { Clock } from '../../util/clock.ts';
import type { DropNotice } from '../../util/line-writer.ts';
import { lineWriterOf, unrefClock } from '../../util/line-writer.ts';
import type { Logger } from '../../util/logger.ts';
import { callerOfCaller } from './caller.ts';
import { KlogLogger } from './klog-logger.ts';
import type { LogRecord } from './klog-text.ts';
import { withoutControls } from '../../util/printable.ts';
import { klogText } from './klog-text.ts';
import type { LogLevel, VModulePattern } from './log-level.ts';
import { ChangeableLogLevel } from './log-level.ts';
import type { LogValue } from './log-value.ts';
import { RepeatedLines } from './repeated-lines.ts';

/** Options of `createLogging`. */
export interface LoggingOptions {
  readonly format: 'text' | 'json';
  /** Lines of this verbosity and below are written. */
  readonly verbosity: number;
  /** Verbosity by source file; text format only, as in klog. */
  readonly vmodule: readonly VModulePattern[];
  /** Text format: omit time, process ID and source position. */
  readonly skipHeaders: boolean;
  /** Text format: write the folder before the file name. */
  readonly addDirHeader: boolean;
  /**
   * JSON format: write info lines to standard output and errors to standard error.
   * @default false
   */
  readonly splitStream?: boolean | undefined;
}

/** Destination of log lines, clock and process ID. */
export interface LoggingEnvironment {
  /**
   * Writes one line with its line break, synchronously if possible. It must not throw. `notice` formats the
   * line that reports dropped lines.
   */
  readonly write: (line: string, severity: LogRecord['severity'], notice: DropNotice) => void;
  /** Milliseconds since the Unix epoch, with a fraction of microseconds. */
  readonly now: () => number;
  readonly pid: number;
  /**
   * Measures the windows in which identical lines are limited.
   * @default no limit
   */
  readonly clock?: Pick<Clock, 'monotonic' | 'after'>;
  /** Registers a function that writes the lines about suppressed lines at the end of the process. */
  readonly atEnd?: (flush: () => void) => void;
}

/** Log of a process. */
export interface Logging {
  readonly log: Logger;
  readonly level: LogLevel;
}

/** Creates the log of a process; see `util/logger.ts`. */
export function createLogging(options: LoggingOptions, environment?: LoggingEnvironment): Logging {
  const { log, level } = logging(options, environment);
  level.warn();
  return { log, level };
}

/** Creates another log whose verbosity does not change. */
export function createLogger(options: LoggingOptions, environment?: LoggingEnvironment): Logger {
  return logging(options, environment).log;
}

const NO_FIELDS: ReadonlyMap<string, LogValue> = new Map();

function logging(options: LoggingOptions, environment: LoggingEnvironment = streams(options)) {
  const format = options.format === 'json' ? jsonFormat() : textFormat(options, environment.pid);
  const notice: DropNotice = ({ lines, reason }) =>
    format({
      severity: 'error',
      message: 'Dropped log lines that could not be written',
      fields: new Map<string, LogValue>([
        ['err', reason],
        ['lines', lines],
      ]),
      verbosity: 0,
      caller: callerOfCaller(),
      timeMs: environment.now(),
    });
  const write = limited(
    (record) => environment.write(format(record), record.severity, notice),
    environment,
  );
  const vmodule = options.format === 'json' ? [] : options.vmodule;
  const level = new ChangeableLogLevel(options.verbosity, () => log);
  const log: Logger = new KlogLogger(
    { write, now: environment.now, level, vmodule },
    { verbosity: 0, name: '', fields: () => NO_FIELDS },
  );
  return { log, level };
}

function limited(
  write: (record: LogRecord) => void,
  { now, clock, atEnd }: LoggingEnvironment,
): (record: LogRecord) => void {
  if (!clock) return write;
  const lines = new RepeatedLines(write, now, clock);
  atEnd?.(() => lines.flush());
  return (record) => lines.take(record);
}

function streams({ format, splitStream = false }: LoggingOptions): LoggingEnvironment {
  const errors = standardError();
  if (!splitStream || format !== 'json') return errors;
  const infos = lineWriterOf(1);
  return {
    ...errors,
    write: (line, severity, notice) =>
      severity === 'info' ? infos.write(line, notice) : errors.write(line, severity, notice),
  };
}

/**
 * Standard error, written synchronously: lines logged before a crash or `process.exit` are written.
 */
export function standardError(): LoggingEnvironment {
  const errors = lineWriterOf(2);
  return {
    write: (line, _severity, notice) => errors.write(line, notice),
    now: preciseNow(),
    pid: process.pid,
    clock: unrefClock,
    atEnd: (flush) =>
      process.once('exit', () => {
        flush();
        errors.flush();
      }),
  };
}

/** Number of log lines of this process that could not be written and were dropped. */
export function droppedLogLines(): number {
  return lineWriterOf(1).dropped + lineWriterOf(2).dropped;
}

function textFormat(options: LoggingOptions, pid: number): (record: LogRecord) => string {
  const { skipHeaders, addDirHeader } = options;
  return (record) => klogText(record, { pid, skipHeaders, addDirHeader });
}

/** Members of every line. A field with such a name gets an underscore as prefix. */
const RESERVED: ReadonlySet<string> = new Set(['ts', 'caller', 'v', 'msg']);

/**
 * Writes one object per line, as kube-apiserver does with `--logging-format=json`. Differences: the time is
 * in seconds, as Kubernetes documents it (components write milliseconds), and no member occurs twice.
 */
function jsonFormat(): (record: LogRecord) => string {
  let timeMs = 0;
  let formatted = '';
  const logger = pino(
    {
      base: null,
      level: 'info',
      messageKey: 'msg',
      errorKey: 'err',
      // The first member has no comma before it.
      timestamp: () => `"ts":${Math.floor(timeMs * 1000) / 1e6}`,
      formatters: { level: () => ({}) },
    },
    { write: (line) => (formatted = withoutControls(line)) },
  );
  return (record) => {
    timeMs = record.timeMs;
    const { caller, fields, message, severity, verbosity } = record;
    const line: [string, unknown][] = [
      ['caller', `${caller.folder}/${caller.file}:${caller.line}`],
    ];
    const name = fields.get('logger');
    if (name !== undefined) line.push(['logger', name]);
    if (severity === 'info') line.push(['v', verbosity]);
    line.push(['msg', message]);
    for (const [key, value] of fields) {
      if (key !== 'logger') line.push([RESERVED.has(key) ? `_${key}` : key, value]);
    }
    logger[severity](Object.fromEntries(line));
    return formatted;
  };
}

/**
 * Returns wall-clock time with microseconds. The high-resolution clock stops while the machine sleeps and
 * does not follow NTP. It is therefore adjusted when it differs from the wall clock.
 */
export function preciseNow(
  wall: () => number = Date.now,
  monotonic: () => number = () => performance.now(),
): () => number {
  let origin = wall() - monotonic();
  return () => {
    const now = wall();
    if (Math.abs(origin + monotonic() - now) > 2) origin = now - monotonic();
    return origin + monotonic();
  };
}
