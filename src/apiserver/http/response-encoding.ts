import type { ListState } from '../operations/call.ts';
import { constants, crc32, createGzip, deflateRawSync } from 'node:zlib';
import { Readable } from 'node:stream';
import { dump } from 'js-yaml';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { listBody } from './list-body.ts';
import type { Encoding, ListRendering } from '../request/negotiation.ts';
import {
  JSON_TYPE,
  YAML_TYPE,
  encodingIn,
  encodingOf,
  mediaRanges,
} from '../request/negotiation.ts';
import { PROTOBUF_TYPE, encodeBody } from '../protobuf/protobuf-body.ts';
import { CompleteBody, completeResponse, jsonResponse, streamResponse } from './response.ts';
import type { StatusError } from '../objects/status-error.ts';
import { isWebSocketRequest } from './websocket.ts';

/** Responses below this size are not compressed, as in a kube-apiserver, in bytes. */
const GZIP_THRESHOLD = 128 * 1024;

/** As in a kube-apiserver: speed counts more than size. */
const GZIP_LEVEL = 1;

const GZIP_HEADERS = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' };

/** Returns an object as the client accepts it. */
export function objectResponse(
  status: number,
  value: object,
  encoding: Encoding,
  warnings: readonly string[] = [],
  parameters: string = '',
): HttpResponse {
  if (encoding === 'protobuf') {
    const body = encodeBody({ ...value });
    return completeResponse(status, body, `${PROTOBUF_TYPE}${parameters}`, warnings);
  }
  const json = jsonResponse(status, value, warnings, `${JSON_TYPE}${parameters}`);
  return encoding === 'yaml' ? asYaml(json) : json;
}

/** Returns an error as the client accepts it. */
export function errorResponse(
  { status }: StatusError,
  accept: string | undefined,
  warnings: readonly string[] = [],
): HttpResponse {
  const response = objectResponse(status.code, status, encodingOf(accept), warnings);
  const seconds = status.details?.retryAfterSeconds;
  if (seconds === undefined) return response;
  return { ...response, headers: { ...response.headers, 'retry-after': String(seconds) } };
}

/** Returns a list as the client accepts it. */
export function listResponse(
  rendering: ListRendering,
  state: ListState,
  warnings: readonly string[],
): HttpResponse {
  const { encoding } = rendering;
  const type = encoding === 'protobuf' ? PROTOBUF_TYPE : JSON_TYPE;
  const response = streamResponse(listBody(rendering, state), type, warnings);
  return encoding === 'yaml' ? asYaml(response) : response;
}

/**
 * Returns JSON indented, as a kube-apiserver does for people: by the query parameter `pretty`, by a parameter of the media
 * type, or for browsers, curl and Wget.
 */
export function prettyPrint(
  response: HttpResponse,
  request: Pick<HttpRequest, 'path' | 'headers'>,
): HttpResponse {
  return isForPeople(request) ? indented(response) : response;
}

/** Returns JSON indented by two spaces and without a final newline, as `json.MarshalIndent` in Go. */
export function indented(response: HttpResponse): HttpResponse {
  const isJson = response.headers['content-type']?.startsWith(JSON_TYPE);
  return isJson ? { ...response, body: indentedBody(response.body) } : response;
}

function isForPeople({ path, headers }: Pick<HttpRequest, 'path' | 'headers'>): boolean {
  const asked = path.includes('pretty') && new URLSearchParams(path.split('?')[1]).get('pretty');
  const range = mediaRanges(headers['accept']).find(encodingIn);
  if (range?.parameters.get('pretty') === '1') return true;
  if (asked) return /^(?:1|t|T|true|TRUE|True)$/.test(asked);
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(headers['user-agent'] ?? '');
}

/** The chunks of a list end between two objects, so that no token is split. */
async function* indentedBody(
  json: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let depth = 0;
  const line = (change: -1 | 0 | 1) => `\n${'  '.repeat((depth += change))}`;
  for await (const chunk of json) {
    const text = Buffer.from(chunk).toString().trimEnd();
    const lines = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|\{\}|\[\]|[{}[\],:]/g, (token) => {
      if (token === '{' || token === '[') return `${token}${line(1)}`;
      if (token === '}' || token === ']') return `${line(-1)}${token}`;
      if (token === ',') return `${token}${line(0)}`;
      return token === ':' ? ': ' : token;
    });
    yield Buffer.from(lines);
  }
}

