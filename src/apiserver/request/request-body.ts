import { YAMLException } from 'js-yaml';
import type { User } from '../../api/user.ts';
import type { HttpRequest } from '../../util/http.ts';
import { withSortedKeys } from '../../util/go-format.ts';
import { inspectJson, goTypeOf } from '../json/go-json.ts';
import type { ExpectedKind } from '../protobuf/protobuf-body.ts';
import { PROTOBUF_TYPE, decodeProtobufBody, messageOfKind } from '../protobuf/protobuf-body.ts';
import { NestingError, requireShallow, WidthError } from '../../util/json-value.ts';
import { oncePerObject } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';
import { toHex, utf8Bytes, utf8Length } from '../../util/bytes.ts';
import type { StatusError } from '../objects/status-error.ts';
import { badRequest, tooLarge, unsupportedMediaType } from '../objects/status-error.ts';
import { parseWithNumberTexts } from '../../util/number-text.ts';
import { parseYaml } from '../json/yaml-text.ts';

/** Maximum body size of a request, in bytes. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024;

/**
 * Maximum number of members and items in a body, all together. An object that fits into etcd has more only if most of
 * them have one or two characters.
 */
export const MAX_VALUES: number = 150_000;

export function bodyTooLarge(): StatusError {
  return tooLarge(`limit is ${MAX_BODY_BYTES}`);
}

/** A request whose body may not be received yet. */
export interface IncomingRequest extends HttpRequest {
  /** The client sent HEAD: it gets the headers of the response to GET. */
  readonly isHead?: boolean;
  /** Returns the user of the client's certificate, or undefined if it is not valid. Absent without a certificate. */
  readonly certifiedUser?: (() => User | undefined) | undefined;
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
  certifiedUser: _user,
  ...request
}: IncomingRequest): Promise<HttpRequest> {
  if (!receiveBody || request.method === 'GET') return request;
  const body = await receiveBody();
  return body.byteLength > 0 ? { ...request, body } : request;
}

/** Returns the first of apiVersion and kind, in the order of the object, that is neither a text nor null. */
function wrongIdentity(object: Readonly<Record<string, unknown>>): string | undefined {
  const wrong = ['apiVersion', 'kind'].filter((field) => {
    const value = object[field] ?? null;
    return value !== null && typeof value !== 'string';
  });
  return wrong.length > 1 ? Object.keys(object).find((key) => wrong.includes(key)) : wrong[0];
}

export const APPLY_PATCH = 'application/apply-patch+yaml';

const YAML_TYPE = 'application/yaml';
const BODY_TYPES = ['application/json', YAML_TYPE] as const;

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
 * Parses the syntax of a YAML body, which is half of the time to read it, so that this can be a step of its own.
 *
 * @throws {StatusError} 400 if it is malformed, 413 if it is too large
 */
export function parseBody(request: HttpRequest, expected: ExpectedKind): void {
  const type = contentType(request);
  if (isApplyPatch(type)) bounded(() => yamlSyntax(request, applyError(bodyText(request))));
  else if (type === YAML_TYPE) bounded(() => yamlSyntax(request, yamlError(request, expected)));
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
    return bounded(() =>
      shallow(decodeProtobufBody(bodyBytes(request), expected, message, MAX_VALUES)),
    );
  }
  if (type !== 'application/json' && type !== YAML_TYPE) {
    throw unsupportedMediaType([...BODY_TYPES, PROTOBUF_TYPE]);
  }
  const text = bodyText(request);
  const toError = (why: string) => unrecognized(expected, why, text);
  const value = bounded(() =>
    type === 'application/json'
      ? jsonOf(
          text,
          (why) => toError(`couldn't get version/kind; json parse error: ${why}`),
          expected.custom ? JSON.parse : parseWithNumberTexts,
        )
      : // As upstream, whose decoder reports the first problem of the JSON that it has converted.
        withSortedKeys(yamlOf(request, yamlError(request, expected))),
  );
  // As upstream, where null is an object without fields.
  if (value === null) return {};
  if (isRecord(value)) {
    const field = wrongIdentity(value);
    if (field !== undefined) {
      const type = goTypeOf(value[field]);
      throw toError(
        `couldn't get version/kind; json parse error: json: cannot unmarshal ${type} into Go struct field .${field} of type string`,
      );
    }
    return value;
  }
  throw toError(
    `couldn't get version/kind; json parse error: json: cannot unmarshal ${goTypeOf(value)} into Go value of type ${IDENTITY}`,
  );
}

/**
 * Parses the body of a JSON patch or a merge patch.
 *
 * @param keepsTexts of numbers, as a patch of the JSON of an object does
 * @throws {StatusError} 400 if it is malformed, 413 if it is too large
 */
export function readJsonPatch(request: HttpRequest, keepsTexts: boolean): unknown {
  const toError = () => badRequest('invalid JSON patch');
  const parse = keepsTexts ? parseWithNumberTexts : JSON.parse;
  return bounded(() => jsonOf(bodyText(request), toError, parse));
}

/** Parses the body of an apply patch: YAML, of which JSON is a subset. */
export function readApplyPatch(request: HttpRequest): unknown {
  return bounded(() => yamlOf(request, applyError(bodyText(request))));
}

type ToError = (why: string) => Error;

