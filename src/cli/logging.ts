import { pino } from 'pino';
import type { LogFields, Logger } from '../util/logger.ts';
import { callerOfCaller } from './caller.ts';
import type { Caller } from './caller.ts';
import { errorText, isProgrammerError } from './error-text.ts';
import type { LogRecord } from './klog-text.ts';
import { klogText } from './klog-text.ts';
import type { LogValue } from './log-value.ts';
import { logText, logValue } from './log-value.ts';
import type { VModulePattern } from './vmodule.ts';
import { verbosityOf } from './vmodule.ts';

export interface LoggingOptions {
  readonly format: 'text' | 'json';
  /** Lines of this verbosity and below are shown. */
  readonly verbosity: number;
  /** Other verbosities for some source files; text format only, as in klog. */
  readonly vmodule: readonly VModulePattern[];
  /** Text format: leave out time, process id and place. */
  readonly skipHeaders: boolean;
  /** Text format: show the folder before the file name. */
  readonly addDirHeader: boolean;
}

/** Where lines go, and what else a line needs from the world. */
export interface LoggingEnvironment {
  /** Takes one line with its line break; it must be out when this returns. */
  readonly write: (line: string, severity: LogRecord['severity']) => void;
  /** Milliseconds since the Unix epoch, with microseconds behind the point. */
  readonly now: () => number;
  readonly pid: number;
}

/** Makes the one logger of a process; see `util/logger.ts` for what may be said to it. */
export function createLogger(
  options: LoggingOptions,
  environment: LoggingEnvironment = standardError(),
): Logger {
  const write =
    options.format === 'json' ? jsonWriter(environment) : textWriter(options, environment);
  const vmodule = options.format === 'json' ? [] : options.vmodule;
  return new KlogLogger(
    {
      write,
      now: environment.now,
      verbosity: options.verbosity,
      vmodule,
      ...(options.verbosity >= 10 ? { longest: Number.POSITIVE_INFINITY } : {}),
    },
    { verbosity: 0, name: '', fields: new Map() },
  );
}

/** Characters that wait for a reader who has gone; what comes after them is dropped. */
const MOST_UNWRITTEN = 64 * 1024 * 1024;

/**
 * Standard error, written synchronously: what was logged before a crash or `process.exit` is there.
 */
export function standardError(): LoggingEnvironment {
  const destination = pino.destination({ fd: 2, sync: true, maxLength: MOST_UNWRITTEN });
  destination.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of a pipe may go away (`| head`); that is no reason to stop reconciling.
    if (error.code !== 'EPIPE') throw error;
  });
  return { write: (line) => destination.write(line), now: preciseNow(), pid: process.pid };
}

/**
 * Wall-clock time with microseconds. The high-resolution clock stands still while a machine
 * sleeps and does not follow NTP, so it is set anew whenever it strays from the wall clock.
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

/** What every logger of a process shares. */
interface Core {
  readonly write: (record: LogRecord) => void;
  readonly now: () => number;
  readonly verbosity: number;
  readonly vmodule: readonly VModulePattern[];
  /** Characters of a text; at verbosity 10 and above people want them all. */
  readonly longest?: number;
}

/** What one logger adds to its lines. */
interface Scope {
  readonly verbosity: number;
  readonly name: string;
  readonly fields: ReadonlyMap<string, LogValue>;
}

/**
 * `info`, `error` and `enabled` each ask for their caller themselves: `callerOfCaller` counts
 * frames.
 */
class KlogLogger implements Logger {
  readonly #core: Core;
  readonly #scope: Scope;

  constructor(core: Core, scope: Scope) {
    this.#core = core;
    this.#scope = scope;
  }

