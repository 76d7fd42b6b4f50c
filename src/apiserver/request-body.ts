import { parse as parseYaml } from 'yaml';
import type { HttpRequest } from '../util/http.ts';
import type { ExpectedKind } from './protobuf/protobuf-body.ts';
import { PROTOBUF_TYPE, decodeBody, messageOfKind } from './protobuf/protobuf-body.ts';
import { NestingError, isObject, requireShallow } from './schema/json-value.ts';
import { badRequest, tooLarge, unsupportedMediaType } from './status-error.ts';

/** Of one request, in bytes. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024;

const BODY_TYPES = ['application/json', 'application/yaml'] as const;

/** The media type of the body, without parameters; JSON if the client did not say. */
export function contentType({ headers }: HttpRequest): string {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() || 'application/json';
}

/**
 * The body as a JSON value, from JSON or YAML, and for kinds of Go's from protobuf.
 *
 * @throws {StatusError} 400 if it cannot be read, 413 if it is too large, 415 if it is none of these
 */
export function readBody(request: HttpRequest, expected: ExpectedKind): unknown {
  const type = contentType(request);
  if (type === 'application/json') return readJson(request);
  if (type === 'application/yaml') return readYaml(request);
  const message = messageOfKind(expected);
  if (message && type === PROTOBUF_TYPE) {
    return shallow(() => decodeBody(bodyBytes(request), expected, message));
  }
  throw unsupportedMediaType(message ? [...BODY_TYPES, PROTOBUF_TYPE] : BODY_TYPES);
}

/** @throws {StatusError} as `readBody` does */
export function readObject(request: HttpRequest, expected: ExpectedKind): Record<string, unknown> {
  const value = readBody(request, expected);
  if (!isObject(value)) {
    throw badRequest(
      `the body of the request must be an object: got ${value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`}`,
    );
  }
  return value;
}

export function readJson(request: HttpRequest): unknown {
  return shallow(() => {
    const text = bodyText(request);
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      throw badRequest(`couldn't get version/kind; json parse error: ${cause.message}`);
    }
  });
}

/** JSON is YAML, so this reads both, JSON the fast way. Aliases are refused: a few lines can stand for gigabytes. */
export function readYaml(request: HttpRequest): unknown {
  return shallow(() => {
    const text = bodyText(request);
    const json = jsonIn(text);
    if (json !== undefined) return json;
    try {
      return parseYaml(text, { maxAliasCount: 0, merge: false, prettyErrors: false }) as unknown;
    } catch (cause) {
      if (!(cause instanceof Error)) throw cause;
      throw badRequest(`error decoding YAML: ${cause.message}`);
    }
  });
}

export function hasBody({ body }: HttpRequest): boolean {
  return body !== undefined && body.length > 0;
}

/** What most clients send as YAML is JSON; undefined if this is not. */
function jsonIn(text: string): unknown {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // Flow style is YAML, too.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function shallow(read: () => unknown): unknown {
  const value = read();
  try {
    requireShallow(value);
  } catch (cause) {
    if (!(cause instanceof NestingError)) throw cause;
    throw badRequest(cause.message);
  }
  return value;
}

function bodyText({ body = '' }: HttpRequest): string {
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  if (bytes > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
  return typeof body === 'string' ? body : new TextDecoder().decode(body);
}

function bodyBytes({ body = '' }: HttpRequest): Uint8Array {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
  return bytes;
}
