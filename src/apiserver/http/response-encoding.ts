import type { ListState } from '../operations/call.ts';
import { nextTurn } from '../../util/next-turn.ts';
import { concatBytes, utf8Bytes, utf8Text } from '../../util/bytes.ts';
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
import { completeResponse, jsonResponse, streamResponse } from './response.ts';
import { yamlPieces } from './yaml-pieces.ts';
import type { StatusError } from '../objects/status-error.ts';

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
  return isForPeople(request) ? indentBody(response) : response;
}

/** Returns JSON indented by two spaces and without a final newline, as `json.MarshalIndent` in Go. */
export function indentBody(response: HttpResponse): HttpResponse {
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
    const text = utf8Text(chunk).trimEnd();
    const lines = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|\{\}|\[\]|[{}[\],:]/g, (token) => {
      if (token === '{' || token === '[') return `${token}${line(1)}`;
      if (token === '}' || token === ']') return `${line(-1)}${token}`;
      if (token === ',') return `${token}${line(0)}`;
      return token === ':' ? ': ' : token;
    });
    yield utf8Bytes(lines);
  }
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
  const value: unknown = JSON.parse(utf8Text(concatBytes(chunks)));
  let isFirst = true;
  for (const piece of yamlPieces(value)) {
    // Others proceed between the pieces of a large response.
    if (!isFirst) await nextTurn();
    isFirst = false;
    yield utf8Bytes(piece);
  }
}
