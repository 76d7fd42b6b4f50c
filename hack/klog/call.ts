import { createLogging } from '../../src/cli/logs/logging.ts';
import type { LoggingOptions } from '../../src/cli/logs/logging.ts';
import { formatDuration } from '../../src/util/duration.ts';
import type { Logger } from '../../src/util/logger.ts';

/**
 * A log call in a form that programs in Go and TypeScript can make. Each member corresponds to one in main.go.
 */
export interface LogCall {
  /** Year, month, day, hour, minute, second and microsecond, local time. */
  readonly time: readonly number[];
  readonly file: string;
  readonly line: number;
  /** Verbosity of the process. */
  readonly verbosity: number;
  /** Verbosity of the line. */
  readonly level: number;
  readonly scopes: readonly Scope[];
  readonly isError: boolean;
  /** The error of an error line; null for none. */
  readonly error: string | null;
  readonly message: string;
  readonly fields: readonly Field[];
}

export type Scope = { readonly name: string } | { readonly fields: readonly Field[] };

export type Field = readonly [key: string, value: Value];

/** A value of a type that exists in both languages. */
export type Value =
  | { readonly string: string }
  | { readonly bool: boolean }
  | { readonly int: string }
  | { readonly float: string }
  | { readonly big: string }
  | { readonly null: true }
  | { readonly error: string }
  | { readonly ref: Reference }
  | { readonly refs: readonly Reference[] }
  | { readonly list: readonly Value[] }
  | { readonly struct: readonly Field[] }
  | { readonly map: readonly Field[] }
  /** Milliseconds. */
  | { readonly duration: number }
  /** Milliseconds since the Unix epoch. */
  | { readonly date: number }
  /** In base64. */
  | { readonly bytes: string };

export interface Reference {
  readonly namespace: string;
  readonly name: string;
}

/** Both forms of a line; empty if the line is not logged. */
export interface Lines {
  readonly text: string;
  readonly json: string;
}

/** Returns the lines of our log for `call` in a process with the id `pid`. */
export function ourLines(call: LogCall, pid: number): Lines {
  return { text: ourLine(call, pid, 'text'), json: ourLine(call, pid, 'json') };
}

function ourLine(call: LogCall, pid: number, format: LoggingOptions['format']): string {
  const [year = 0, month = 0, day, hour, minute, second, micros = 0] = call.time;
  const seconds = new Date(year, month - 1, day, hour, minute, second).getTime();
  // The middle of the microsecond, because not every start of one is a floating-point number.
  const timeMs = seconds + (micros + 0.5) / 1000;
  let shown = '';
  const { log } = createLogging(
    { format, verbosity: call.verbosity, vmodule: [], skipHeaders: false, addDirHeader: false },
    { write: (line) => (shown += line), now: () => timeMs, pid },
  );
  // The line about bodies, at verbosities that show them.
  shown = '';
  say(call, log);
  // Our log records the caller, which is below.
  return shown.replace(/(?:klog\/)?call\.ts:\d+/, `${call.file}:${call.line}`);
}

function say(call: LogCall, log: Logger): void {
  let logger = log;
  for (const scope of call.scopes) {
    logger = 'name' in scope ? logger.named(scope.name) : logger.with(record(scope.fields));
  }
  logger = logger.v(call.level);
  if (!call.isError) logger.info(call.message, record(call.fields));
  else {
    const error = call.error === null ? undefined : new Error(call.error);
    logger.error(error, call.message, record(call.fields));
  }
}

function record(fields: readonly Field[]): Record<string, unknown> {
  return Object.fromEntries(fields.map(([key, value]) => [key, valueOf(value)]));
}

function valueOf(value: Value): unknown {
  if ('string' in value) return value.string;
  if ('bool' in value) return value.bool;
  if ('int' in value) return Number(value.int);
  if ('float' in value) return numberOf(value.float);
  if ('big' in value) return BigInt(value.big);
  if ('error' in value) return new Error(value.error);
  if ('ref' in value) return referenceTo(value.ref);
  if ('refs' in value) return value.refs.map(referenceTo);
  if ('list' in value) return value.list.map(valueOf);
  if ('struct' in value) return record(value.struct);
  if ('map' in value) return record(value.map);
  if ('duration' in value) return formatDuration(value.duration);
  if ('date' in value) return new Date(value.date);
  if ('bytes' in value) return Buffer.from(value.bytes, 'base64');
  return null;
}

/** Parses NaN and infinities in Go's spelling. */
function numberOf(text: string): number {
  return Number(text.replace(/Inf$/, 'Infinity'));
}

/** Returns an object as the client does; a log shows its name. */
function referenceTo({ namespace, name }: Reference): unknown {
  return { kind: 'Foo', metadata: { name, ...(namespace && { namespace }) } };
}
