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

/** Where a bundle says of its places what they are: beside it, `bundle.mjs.callers.json`. */
export const CALLERS_SUFFIX = '.callers.json';

const UNKNOWN: Caller = { file: '???', folder: '???', line: 1 };

/** One entry for each place that ever logged; its size is that of the program. */
const callers = new Map<string, Caller>();

/** What is known of compiled files, by URL. */
const origins = new Map<string, Origins>();

/** Where the places of a compiled file come from. */
type Origins = (line: number, column: number) => Caller | undefined;

/**
 * The caller of the function that calls this one. Compiled files are traced back to their source,
 * by what was written beside them when they were built. The stack is read each time, two frames of
 * it and not as text; what a frame means is looked up once.
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
 * Node would make a text of the stack, and under `--enable-source-maps` read the source map of
 * the program to do so: tens of megabytes, for a line number.
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

/** What `structured` made, unless somebody has forbidden to set it. */
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

/** What `hack/bundle.ts` wrote of the places that log: `{"12:345":"cache/reflector.ts:110"}`. */
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

/** The source map, read once there is a place that is not known otherwise. */
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

/** A missing or broken file costs the original line number, never the log line. */
function beside<T>(url: string, read: (text: string) => T): T | undefined {
  try {
    return read(readFileSync(fileURLToPath(url), 'utf8'));
  } catch {
    return undefined;
  }
}
