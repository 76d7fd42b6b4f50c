import { ApiError, kindOfCode } from '../api/api-error.ts';
import type { HttpResponse } from '../util/http.ts';
import { malformed, parseJson } from './json.ts';
import { isRecord } from '../util/values.ts';

/** Above this, an answer is refused: lists are to be paged. Strings of V8 end soon after. */
const MAX_BODY_BYTES = 256 * 1024 * 1024;

/** @throws {ApiError} of kind `malformed` if the body is longer than `limit` bytes */
export async function readBody(
  response: HttpResponse,
  limit: number = MAX_BODY_BYTES,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.length;
    if (length > limit) {
      throw malformed(`The answer is longer than ${limit} bytes; ask for pages (limit=500)`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** The JSON of a successful answer to `call` (`GET https://…`). */
export function parseResponse(
  response: HttpResponse,
  body: Buffer,
  call: string,
  parse: (bytes: Buffer, what: string) => unknown = parseJson,
): unknown {
  if (!isJson(response)) throw notAStatus(response, body, call, 'malformed');
  return parse(body, `The answer to ${call}`);
}

/** The error an unsuccessful answer stands for: the server's own words where it sent a Status. */
export function errorFromResponse(response: HttpResponse, body: Buffer, call: string): ApiError {
  const retryAfterMs = retryAfterOf(response);
  const status = isJson(response) ? parseStatus(body) : undefined;
  if (!status) {
    return notAStatus(response, body, call, kindWithoutStatus(response), retryAfterMs);
  }
  const error = ApiError.fromStatus(status, response.status);
  if (retryAfterMs === undefined) return error;
  const { kind, message, code, reason, details } = error;
  return new ApiError({ kind, message, code, reason, details, retryAfterMs });
}

/** `Retry-After` in milliseconds, if it is a whole number of seconds; a date is ignored. */
export function retryAfterOf(response: HttpResponse): number | undefined {
  const header = response.headers['retry-after']?.trim() ?? '';
  return /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;
}

export function isSuccess(response: HttpResponse): boolean {
  return response.status >= 200 && response.status < 300;
}

function parseStatus(body: Buffer): Record<string, unknown> | undefined {
  try {
    const parsed = parseJson(body, 'The Status');
    return isRecord(parsed) && parsed['kind'] === 'Status' ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isJson(response: HttpResponse): boolean {
  return /[/+]json\b/.test(response.headers['content-type'] ?? 'application/json');
}

function isHtml(response: HttpResponse): boolean {
  return /\bhtml\b/.test(response.headers['content-type'] ?? '');
}

/**
 * Whose error is it? A page of HTML comes from something in between: its 404 must not be taken for
 * "this object does not exist", nor its 409 for a conflict. That it is overloaded, failing, or wants
 * other credentials, it may say.
 */
function kindWithoutStatus(response: HttpResponse): ApiError['kind'] {
  const { status } = response;
  const believable = status === 401 || status === 403 || status === 429 || status >= 500;
  return status < 400 || (isHtml(response) && !believable) ? 'malformed' : kindOfCode(status);
}

function notAStatus(
  response: HttpResponse,
  body: Buffer,
  call: string,
  kind: ApiError['kind'],
  retryAfterMs?: number,
): ApiError {
  const { status, headers } = response;
  const type = headers['content-type'] ?? 'no content type';
  const location = headers['location'];
  const words = isJson(response) ? '' : excerptOf(body);
  const said = location ? `redirect to ${originOf(location)}` : words;
  const hint = isHtml(response) || location ? ' Is there a proxy or login page in between?' : '';
  const message = `${call}: HTTP ${status}, ${type}, not a Kubernetes Status${said && `: ${said}`}${said.endsWith('…') ? '' : '.'}${hint}`;
  return new ApiError({ kind, message, code: status, retryAfterMs });
}

/** A few words of a page or text, on one line, without markup. */
function excerptOf(body: Buffer): string {
  const text = body
    .toString('utf8', 0, 4096)
    .replaceAll(/<[^<>]*>/g, ' ')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

/** Without path and query: a login page's may carry tokens. */
function originOf(location: string): string {
  return URL.parse(location)?.origin ?? 'a relative address';
}
