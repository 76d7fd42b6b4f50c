import type { LogFields, Logger } from '../../util/logger.ts';
import type { Caller } from './caller.ts';
import { callerOfCaller } from './caller.ts';
import { errorText, isProgrammerError } from '../common/errors.ts';
import { sourceStack } from './source-stack.ts';
import type { LogRecord } from './klog-text.ts';
import { valueText } from './klog-text.ts';
import type { LogLevel, VModulePattern } from './log-level.ts';
import type { LogValue } from './log-value.ts';
import { logText, logValue } from './log-value.ts';
import { verbosityOf } from './log-level.ts';

/** State that all loggers of a process share. */
export interface KlogCore {
  readonly write: (record: LogRecord) => void;
  readonly now: () => number;
  /** Read for each line, because it can change. */
  readonly level: Pick<LogLevel, 'verbosity'>;
  readonly vmodule: readonly VModulePattern[];
}

/** Least verbosity at which texts are not cut. */
const WHOLE_TEXTS = 10;

/** State of one logger. */
export interface KlogScope {
  readonly verbosity: number;
  readonly name: string;
  /** Converted when the first line is written: most loggers of a sync write none. */
  readonly fields: () => ReadonlyMap<string, LogValue>;
}

/**
 * Filters log lines by verbosity and collects their fields in klog's order: error, name of the logger,
 * fields of the logger, fields of the line. If a key occurs twice, the last value wins, and an equal value
 * keeps its place.
 *
 * `info`, `error` and `enabled` each call `callerOfCaller` themselves, because it counts stack frames.
 */
export class KlogLogger implements Logger {
  readonly #core: KlogCore;
  readonly #scope: KlogScope;

  constructor(core: KlogCore, scope: KlogScope) {
    this.#core = core;
    this.#scope = scope;
  }

  get enabled(): boolean {
    if (this.#scope.verbosity <= this.#core.level.verbosity) return true;
    return this.#isEnabledSomewhere() && this.#isEnabledIn(callerOfCaller());
  }

  info(message: string, fields?: LogFields): void {
    const isEnabled = this.#scope.verbosity <= this.#core.level.verbosity;
    if (!isEnabled && !this.#isEnabledSomewhere()) return;
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
    const inherited = this.#scope.fields;
    let merged: ReadonlyMap<string, LogValue> | undefined;
    const all = () => (merged ??= merge(new Map(inherited()), fields, this.#longest));
    return new KlogLogger(this.#core, { ...this.#scope, fields: all });
  }

  named(name: string): Logger {
    const full = this.#scope.name ? `${this.#scope.name}.${name}` : name;
    return new KlogLogger(this.#core, { ...this.#scope, name: full });
  }

  get #longest(): number | undefined {
    return this.#core.level.verbosity >= WHOLE_TEXTS ? Number.POSITIVE_INFINITY : undefined;
  }

  /** If false, the caller, which is slow to find, is not needed. */
  #isEnabledSomewhere(): boolean {
    for (const { verbosity } of this.#core.vmodule) {
      if (this.#scope.verbosity <= verbosity) return true;
    }
    return false;
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
    const longest = this.#longest;
    const merged = merge(new Map(), about, longest);
    if (this.#scope.name) merged.set('logger', this.#scope.name);
    for (const [key, value] of this.#scope.fields()) set(merged, key, value);
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

/** Returns the stack of an error that indicates a bug. */
function stackOf(error: unknown): string | undefined {
  return error instanceof Error && isProgrammerError(error) ? sourceStack(error) : undefined;
}

/** Sets `fields` in `target`. A key with another value moves to the end. */
function merge(
  target: Map<string, LogValue>,
  fields: LogFields,
  longest?: number,
): Map<string, LogValue> {
  for (const [key, field] of Object.entries(fields)) {
    const value = logValue(key, field, longest);
    if (value === undefined) target.delete(key);
    else set(target, key, value);
  }
  return target;
}

function set(target: Map<string, LogValue>, key: string, value: LogValue): void {
  const before = target.get(key);
  if (before !== undefined) {
    if (valueText(before) === valueText(value)) return;
    target.delete(key);
  }
  target.set(key, value);
}