function applyError(text: string): ToError {
  // As upstream, which reads a body that may be JSON in another way.
  const what = text.startsWith('{')
    ? 'error decoding patch: error converting YAML to JSON'
    : 'error encoding patch';
  return (why) => badRequest(`${what}: yaml: ${why}`);
}

function yamlError(request: HttpRequest, expected: ExpectedKind): ToError {
  return (why) => unrecognized(expected, `yaml: ${why}`, bodyText(request));
}

/**
 * Returns the duplicate fields in a JSON or YAML body, such as `duplicate field "a.b"`. The last value counts.
 *
 * @param unknown fields, which are returned too at their places in a JSON body: `unknown field "a.c"`
 * @param decoded the value of the body: if it has the same text, the body has no duplicates
 */
export function duplicateFields(
  request: HttpRequest,
  unknown: readonly string[] = [],
  decoded?: object,
): readonly string[] {
  const type = contentType(request);
  if (type === PROTOBUF_TYPE) return [];
  const text = bodyText(request);
  if (type === YAML_TYPE || isApplyPatch(type)) {
    // Most YAML is JSON, which is faster to inspect.
    const isUnique = jsonIn(request) !== undefined && inspectJson(text).strictErrors.length === 0;
    return isUnique ? [] : yamlIn(request).duplicates;
  }
  if (unknown.length === 0 && decoded && JSON.stringify(decoded) === text.trimEnd()) return [];
  return inspectJson(text, unknown).strictErrors;
}

/** Returns the text for duplicate fields in a strict decoding error. */
export function strictDuplicates(request: HttpRequest, duplicates: readonly string[]): string[] {
  const type = contentType(request);
  if (duplicates.length === 0 || !(type === YAML_TYPE || isApplyPatch(type))) {
    return [...duplicates];
  }
  return [['yaml: unmarshal errors:', ...duplicates].join('\n  ')];
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
    : toHex(utf8Bytes(text.slice(0, EXCERPT)).subarray(0, EXCERPT));
  return text.length > EXCERPT ? `${shown} ...` : shown;
}

/**
 * Replaces the escape of each lone surrogate by U+FFFD, as Go's decoder does. Texts of an object are
 * Unicode, so that other programs can decode them.
 */
function withoutLoneSurrogates(text: string): string {
  if (!/\\ud/i.test(text)) return text;
  return text.replaceAll(
    /\\(?:u(d[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|d[89a-f][\da-f]{2})|.)/gi,
    (escape, surrogates?: string) => (surrogates?.length === 4 ? '\\ufffd' : escape),
  );
}

/**
 * Rejects a wide text before it is parsed, which would block the event loop for longer. Counts commas: the check of the value
 * counts exactly.
 *
 * @throws {WidthError} if JSON has more than `MAX_VALUES` members and items
 */
function requireNarrow(text: string): void {
  if (text.length <= 2 * MAX_VALUES) return;
  let commas = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COMMA && ++commas >= MAX_VALUES) throw new WidthError(MAX_VALUES);
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** Returns the position of the quote that ends the string at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return text.length;
}

function jsonOf(text: string, toError: ToError, parse: (text: string) => unknown): unknown {
  requireNarrow(text);
  try {
    return shallow(parse(withoutLoneSurrogates(text)));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw toError(inspectJson(text).problem ?? cause.message);
  }
}

/** Parses JSON, or the first document of YAML. Tries JSON first, which is faster. */
function yamlOf(request: HttpRequest, toError: ToError): unknown {
  return withoutException(() => jsonIn(request) ?? yamlIn(request).documents[0] ?? null, toError);
}

function yamlSyntax(request: HttpRequest, toError: ToError): void {
  withoutException(() => jsonIn(request) ?? yamlIn(request), toError);
}

function withoutException<T>(read: () => T, toError: ToError): T {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof YAMLException)) throw cause;
    const { reason, mark } = cause;
    throw toError(mark ? `line ${mark.line + 1}: ${reason}` : reason);
  }
}

/** Parses YAML once: its documents and duplicate keys are in later steps. */
const yamlIn = oncePerObject((request: HttpRequest) => parseYaml(bodyText(request), MAX_VALUES));

/** Parses JSON, which most clients send as YAML. Returns undefined if the text is not JSON. */
const jsonIn = oncePerObject((request: HttpRequest): unknown => {
  const text = bodyText(request);
  if (!text.startsWith('{')) return undefined;
  requireNarrow(text);
  try {
    return shallow(JSON.parse(withoutLoneSurrogates(text)));
  } catch (error) {
    // The text may be YAML in flow style.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
});

function shallow<T>(value: T): T {
  requireShallow(value, MAX_VALUES);
  return value;
}

/** Returns the errors of the API for a value that is too wide or too deep. */
function bounded<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof WidthError) throw tooLarge(cause.message);
    if (cause instanceof NestingError) throw badRequest(cause.message);
    throw cause;
  }
}

/** Keeps a byte order mark, which JSON does not permit. */
const BODY_TEXT = new TextDecoder('utf-8', { ignoreBOM: true });

function bodyText({ body = '' }: HttpRequest): string {
  const bytes = typeof body === 'string' ? utf8Length(body) : body.byteLength;
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  return typeof body === 'string' ? body : BODY_TEXT.decode(body);
}

function bodyBytes({ body = '' }: HttpRequest): Uint8Array {
  const bytes = typeof body === 'string' ? utf8Bytes(body) : body;
  if (bytes.byteLength > MAX_BODY_BYTES) throw bodyTooLarge();
  return bytes;
}
