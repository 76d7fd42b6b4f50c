import { emptyBody } from '../../util/http.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { CompleteBody } from '../../util/complete-body.ts';
import { jsonText } from '../json/json-text.ts';
import { JSON_TYPE } from '../request/negotiation.ts';
import type { Connection } from '../operations/connection.ts';
import type { MessageFormat } from './websocket-request.ts';

/** A response of the server to any transport. */
export interface ServedResponse extends HttpResponse {
  /** How a WebSocket client gets the body. Absent if there is no other form than the plain response. */
  readonly messages?: MessageFormat;
  /** What the client is connected to after the protocol was changed. Absent if the response is a plain one. */
  readonly connection?: ServedConnection;
}

/** A connection that a listener serves after the protocol was changed. */
export interface ServedConnection {
  readonly connection: Connection;
  /** Called when the connection has ended, or the protocol was not changed. */
  readonly onEnd: () => void;
}

/** Compression of responses for the clients that accept it. */
export interface Compression {
  response(
    response: HttpResponse,
    request: Pick<HttpRequest, 'headers'>,
  ): HttpResponse | Promise<HttpResponse>;
  /** Compresses each piece by itself. */
  watch(response: HttpResponse, request: Pick<HttpRequest, 'headers'>): HttpResponse;
}

const NOT_CACHED = { 'cache-control': 'no-cache, private' } as const;

export function jsonResponse(
  status: number,
  value: object,
  warnings: readonly string[] = [],
  contentType: string = JSON_TYPE,
): HttpResponse {
  return completeResponse(status, `${jsonText(value)}\n`, contentType, warnings);
}

export function completeResponse(
  status: number,
  content: string | Uint8Array,
  contentType: string,
  warnings: readonly string[] = [],
): HttpResponse {
  return { status, headers: headersOf(contentType, warnings), body: new CompleteBody(content) };
}

export function textResponse(status: number, text: string): HttpResponse {
  return {
    status,
    headers: { ...NOT_CACHED, 'content-type': 'text/plain; charset=utf-8' },
    body: new CompleteBody(text),
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
  return { status: 204, headers: NOT_CACHED, body: emptyBody() };
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
