import { ApiError } from '../api/api-error.ts';

/**
 * Maximum nesting of objects and arrays. Kubernetes' own kinds stay below 20 levels. Recursive functions such
 * as structuredClone and JSON.stringify fail at a few thousand.
 */
export const MAX_DEPTH = 100;

/** Stands for every element of an array in a `JsonPath`. */
export const ELEMENTS = Symbol('elements');

/** Path from the root of a JSON text to a member: names, and `ELEMENTS` for array elements. */
export type JsonPath = readonly (string | typeof ELEMENTS)[];

export interface JsonScan {
  /** Nesting depth of the text without the parts that `cuts` removes. */
  readonly depth: number;
  /** Parts to remove, as pairs of offsets: the first byte, and the byte after the last. */
  readonly cuts: readonly number[];
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** `[` is `{` without this bit, and `]` is `}` without it. */
const BRACE_BIT = 0x20;

/**
 * Parses JSON from a server. Arrays at the end of `leaveOut` may be missing from the result, because skipping
 * an array takes half as long as parsing it.
 *
 * @param what subject of error messages
 * @throws {ApiError} of kind `malformed` if the text is not JSON or is nested too deeply. The message does not
 *   quote the text, which may be a Secret.
 */
export function parseJson(bytes: Buffer, what: string, leaveOut?: JsonPath): unknown {
  const scan = leaveOut && scanJson(bytes, leaveOut);
  if (scan ? scan.depth > MAX_DEPTH : isTooDeep(bytes)) {
    throw malformed(`${what} is nested deeper than ${MAX_DEPTH} levels`);
  }
  try {
    return JSON.parse(scan ? textWithout(bytes, scan) : bytes.toString('utf8'));
  } catch {
    throw malformed(`${what} is incomplete or malformed JSON (${bytes.length} bytes)`);
  }
}

export function malformed(message: string): ApiError {
  return new ApiError({ kind: 'malformed', message });
}

function textWithout(bytes: Buffer, { cuts }: JsonScan): string {
  let text = '';
  let from = 0;
  for (let at = 0; at < cuts.length; at += 2) {
    text += bytes.toString('utf8', from, cuts[at]);
    from = cuts[at + 1] ?? bytes.length;
  }
  return text + bytes.toString('utf8', from);
}

/**
 * Reports whether a text is nested too deeply to be parsed. Depth 101 needs 101 opening characters. A native
 * search counts them; only texts with more are scanned byte by byte. This costs a few per cent of the parse.
 */
function isTooDeep(bytes: Buffer): boolean {
  return hasManyOpenings(bytes) && isDeeper(bytes, MAX_DEPTH);
}

function hasManyOpenings(bytes: Buffer): boolean {
  let left = MAX_DEPTH;
  for (const sign of [OPEN_BRACE, OPEN_BRACKET]) {
    for (let at = bytes.indexOf(sign); at !== -1; at = bytes.indexOf(sign, at + 1)) {
      if (--left < 0) return true;
    }
  }
  return false;
}

function isDeeper(bytes: Buffer, limit: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (quoted) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) {
      quoted = true;
    } else if (isOpening(byte)) {
      if (++depth > limit) return true;
    } else if (isClosing(byte)) {
      depth--;
    }
  }
  return false;
}

/**
 * Scans the structure of a JSON text in one pass without parsing it, and finds the arrays at the end of
 * `path`, which then need not be parsed.
 *
 * It recognizes the compact form that servers write. In other forms (with spaces between a name and its
 * value) it finds nothing. Malformed JSON stays malformed without the cuts, except for errors inside them.
 */
export function scanJson(bytes: Uint8Array, path: JsonPath): JsonScan {
  const cuts: number[] = [];
  let depth = 0;
  let deepest = 0;
  /** Number of steps of `path` that lead to the current position; it stays below `depth`. */
  let steps = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      const end = endOfString(bytes, at);
      const step = steps === depth - 1 ? path[steps] : undefined;
      if (typeof step !== 'string' || !isName(bytes, at, end, step)) {
        at = end;
      } else if (steps < path.length - 1) {
        at = end + 1;
        if (!isOpening(bytes[end + 2])) continue;
        at++;
        steps++;
        depth++;
        if (depth > deepest) deepest = depth;
      } else {
        const behind = bytes[end + 2] === OPEN_BRACKET ? endOfValue(bytes, end + 2) : -1;
        if (behind === -1) {
          at = end;
        } else if (bytes[behind] === COMMA) {
          cuts.push(at, behind + 1);
          at = behind;
        } else {
          cuts.push(bytes[at - 1] === COMMA ? at - 1 : at, behind);
          at = behind - 1;
        }
      }
    } else if (isOpening(byte)) {
      if (steps === depth - 1 && path[steps] === ELEMENTS) steps++;
      if (++depth > deepest) deepest = depth;
    } else if (isClosing(byte)) {
      depth--;
      if (steps > 0 && steps >= depth) steps = depth - 1;
    }
  }
  return { depth: deepest, cuts };
}

function isOpening(byte: number | undefined): boolean {
  return ((byte ?? 0) | BRACE_BIT) === OPEN_BRACE;
}

function isClosing(byte: number): boolean {
  return (byte | BRACE_BIT) === CLOSE_BRACE;
}

/** Reports whether the string from `start` to `end` is `name` (ASCII) and a colon follows. */
function isName(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  if (end - start - 1 !== name.length || bytes[end + 1] !== COLON) return false;
  for (let at = 0; at < name.length; at++) {
    if (bytes[start + 1 + at] !== name.charCodeAt(at)) return false;
  }
  return true;
}

/** Returns the offset of the quote that ends the string at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) break;
    if (byte === BACKSLASH) at++;
  }
  return at;
}

/** Returns the offset after the object or array at `start`; -1 if it does not end. */
function endOfValue(bytes: Uint8Array, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (isOpening(byte)) depth++;
    else if (isClosing(byte) && --depth === 0) return at + 1;
  }
  return -1;
}
