import { readFile } from 'node:fs/promises';
import { jsonIfValid } from '../util/json-value.ts';
import { isRecord, messageOf } from '../util/values.ts';
import { RECORDING_FORMAT, RECORDING_VERSION } from './format.ts';
import type { CacheLine, EndLine, Header, RecordingLine, RequestLine, SetLine } from './format.ts';

/** The file cannot be replayed. */
export class RecordingError extends Error {
  override readonly name = 'RecordingError';
}

/** A line, or the text of a line with an object, which is parsed when it is used. */
export type LazyLine =
  Exclude<RecordingLine, SetLine> | { readonly kind: 'text'; readonly text: string };

/** A recording in memory. */
export interface Recording {
  readonly header: Header;
  /** In the order in which they were recorded. */
  readonly lines: readonly LazyLine[];
  readonly caches: readonly CacheLine[];
  /** Ends of syncs by the number of the sync. */
  readonly ends: ReadonlyMap<number, EndLine>;
  /** Requests by the number of their sync, in the order in which they were sent. */
  readonly requests: ReadonlyMap<number, readonly RequestLine[]>;
  /** Number of lines that could not be read, without a last line that was cut off. */
  readonly unreadable: number;
  /** Whether the last line was cut off: the process ended without a stop. */
  readonly isCut: boolean;
}

/**
 * Reads a recording.
 *
 * @throws {RecordingError} if the file cannot be read, is no recording, or has another version
 */
export async function readRecording(file: string): Promise<Recording> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (cause) {
    throw new RecordingError(`Cannot read ${file}: ${messageOf(cause)}`, { cause });
  }
  const texts = linesOf(bytes);
  const header = headerOf(file, texts.next().value);
  const lines: LazyLine[] = [];
  const caches = new Map<number, CacheLine>();
  const ends = new Map<number, EndLine>();
  const requests = new Map<number, RequestLine[]>();
  let unreadable = 0;
  let isCut = false;
  for (const { text, isLast } of texts) {
    // Most lines have objects. Parsed, they need several times the memory.
    if (!isLast && text.startsWith('{"kind":"set"')) {
      lines.push({ kind: 'text', text });
      continue;
    }
    const line = parsed(text);
    if (!line) {
      if (isLast) isCut = true;
      else unreadable++;
      continue;
    }
    if (line.kind === 'set') lines.push({ kind: 'text', text });
    else lines.push(line);
    if (line.kind === 'cache') caches.set(line.id, line);
    if (line.kind === 'end') ends.set(line.sync, line);
    if (line.kind === 'request' && line.sync !== undefined) {
      requests.set(line.sync, [...(requests.get(line.sync) ?? []), line]);
    }
  }
  return { header, lines, caches: [...caches.values()], ends, requests, unreadable, isCut };
}

/** Returns a line as it is; that of a text, or undefined if it cannot be read. */
export function lineOf(line: LazyLine): RecordingLine | undefined {
  return line.kind === 'text' ? parsed(line.text) : line;
}

function parsed(text: string): RecordingLine | undefined {
  const line = jsonIfValid(text);
  const isLine =
    isRecord(line) && typeof line['kind'] === 'string' && typeof line['ms'] === 'number';
  return isLine ? (line as unknown as RecordingLine) : undefined;
}

interface TextLine {
  readonly text: string;
  /** Whether no line break follows. */
  readonly isLast: boolean;
}

/** Yields the lines that are not empty. A string of the whole file could be too long. */
function* linesOf(bytes: Buffer): Generator<TextLine, undefined, undefined> {
  let start = 0;
  while (start < bytes.length) {
    const at = bytes.indexOf(0x0a, start);
    const end = at === -1 ? bytes.length : at;
    if (end > start) yield { text: bytes.toString('utf8', start, end), isLast: at === -1 };
    start = end + 1;
  }
  return undefined;
}

function headerOf(file: string, first: TextLine | undefined): Header {
  const header = jsonIfValid(first?.text ?? '');
  if (!isRecord(header) || header['format'] !== RECORDING_FORMAT) {
    throw new RecordingError(
      `${file} is not a recording: record one with run --record=FILE, or with a FlightRecorder`,
    );
  }
  const { version } = header;
  if (version !== RECORDING_VERSION) {
    const { program } = header;
    const by = isRecord(program)
      ? ` by ${String(program['name'])} ${String(program['version'])}`
      : '';
    throw new RecordingError(
      `${file} was recorded${by} in version ${String(version)} of the format, and this program reads version ${RECORDING_VERSION}: replay it with a program that has that version`,
    );
  }
  return header as unknown as Header;
}
