import { ApiError } from '../api/api-error.ts';

/**
 * Maximum nesting of objects and arrays. Kubernetes' own kinds stay below 20 levels. Recursive functions such
 * as structuredClone and JSON.stringify fail at a few thousand.
 */
export const MAX_JSON_DEPTH = 100;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const OPEN_BRACKET = 0x5b;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const COMMA = 0x2c;
export const COLON = 0x3a;
/** `[` is `{` without this bit, and `]` is `}` without it. */
const BRACE_BIT = 0x20;

/**
 * Parses JSON from a server.
 *
 * @param what subject of error messages
 * @throws {ApiError} of kind `malformed` if the text is not JSON or is nested too deeply. The message does not
 *   quote the text, which may be a Secret.
 */
export function parseJson(bytes: Buffer, what: string): unknown {
  if (isTooDeep(bytes)) throw malformed(`${what} is nested deeper than ${MAX_JSON_DEPTH} levels`);
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw malformed(`${what} is incomplete or malformed JSON (${bytes.length} bytes)`);
  }
}

/**
 * Writes JSON for a server. A lone surrogate, which UTF-8 cannot represent, becomes U+FFFD, as which a Kubernetes API
 * server stores it; other servers reject the request.
 */
export function encodeJson(value: unknown): string {
  const text = JSON.stringify(value);
  // JSON.stringify escapes lone surrogates only.
  if (!text.includes('\\ud')) return text;
  return text.replaceAll(/\\(?:u(d[0-9a-f]{3})|.)/g, (escape, surrogate?: string) =>
    surrogate ? '\ufffd' : escape,
  );
}

export function malformed(message: string): ApiError {
  return new ApiError({ kind: 'malformed', message });
}

/**
 * Reports whether a text is nested too deeply to be parsed. Depth 101 needs 101 opening characters. A native
 * search counts them; only texts with more are scanned byte by byte. This costs a few per cent of the parse.
 */
export function isTooDeep(bytes: Buffer): boolean {
  return hasManyOpenings(bytes) && structureOf(bytes).depth > MAX_JSON_DEPTH;
}

function hasManyOpenings(bytes: Buffer): boolean {
  let left = MAX_JSON_DEPTH;
  for (const sign of [OPEN_BRACE, OPEN_BRACKET]) {
    for (let at = bytes.indexOf(sign); at !== -1; at = bytes.indexOf(sign, at + 1)) {
      if (--left < 0) return true;
    }
  }
  return false;
}

/** Structure of a JSON text. */
export interface JsonStructure {
  /** Nesting depth. */
  readonly depth: number;
  /** Number of members of all objects, with duplicates. */
  readonly members: number;
  /** Number of opening brackets, colons and commas outside of strings. */
  readonly marks: number;
}

/** Scans a JSON text, which can be malformed, without parsing it. */
export function structureOf(bytes: Buffer): JsonStructure {
  let [open, depth, openings, members, commas] = [0, 0, 0, 0, 0];
  let quoted = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (quoted) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) {
      quoted = true;
    } else if (byte === COMMA) {
      commas++;
    } else if (byte === COLON) {
      members++;
    } else if (isOpening(byte)) {
      openings++;
      if (++open > depth) depth = open;
    } else if (isClosing(byte)) {
      open--;
    }
  }
  return { depth, members, marks: openings + members + commas };
}

function isOpening(byte: number | undefined): boolean {
  return ((byte ?? 0) | BRACE_BIT) === OPEN_BRACE;
}

function isClosing(byte: number): boolean {
  return (byte | BRACE_BIT) === CLOSE_BRACE;
}
