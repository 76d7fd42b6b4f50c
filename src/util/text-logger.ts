import type { WithDefaults } from './check-options.ts';
import { goQuote } from './go-quote.ts';
import { lineWriterOf } from './line-writer.ts';
import type { LogFields, Logger } from './logger.ts';
import { printableText } from './printable.ts';
import { messageOf } from './values.ts';

/** Options of `TextLogger`. */
export interface TextLoggerOptions {
  /**
   * Highest verbosity level that is logged: 2 logs changes to objects, 4 decisions.
   * @default 0
   */
  readonly verbosity?: number | undefined;
  /**
   * Writes one line, which has no line break.
   * @default writes to standard error; lines that cannot be written are dropped
   */
  readonly write?: ((line: string) => void) | undefined;
  /**
   * Returns the time in milliseconds since the Unix epoch.
   * @default Date.now
   */
  readonly now?: (() => number) | undefined;
}

/** Maximum length of a field. Authors of objects control the length of some fields. */
const LONGEST_FIELD = 4096;

/** Maximum number of causes of an error. A chain of causes can be circular. */
const DEEPEST_CAUSE = 8;

/**
 * Creates a logger that writes lines of text in the style of klog.
 *
 *     I 2026-05-30T07:57:55.721Z "Updated Deployment" controller="foo" foo="default/web"
 *
 * Fields are written unmodified and must not contain secrets.
 *
 * @example
 * ```ts
 * import { textLogger } from 'crd-controller';
 *
 * const log = textLogger({ write: (line) => console.log(line.includes('Started')) });
 * log.info('Started', { port: 8080 }); // prints: true
 * ```
 */
export function textLogger(options: TextLoggerOptions = {}): Logger {
  const { verbosity = 0, write = standardError, now = Date.now } = options;
  return new TextLogger({ verbosity, write, now }, 0, '', {});
}

class TextLogger implements Logger {
  readonly #options: WithDefaults<TextLoggerOptions>;
  readonly #level: number;
  readonly #name: string;
  readonly #fields: LogFields;

  constructor(
    options: WithDefaults<TextLoggerOptions>,
    level: number,
    name: string,
    fields: LogFields,
  ) {
    this.#options = options;
    this.#level = level;
    this.#name = name;
    this.#fields = fields;
  }

  get enabled(): boolean {
    return this.#level <= this.#options.verbosity;
  }

  info(message: string, fields?: LogFields): void {
    if (this.enabled) this.#write('I', message, { ...this.#fields, ...fields });
  }

  error(error: unknown, message: string, fields?: LogFields): void {
    const about = error === undefined || error === null ? {} : { err: error };
    this.#write('E', message, { ...about, ...this.#fields, ...fields });
  }

  v(level: number): Logger {
    return new TextLogger(this.#options, level, this.#name, this.#fields);
  }

  with(fields: LogFields): Logger {
    const all = { ...this.#fields, ...fields };
    return new TextLogger(this.#options, this.#level, this.#name, all);
  }

  named(name: string): Logger {
    const full = this.#name ? `${this.#name}.${name}` : name;
    return new TextLogger(this.#options, this.#level, full, this.#fields);
  }

  #write(letter: 'I' | 'E', message: string, fields: LogFields): void {
    const { write, now } = this.#options;
    let line = `${letter} ${new Date(now()).toISOString()} ${goQuote(message)}`;
    if (this.#name) line += ` logger=${goQuote(this.#name)}`;
    for (const [key, value] of Object.entries(fields)) {
      if (value !== undefined) line += ` ${key}=${fieldText(value)}`;
    }
    write(line);
  }
}

function fieldText(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return goQuote(cut(value));
  if (value instanceof Error) return goQuote(cut(errorText(value, 0)));
  try {
    return cut(jsonText(value) ?? goQuote(String(value)));
  } catch (error) {
    // The value has a cycle or a BigInt, or its `toJSON` throws. Logging must not fail.
    return goQuote(`not serialisable: ${messageOf(error)}`);
  }
}

function jsonText(value: unknown): string | undefined {
  const json: string | undefined = JSON.stringify(value);
  return json === undefined ? undefined : printableText(json);
}

/** Returns the messages of an error and its causes, with the stack of errors that programming mistakes cause. */
function errorText(error: Error, depth: number): string {
  const isBug =
    error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  const own = (isBug && error.stack) || error.message || error.name;
  const { cause } = error;
  return cause instanceof Error && depth < DEEPEST_CAUSE
    ? `${own}: ${errorText(cause, depth + 1)}`
    : own;
}

function cut(text: string): string {
  return text.length > LONGEST_FIELD ? `${text.slice(0, LONGEST_FIELD)}…` : text;
}

function standardError(line: string): void {
  lineWriterOf(2).write(`${line}\n`);
}
