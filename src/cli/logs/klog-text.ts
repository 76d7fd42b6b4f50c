import type { Caller } from './caller.ts';
import { withoutControls } from '../../util/printable.ts';
import { escapeUnprintable, goQuote } from '../../util/go-quote.ts';
import type { LogValue } from './log-value.ts';
import { ObjectReference } from './log-value.ts';

/** Log line before it is formatted. */
export interface LogRecord {
  readonly severity: 'info' | 'error';
  readonly message: string;
  /** Fields in the order of the line. */
  readonly fields: ReadonlyMap<string, LogValue>;
  /** Verbosity of an info line. */
  readonly verbosity: number;
  readonly caller: Caller;
  /** Milliseconds since the Unix epoch, with a fraction of microseconds. */
  readonly timeMs: number;
}

/** Options of `klogText`. */
export interface KlogTextOptions {
  readonly pid: number;
  /** Whether to omit everything before the message. */
  readonly skipHeaders: boolean;
  /** Whether to write the folder before the file name. */
  readonly addDirHeader: boolean;
}

/**
 * Formats a record as klog v2 does, with the final line break:
 *
 *     I0530 07:57:55.721030    4866 controller.go:63] "Updated Deployment" foo="default/web" replicas=3
 *
 * Unlike klog, it escapes control characters in values with several lines, in members of objects and
 * lists, and in names of objects, because they could control a terminal.
 */
export function klogText(record: LogRecord, options: KlogTextOptions): string {
  let line = options.skipHeaders ? '' : header(record, options);
  line += goQuote(record.message);
  for (const [key, value] of record.fields) line += ` ${key}=${valueText(value)}`;
  return `${line}\n`;
}

/** Returns the header, with local time and the process ID in seven columns. */
function header({ severity, timeMs, caller }: LogRecord, options: KlogTextOptions): string {
  const letter = severity === 'error' ? 'E' : 'I';
  const micros = Math.floor(timeMs * 1000);
  const time = new Date(Math.floor(micros / 1000));
  const date = pad(time.getMonth() + 1, 2) + pad(time.getDate(), 2);
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((part) => pad(part, 2))
    .join(':');
  const fraction = pad(micros % 1_000_000, 6);
  const pid = String(options.pid).padStart(7);
  const file = options.addDirHeader ? `${caller.folder}/${caller.file}` : caller.file;
  return `${letter}${date} ${clock}.${fraction} ${pid} ${file}:${caller.line}] `;
}

/** Returns the text of a value after its key and `=`. */
export function valueText(value: LogValue): string {
  if (typeof value === 'string') return value.includes('\n') ? linesText(value) : goQuote(value);
  if (value instanceof ObjectReference) return goQuote(value.toString());
  return isReferences(value) ? `[${value.map(valueText).join(',')}]` : goJson(value);
}

function isReferences(value: LogValue): value is readonly ObjectReference[] {
  return Array.isArray(value) && value.every((each) => each instanceof ObjectReference);
}

/**
 * Returns a value with several lines in klog's format: lines are indented by a tab between `<` and ` >`, and
 * a final line break is omitted.
 */
function linesText(text: string): string {
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return `<\n${lines.map((line) => `\t${visible(line)}\n`).join('')} >`;
}

function visible(line: string): string {
  return line.replaceAll(/[^\P{C}\t]|[\u2028\u2029]/gu, escapeUnprintable);
}

/** Returns JSON as Go's encoder writes it, with special characters of HTML and JavaScript escaped. */
function goJson(value: LogValue): string {
  return withoutControls(JSON.stringify(value)).replaceAll(
    /[<>&]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
