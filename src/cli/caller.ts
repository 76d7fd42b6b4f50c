import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

/** The place in the source that a log line comes from. */
export interface Caller {
  /** Base name of the file: `reflector.ts`. */
  readonly file: string;
  /** Name of the folder it is in. */
  readonly folder: string;
  readonly line: number;
}

const UNKNOWN: Caller = { file: '???', folder: '???', line: 1 };

/** One entry for each place that ever logged; its size is that of the program. */
const callers = new Map<string, Caller>();

const sourceMaps = new Map<string, SourceMap | undefined>();

/**
 * The caller of the function that calls this one. Compiled files are traced back through the source
 * map beside them. The stack is read each time, two frames of it; what a frame means is looked up
 * once.
 */
export function callerOfCaller(): Caller {
  const frame = secondFrame();
  if (frame === undefined) return UNKNOWN;
  const known = callers.get(frame);
  if (known) return known;
  const caller = resolve(frame);
  callers.set(frame, caller);
  return caller;
}

function secondFrame(): string | undefined {
  const holder: { stack?: unknown } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 2;
  Error.captureStackTrace(holder, callerOfCaller);
  const { stack } = holder;
  Error.stackTraceLimit = limit;
  return typeof stack === 'string' ? stack.split('\n')[2] : undefined;
}

/** Reads `    at Reflector.run (file:///app/dist/cache/reflector.js:10:5)`. */
function resolve(frame: string): Caller {
  const place = frame.trimEnd().replace(/\)$/, '');
  const match = /^(.*):(\d+):(\d+)$/.exec(place);
  const [, before = '', line = '1', column = '1'] = match ?? [];
  const url = before.slice(before.search(/file:\/\/|\/|[A-Za-z]:\\/));
  const origin = sourceMapOf(url)?.findOrigin(Number(line), Number(column));
  return origin && 'fileName' in origin
    ? callerIn(origin.fileName, origin.lineNumber)
    : callerIn(url, Number(line));
}

function callerIn(path: string, line: number): Caller {
  const [file, folder] = path.split(/[/\\]/).reverse();
  return file ? { file, folder: folder ?? '', line } : UNKNOWN;
}

function sourceMapOf(url: string): SourceMap | undefined {
  if (!url.startsWith('file://') || !/\.[cm]?js$/.test(url)) return undefined;
  if (!sourceMaps.has(url)) sourceMaps.set(url, readSourceMap(url));
  return sourceMaps.get(url);
}

/** A missing or broken map costs the original line number, never the log line. */
function readSourceMap(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), 'utf8')));
  } catch {
    return undefined;
  }
}
