import { ApiError, kindOfCode } from '../api/api-error.ts';
import type { HttpResponse, ResponseBody } from '../util/http.ts';
import { malformed, parseJson } from './json.ts';
import { shareOfHeap } from '../util/heap-limit.ts';
import { isRecord } from '../util/values.ts';

/**
 * Maximum size of a response body: half of the heap limit, and 256 MiB because V8 strings cannot be much longer. Larger
 * lists need pages.
 */
const MAX_BODY_BYTES = shareOfHeap(1 / 2, { min: 16 * 1024 ** 2, max: 256 * 1024 ** 2 });

/**
 * Returns the body, as a promise if it has not arrived completely.
 *
 * @throws {ApiError} of kind `malformed` if the body is longer than `limit` bytes
 */
export function readBody(
  { body }: HttpResponse,
  limit: number = MAX_BODY_BYTES,
): Buffer | Promise<Buffer> {
  const received = body.received?.();
  if (!received) return readStream(body, limit);
  if (received.length > limit) throw tooLong(limit);
  return asBuffer(received);
}

async function readStream(body: ResponseBody, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > limit) throw tooLong(limit);
    chunks.push(chunk);
  }
  const [first] = chunks;
  return first && chunks.length === 1 ? asBuffer(first) : Buffer.concat(chunks, length);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function tooLong(limit: number): ApiError {
  return malformed(`The response is longer than ${limit} bytes; request pages (limit=500)`);
}

/** Parses the JSON body of a successful response to `call` (`GET https://…`). */
export function parseResponse<R>(
  response: HttpResponse,
  body: Buffer,
  call: string,
  parse: (bytes: Buffer, what: string) => R,
): R {
  if (!isJson(response)) throw notAStatus(response, body, call, 'malformed');
  return parse(body, `The response to ${call}`);
}

/** Returns the error of an unsuccessful response, with the server's message if the body is a Status. */
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

/** Returns `Retry-After` in milliseconds, if it is a whole number of seconds; a date is ignored. */
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
 * Returns the error kind of a response without a Status. HTML comes from an intermediary such as a proxy: its
 * 404 must not mean "the object does not exist", and its 409 is no conflict. The codes for overload, internal
 * failures and wrong credentials keep their meaning.
 */
function kindWithoutStatus(response: HttpResponse): ApiError['kind'] {
  const { status } = response;
  const isMeaningful = status === 401 || status === 403 || status === 429 || status >= 500;
  return status < 400 || (isHtml(response) && !isMeaningful) ? 'malformed' : kindOfCode(status);
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
  const excerpt = isJson(response) ? '' : excerptOf(body);
  const content = location ? `redirect to ${originOf(location)}` : excerpt;
  const end = content.endsWith('…') ? '' : '.';
  const hint =
    isHtml(response) || location
      ? ' Check for a proxy or login page between client and server.'
      : '';
  const message = `${call}: HTTP ${status}, ${type}, not a Kubernetes Status${content && `: ${content}`}${end}${hint}`;
  return new ApiError({ kind, message, code: status, retryAfterMs });
}

/** Returns the first 120 characters of a page or text, on one line, without markup. */
function excerptOf(body: Buffer): string {
  const text = body
    .toString('utf8', 0, 4096)
    .replaceAll(/<[^<>]*>/g, ' ')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

/** Returns the origin only, since path and query of a login page can contain tokens. */
function originOf(location: string): string {
  return URL.parse(location)?.origin ?? 'a relative address';
}
