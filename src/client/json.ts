import { ApiError } from '../api/api-error.ts';
import { scanJson } from './json-scan.ts';
import type { JsonPath, JsonScan } from './json-scan.ts';

/**
 * Objects and arrays may nest this deep. Kubernetes' own kinds stay below 20; recursive code
 * elsewhere (structuredClone, JSON.stringify) fails from a few thousand levels on.
 */
export const MAX_DEPTH = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** `[` is `{` without this bit, and `]` is `}` without it. */
const BRACE_BIT = 0x20;

/**
 * Parses what a server sent. `what` names it in the error. Arrays at the end of `leaveOut` may or
 * may not be there: an array that nobody wants is found in half the time it takes to parse.
 *
 * @throws {ApiError} of kind `malformed` if it is not JSON or nests too deep. The error carries
 *   nothing of the text, which may be a Secret's.
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
 * Before parsing, so that nothing deep ever exists. Two steps keep it at a few per cent of the
 * parse: depth 101 takes 101 opening signs, which a native search counts; most objects have fewer,
 * and only the others are walked byte by byte.
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
    } else if ((byte | BRACE_BIT) === OPEN_BRACE) {
      if (++depth > limit) return true;
    } else if ((byte | BRACE_BIT) === CLOSE_BRACE) {
      depth--;
    }
  }
  return false;
}
