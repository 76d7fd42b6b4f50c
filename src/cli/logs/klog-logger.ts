import type { LogFields, Logger } from '../../util/logger.ts';
import type { Caller } from './caller.ts';
import { callerOfCaller } from './caller.ts';
import { errorText, isProgrammerError } from '../error-text.ts';
import type { LogRecord } from './klog-text.ts';
import { valueText } from './klog-text.ts';
import type { LogLevel } from './log-level.ts';
import type { LogValue } from './log-value.ts';
import { logText, logValue } from './log-value.ts';
import type { VModulePattern } from './vmodule.ts';
import { verbosityOf } from './vmodule.ts';

/** What every logger of a process shares. */
export interface KlogCore {
  readonly write: (record: LogRecord) => void;
  readonly now: () => number;
  /** Read for each line: it may change at any time. */
  readonly level: Pick<LogLevel, 'verbosity'>;
  readonly vmodule: readonly VModulePattern[];
}

/** From this verbosity on, people want every character of a text. */
const WHOLE_TEXTS = 10;

/** What one logger adds to its lines. */
export interface KlogScope {
  readonly verbosity: number;
  readonly name: string;
  readonly fields: ReadonlyMap<string, LogValue>;
}

/**
 * Decides what is shown and puts together what a line says, as klog does: an error first, then the
 * logger's name, then its fields, then those of the line; of two with the same key, the last, unless
 * the first says the same.
 *
 * `info`, `error` and `enabled` each ask for their caller themselves: `callerOfCaller` counts
 * frames.
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
    const merged = merge(new Map(this.#scope.fields), fields, this.#longest);
    return new KlogLogger(this.#core, { ...this.#scope, fields: merged });
  }

  named(name: string): Logger {
    const full = this.#scope.name ? `${this.#scope.name}.${name}` : name;
    return new KlogLogger(this.#core, { ...this.#scope, name: full });
  }

  get #longest(): number | undefined {
    return this.#core.level.verbosity >= WHOLE_TEXTS ? Number.POSITIVE_INFINITY : undefined;
  }

  /** Where it is false, nobody needs to know the caller, which costs. */
  #isEnabledSomewhere(): boolean {
    return this.#core.vmodule.some(({ verbosity }) => this.#scope.verbosity <= verbosity);
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
    for (const [key, value] of this.#scope.fields) set(merged, key, value);
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

/** Where a bug is, for errors that are bugs; a stack says nothing about the context outside. */
function stackOf(error: unknown): string | undefined {
  return error instanceof Error && isProgrammerError(error) ? error.stack : undefined;
}

/**
 * Sets `fields` in `target`. A key that is there already moves to the place of its last mention,
 * unless that says the same.
 */
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
