import { createGzip } from 'node:zlib';
import { Readable } from 'node:stream';
import { dump } from 'js-yaml';
import type { HttpRequest, HttpResponse } from '../util/http.ts';
import { JSON_TYPE, YAML_TYPE, encodingOf } from './negotiation.ts';

/** Responses below this size are not compressed, as in a kube-apiserver, in bytes. */
const GZIP_THRESHOLD = 128 * 1024;

/** As in a kube-apiserver: speed counts more than size. */
const GZIP_LEVEL = 1;

/**
 * Returns a response with objects as the client accepts it: as YAML instead of JSON, and compressed if it is
 * large.
 */
export function encoded<T extends HttpResponse>(
  response: T,
  { headers }: Pick<HttpRequest, 'headers'>,
): T | Promise<T> {
  const form = withEncoding(response, headers['accept']);
  return acceptsGzip(headers['accept-encoding']) ? compressed(form) : form;
}

/** Returns a response as YAML if the client prefers it to JSON. */
export function withEncoding<T extends HttpResponse>(response: T, accept: string | undefined): T {
  return encodingOf(accept) === 'yaml' ? asYaml(response) : response;
}

function asYaml<T extends HttpResponse>(response: T): T {
  const { headers, body } = response;
  const type = headers['content-type'] ?? '';
  if (!type.startsWith(JSON_TYPE)) return response;
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
  yield Buffer.from(dump(value, { noRefs: true, sortKeys: true, lineWidth: -1 }));
}

/** True if the header has `gzip` without a quality, as upstream reads it. */
function acceptsGzip(header: string | undefined): boolean {
  return header !== undefined && header.split(',').some((coding) => coding.trim() === 'gzip');
}

/** Reads the body up to the threshold; compresses it if there is more. */
async function compressed<T extends HttpResponse>(response: T): Promise<T> {
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
    headers: { ...response.headers, 'content-encoding': 'gzip', vary: 'Accept-Encoding' },
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