/** Returns a response that is compressed if it is large and the client accepts that. */
export function compressible(
  response: HttpResponse,
  { headers }: Pick<HttpRequest, 'headers'>,
): HttpResponse | Promise<HttpResponse> {
  return acceptsGzip(headers['accept-encoding']) ? compressed(response) : response;
}

/** Returns a watch compressed if the client accepts it: each piece by itself, so that an idle watch needs no memory. */
export function compressibleWatch(
  response: HttpResponse,
  { headers }: Pick<HttpRequest, 'headers'>,
): HttpResponse {
  if (!acceptsGzip(headers['accept-encoding']) || isWebSocketRequest(headers)) return response;
  const compressedPiece = (next: IteratorResult<Uint8Array>): IteratorResult<Uint8Array> =>
    next.done ? next : { value: flushedMember(next.value) };
  return {
    ...response,
    headers: { ...response.headers, ...GZIP_HEADERS },
    body: {
      [Symbol.asyncIterator]() {
        const pieces = response.body[Symbol.asyncIterator]();
        return {
          next: async () => compressedPiece(await pieces.next()),
          return: async () => (await pieces.return?.()) ?? { value: undefined, done: true },
        };
      },
    },
  };
}

/** First bytes of a gzip member (RFC 1952): deflate, no name, no time, fastest, unknown system. */
const MEMBER_START = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);

/** The last block of a deflate stream, without data. */
const LAST_BLOCK = Buffer.from([0x03, 0x00]);

/**
 * Returns a gzip member whose data is flushed before its end. Go's reader returns the data of the last block only when
 * the next member starts, which would delay every event until the next one.
 */
function flushedMember(data: Uint8Array): Buffer {
  const checks = Buffer.alloc(8);
  checks.writeUInt32LE(crc32(data), 0);
  checks.writeUInt32LE(data.byteLength, 4);
  const deflated = deflateRawSync(data, {
    level: GZIP_LEVEL,
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  return Buffer.concat([MEMBER_START, deflated, LAST_BLOCK, checks]);
}

function asYaml(response: HttpResponse): HttpResponse {
  const { headers, body } = response;
  const type = headers['content-type'] ?? '';
  return {
    ...response,
    headers: { ...headers, 'content-type': type.replace(JSON_TYPE, YAML_TYPE) },
    body: yamlOf(body),
  };
}

async function* yamlOf(
  json: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of json) chunks.push(chunk);
  const value: unknown = JSON.parse(Buffer.concat(chunks).toString());
  yield Buffer.from(
    dump(value, { noRefs: true, sortKeys: true, lineWidth: -1, seqNoIndent: true }),
  );
}

/** True if the header has `gzip` without a quality, as upstream reads it. */
function acceptsGzip(header: string | undefined): boolean {
  return header !== undefined && header.split(',').some((coding) => coding.trim() === 'gzip');
}

/** Reads the body up to the threshold; compresses it if there is more. */
async function compressed(response: HttpResponse): Promise<HttpResponse> {
  const { body } = response;
  if (body instanceof CompleteBody && body.byteLength <= GZIP_THRESHOLD) return response;
  const chunks = response.body[Symbol.asyncIterator]();
  const start: Uint8Array[] = [];
  let bytes = 0;
  while (bytes <= GZIP_THRESHOLD) {
    const { value, done } = await chunks.next();
    if (done) return { ...response, body: startedBody(start) };
    start.push(value);
    bytes += value.byteLength;
  }
  const gzip = createGzip({ level: GZIP_LEVEL });
  const source = Readable.from(startedBody(start, chunks));
  // The error of the body breaks the compressed stream.
  source.once('error', (error) => gzip.destroy(error));
  gzip.once('close', () => source.destroy());
  return {
    ...response,
    headers: { ...response.headers, ...GZIP_HEADERS },
    body: source.pipe(gzip),
  };
}

async function* startedBody(
  start: readonly Uint8Array[],
  rest?: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* start;
    for (let next = await rest?.next(); next && !next.done; next = await rest?.next()) {
      yield next.value;
    }
  } finally {
    await rest?.return?.();
  }
}
