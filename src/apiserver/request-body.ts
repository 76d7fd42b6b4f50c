import { YAMLException, loadAll } from 'js-yaml';
import type { HttpRequest } from '../util/http.ts';
import { inspectJson, goTypeOf } from './go-json.ts';
import type { ExpectedKind } from './protobuf/protobuf-body.ts';
import { PROTOBUF_TYPE, decodeBody, messageOfKind } from './protobuf/protobuf-body.ts';
import { MAX_DEPTH, NestingError, requireShallow } from './schema/json-value.ts';
import { isRecord } from '../util/values.ts';
import type { StatusError } from './status-error.ts';
import { badRequest, tooLarge, unsupportedMediaType } from './status-error.ts';

/** Maximum body size of a request, in bytes. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024;

export function bodyTooLarge(): StatusError {
  return tooLarge(`limit is ${MAX_BODY_BYTES}`);
}

/** A request whose body may not be received yet. */
export interface IncomingRequest extends HttpRequest {
  /** The client sent HEAD: it gets the headers of the response to GET. */
  readonly isHead?: boolean;
  /**
   * Receives the body. The handler calls it once, after authorization, so that bodies of rejected
   * requests need no memory.
   */
  readonly receiveBody?: () => Promise<Uint8Array>;
}

/**
 * Returns the request with its body.
 *
 * @throws {StatusError} 413 if the body is too large
 */
export async function withBody({
  receiveBody,
  isHead: _isHead,
  ...request
}: IncomingRequest): Promise<HttpRequest> {
  if (!receiveBody || request.method === 'GET') return request;
  const body = await receiveBody();
  return body.byteLength > 0 ? { ...request, body } : request;
}

export const APPLY_PATCH = 'application/apply-patch+yaml';

const BODY_TYPES = ['application/json', 'application/yaml'] as const;

/** Length of the excerpt of a malformed body in messages, in characters. */
const EXCERPT = 30;

/** The Go type that upstream decodes an object's identity to, which its messages contain. */
const IDENTITY =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/** Returns the media type of the body without parameters; JSON by default. */
export function contentType({ headers }: HttpRequest): string {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() || 'application/json';
}

/** Whether a media type is an apply patch, in any encoding. */
export function isApplyPatch(type: string): boolean {
  return type === APPLY_PATCH || type === 'application/apply-patch+cbor';
}

/**
 * Parses the body to a JSON object, from JSON or YAML, for built-in kinds also from protobuf.
 *
 * @throws {StatusError} 400 if it is malformed, 413 if it is too large, 415 for other media types
 */
export function readObject(request: HttpRequest, expected: ExpectedKind): Record<string, unknown> {
  const type = contentType(request);
  const message = messageOfKind(expected);
  if (message && type === PROTOBUF_TYPE) {
    return shallow(() => decodeBody(bodyBytes(request), expected, message));
  }
  if (type !== 'application/json' && type !== 'application/yaml') {
    throw unsupportedMediaType(message ? [...BODY_TYPES, PROTOBUF_TYPE] : BODY_TYPES);
  }
  const text = bodyText(request);
  const refuse = (why: string) => unrecognized(expected, why, text);
  const value = shallow(() =>
    type === 'application/json'
      ? jsonOf(text, (why) => refuse(`couldn't get version/kind; json parse error: ${why}`))
      : yamlOf(text, (why) => refuse(`yaml: ${why}`)),
  );
  if (isRecord(value)) return value;
  throw refuse(
    `couldn't get version/kind; json parse error: json: cannot unmarshal ${goTypeOf(value)} into Go value of type ${IDENTITY}`,
  );
}

/**
 * Parses the body of a JSON patch or a merge patch.
 *
 * @throws {StatusError} 400 if it is malformed, 413 if it is too large
 */
export function readJsonPatch(request: HttpRequest): unknown {
  const refuse = () => badRequest('invalid JSON patch');
  return shallow(() => jsonOf(bodyText(request), refuse));
}

/** Parses the body of a strategic merge patch, whose error messages have no prefix. */
export function readStrategicPatch(request: HttpRequest): unknown {
  return shallow(() => jsonOf(bodyText(request), badRequest));
}

/** Parses the body of an apply patch: YAML, of which JSON is a subset. */
export function readApplyPatch(request: HttpRequest): unknown {
  const refuse = (why: string) =>
    badRequest(`error decoding patch: error converting YAML to JSON: ${why}`);
  return shallow(() => yamlOf(bodyText(request), refuse));
}

/** Returns the paths of duplicate fields in a JSON body. The last value counts. */
export function duplicateFields(request: HttpRequest): readonly string[] {
  return contentType(request) === 'application/json'
    ? inspectJson(bodyText(request)).duplicates
    : [];
}

export function hasBody({ body }: HttpRequest): boolean {
  return body !== undefined && body.length > 0;
}

/** Returns the 400 for a body of unknown kind, with an excerpt. */
export function unrecognized({ kind }: ExpectedKind, why: string, text: string): Error {
  // As upstream, the message for DeleteOptions has no prefix.
  if (kind === 'DeleteOptions') return badRequest(why);
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): ${why} (${excerpt(text)})`,
  );
}

function excerpt(text: string): string {
  if (text === '') return '<empty>';
  const shown = text.startsWith('{')
    ? text.slice(0, EXCERPT)
    : Buffer.from(text.slice(0, EXCERPT)).subarray(0, EXCERPT).toString('hex');
  return text.length > EXCERPT ? `${shown} ...` : shown;
}

function jsonOf(text: string, refuse: (why: string) => Error): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw refuse(inspectJson(text).problem ?? cause.message);
  }
}

/**
 * Parses YAML or JSON in time linear in the length of the text. Tries JSON first, which is faster.
 * Rejects aliases, because a few lines can expand to gigabytes.
 */
function yamlOf(text: string, refuse: (why: string) => Error): unknown {
  const json = jsonIn(text);
  if (json !== undefined) return json;
  const documents = yamlDocuments(text, refuse);
  if (documents.length > 1) throw refuse('the body has more than one document');
  return documents[0] ?? null;
}

function yamlDocuments(text: string, refuse: (why: string) => Error): readonly unknown[] {
  try {
    // One more level, so that deep YAML gets the same error as deep JSON.
    return loadAll(text, { maxDepth: MAX_DEPTH + 1, maxAliases: 0 });
  } catch (cause) {
    if (!(cause instanceof YAMLException)) throw cause;
    const { reason, mark } = cause;
    throw refuse(mark ? `line ${mark.line + 1}: ${reason}` : reason);
  }
}

/** Parses JSON, which most clients send as YAML. Returns undefined if the text is not JSON. */
function jsonIn(text: string): unknown {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The text may be YAML in flow style.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function shallow<T>(read: () => T): T {
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
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  return typeof body === 'string' ? body : new TextDecoder().decode(body);
}

function bodyBytes({ body = '' }: HttpRequest): Uint8Array {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  if (bytes.byteLength > MAX_BODY_BYTES) throw bodyTooLarge();
  return bytes;
}
