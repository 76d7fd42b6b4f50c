import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Source position of a log line. */
export interface Caller {
  /** Base name of the file: `reflector.ts`. */
  readonly file: string;
  /** Name of its folder. */
  readonly folder: string;
  readonly line: number;
}

/** Suffix of the file beside a bundle that maps its positions to sources: `bundle.mjs.callers.json`. */
export const CALLERS_SUFFIX = '.callers.json';

const UNKNOWN: Caller = { file: '???', folder: '???', line: 1 };

/** Callers by position; limited by the number of log statements. */
const callers = new Map<string, Caller>();

/** Source positions of compiled files, by URL. */
const origins = new Map<string, Origins>();

/** Maps a position of a compiled file to its source. */
type Origins = (line: number, column: number) => Caller | undefined;

/**
 * Returns the caller of the function that calls this one. Positions in compiled files are mapped to their
 * sources by files written at build time. Only two frames of the stack are read, without formatting it, and
 * each position is resolved once.
 */
export function callerOfCaller(): Caller {
  const site = secondFrame();
  const url = site?.getFileName();
  const line = site?.getLineNumber();
  const column = site?.getColumnNumber();
  if (!url || !line || !column) return UNKNOWN;
  const place = `${url}:${line}:${column}`;
  const known = callers.get(place);
  if (known) return known;
  const caller = originsOf(url)?.(line, column) ?? callerIn(url, line);
  callers.set(place, caller);
  return caller;
}

/**
 * Formatting the stack is slow, and with `--enable-source-maps` Node.js would load the whole source map,
 * which takes tens of megabytes.
 */
function secondFrame(): NodeJS.CallSite | undefined {
  const holder: { stack?: unknown } = {};
  const limit = Error.stackTraceLimit;
  const prepare: unknown = Reflect.get(Error, 'prepareStackTrace');
  Error.stackTraceLimit = 2;
  Error.prepareStackTrace = structured;
  Error.captureStackTrace(holder, callerOfCaller);
  const { stack } = holder;
  Error.stackTraceLimit = limit;
  Reflect.set(Error, 'prepareStackTrace', prepare);
  return isSites(stack) ? stack[1] : undefined;
}

function structured(_error: Error, sites: NodeJS.CallSite[]): NodeJS.CallSite[] {
  return sites;
}

/** Returns whether `structured` was used. A program can forbid to set it. */
function isSites(stack: unknown): stack is readonly NodeJS.CallSite[] {
  return Array.isArray(stack);
}

function callerIn(path: string, line: number): Caller {
  const [file, folder] = path.split(/[/\\]/).reverse();
  return file ? { file, folder: folder ?? '', line } : UNKNOWN;
}

function originsOf(url: string): Origins | undefined {
  if (!url.startsWith('file://') || !/\.[cm]?js$/.test(url)) return undefined;
  let known = origins.get(url);
  if (!known) {
    known = firstOf(placesBeside(url), sourceMapBeside(url));
    origins.set(url, known);
  }
  return known;
}

function firstOf(quick: Origins, thorough: Origins): Origins {
  return (line, column) => quick(line, column) ?? thorough(line, column);
}

/** Reads the positions that `hack/bundle.ts` wrote: `{"12:345":"cache/reflector.ts:110"}`. */
function placesBeside(url: string): Origins {
  const places = beside(
    `${url}${CALLERS_SUFFIX}`,
    (text) => new Map<string, unknown>(Object.entries(JSON.parse(text))),
  );
  return (line, column) => {
    const place = places?.get(`${line}:${column}`);
    const [, path, number] = /^(.*):(\d+)$/.exec(typeof place === 'string' ? place : '') ?? [];
    return path === undefined ? undefined : callerIn(path, Number(number));
  };
}

/** Reads the source map when a position is not known otherwise. */
function sourceMapBeside(url: string): Origins {
  let map: { readonly read: SourceMap | undefined } | undefined;
  return (line, column) => {
    map ??= { read: beside(`${url}.map`, (text) => new SourceMap(JSON.parse(text))) };
    const origin = map.read?.findOrigin(line, column);
    return origin && 'fileName' in origin
      ? callerIn(origin.fileName, origin.lineNumber)
      : undefined;
  };
}

/** If the file is missing or invalid, the compiled position is used. */
function beside<T>(url: string, read: (text: string) => T): T | undefined {
  try {
    return read(readFileSync(fileURLToPath(url), 'utf8'));
  } catch {
    return undefined;
  }
}