  get enabled(): boolean {
    if (this.#scope.verbosity <= this.#core.verbosity) return true;
    return this.#core.vmodule.length > 0 && this.#isEnabledIn(callerOfCaller());
  }

  info(message: string, fields?: LogFields): void {
    const isEnabled = this.#scope.verbosity <= this.#core.verbosity;
    if (!isEnabled && this.#core.vmodule.length === 0) return;
    const caller = callerOfCaller();
    if (isEnabled || this.#isEnabledIn(caller)) this.#write('info', message, caller, fields);
  }

  error(error: unknown, message: string, fields?: LogFields): void {
    const about: LogFields =
      error === undefined || error === null ? {} : { err: errorText(error), stack: stackOf(error) };
    this.#write('error', message, callerOfCaller(), fields, about);
  }

  v(level: number): Logger {
    return new KlogLogger(this.#core, { ...this.#scope, verbosity: level });
  }

  with(fields: LogFields): Logger {
    const merged = merge(new Map(this.#scope.fields), fields, this.#core.longest);
    return new KlogLogger(this.#core, { ...this.#scope, fields: merged });
  }

  named(name: string): Logger {
    const full = this.#scope.name ? `${this.#scope.name}.${name}` : name;
    return new KlogLogger(this.#core, { ...this.#scope, name: full });
  }

  #isEnabledIn(caller: Caller): boolean {
    const verbosity = verbosityOf(caller, this.#core.vmodule);
    return verbosity !== undefined && this.#scope.verbosity <= verbosity;
  }

  #write(
    severity: LogRecord['severity'],
    message: string,
    caller: Caller,
    fields: LogFields = {},
    about: LogFields = {},
  ): void {
    const { longest } = this.#core;
    const merged = merge(new Map(), about, longest);
    if (this.#scope.name) merged.set('logger', this.#scope.name);
    for (const [key, value] of this.#scope.fields) merged.set(key, value);
    this.#core.write({
      severity,
      message: logText(message, longest),
      fields: merge(merged, fields, longest),
      verbosity: this.#scope.verbosity,
      caller,
      timeMs: this.#core.now(),
    });
  }
}

/** Where a bug is, for errors that are bugs; a stack says nothing about the world outside. */
function stackOf(error: unknown): string | undefined {
  return error instanceof Error && isProgrammerError(error) ? error.stack : undefined;
}

/** Sets `fields` in `target`. A key that is there already moves to the place of its last mention. */
function merge(
  target: Map<string, LogValue>,
  fields: LogFields,
  longest?: number,
): Map<string, LogValue> {
  for (const [key, field] of Object.entries(fields)) {
    const value = logValue(key, field, longest);
    target.delete(key);
    if (value !== undefined) target.set(key, value);
  }
  return target;
}

function textWriter(options: LoggingOptions, { write, pid }: LoggingEnvironment) {
  const { skipHeaders, addDirHeader } = options;
  return (record: LogRecord) =>
    write(klogText(record, { pid, skipHeaders, addDirHeader }), record.severity);
}

/** The members every line has; a field of such a name is shown with an underscore before it. */
const RESERVED: ReadonlySet<string> = new Set(['ts', 'caller', 'v', 'msg']);

/** One object a line, as kube-apiserver's `--logging-format=json` has it. */
function jsonWriter({ write }: LoggingEnvironment) {
  let timeMs = 0;
  let current: LogRecord['severity'] = 'info';
  const logger = pino(
    {
      base: null,
      level: 'info',
      messageKey: 'msg',
      errorKey: 'err',
      // First member of the line, so without a comma before it.
      timestamp: () => `"ts":${Math.floor(timeMs * 1000) / 1e6}`,
      formatters: { level: () => ({}) },
    },
    { write: (line) => write(line, current) },
  );
  return (record: LogRecord) => {
    timeMs = record.timeMs;
    current = record.severity;
    const { caller, fields, message, severity, verbosity } = record;
    const line: [string, unknown][] = [['caller', `${caller.file}:${caller.line}`]];
    const name = fields.get('logger');
    if (name !== undefined) line.push(['logger', name]);
    if (severity === 'info') line.push(['v', verbosity]);
    line.push(['msg', message]);
    for (const [key, value] of fields) {
      if (key !== 'logger') line.push([RESERVED.has(key) ? `_${key}` : key, value]);
    }
    logger[severity](Object.fromEntries(line));
  };
}
