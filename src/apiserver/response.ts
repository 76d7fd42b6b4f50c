import type { HttpResponse } from '../util/http.ts';
import { jsonText } from './json-text.ts';
import { JSON_TYPE } from './negotiation.ts';
import type { MessageFormat } from './websocket.ts';

/** A response of the server to any transport. */
export interface ServedResponse extends HttpResponse {
  /** How a WebSocket client gets the body. Absent if there is no other form than the plain response. */
  readonly messages?: MessageFormat;
}

const encoder = new TextEncoder();

const NOT_CACHED = { 'cache-control': 'no-cache, private' } as const;

export function jsonResponse(
  status: number,
  value: object,
  warnings: readonly string[] = [],
  contentType: string = JSON_TYPE,
): HttpResponse {
  return bytesResponse(status, encoder.encode(`${jsonText(value)}\n`), contentType, warnings);
}

export function bytesResponse(
  status: number,
  bytes: Uint8Array,
  contentType: string,
  warnings: readonly string[] = [],
): HttpResponse {
  return { status, headers: headersOf(contentType, warnings), body: once(bytes) };
}

export function textResponse(status: number, text: string): HttpResponse {
  return {
    status,
    headers: { ...NOT_CACHED, 'content-type': 'text/plain; charset=utf-8' },
    body: once(encoder.encode(text)),
  };
}

export function streamResponse(
  body: AsyncIterable<Uint8Array>,
  contentType: string,
  warnings: readonly string[] = [],
): HttpResponse {
  return { status: 200, headers: headersOf(contentType, warnings), body };
}

export function emptyResponse(): HttpResponse {
  return { status: 204, headers: NOT_CACHED, body: nothing() };
}

function headersOf(contentType: string, warnings: readonly string[]): Record<string, string> {
  return {
    ...NOT_CACHED,
    'content-type': contentType,
    ...(warnings.length > 0 && {
      warning: shownWarnings(warnings).map(warningHeader).join(', '),
    }),
  };
}

/** Returns a body of one chunk. */
async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}

/** Maximum characters of all warnings in a response; longer ones are truncated, as upstream. */
const MAX_WARNINGS = 4 * 1024;
const MAX_WARNING = 256;

/** Removes duplicate warnings; truncates or omits warnings that are too long for a header. */
function shownWarnings(warnings: readonly string[]): readonly string[] {
  const texts = [...new Set(warnings)];
  if (texts.reduce((total, { length }) => total + length, 0) <= MAX_WARNINGS) return texts;
  const shown: string[] = [];
  let characters = 0;
  for (const text of texts) {
    if (characters >= MAX_WARNINGS) break;
    const short = text.slice(0, MAX_WARNING);
    shown.push(short);
    characters += short.length;
  }
  return shown;
}

/** Formats a warning by RFC 7234: `299 - "text"`, with valid header characters only. */
function warningHeader(text: string): string {
  const printable = text.replaceAll(/[^\u0020-\u007e]/g, '?');
  return `299 - "${printable.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
