import { Readable } from 'node:stream';
import { constants, crc32, createGzip, deflateRawSync } from 'node:zlib';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Compression } from './response.ts';
import { CompleteBody } from '../../util/complete-body.ts';
import { isWebSocketRequest } from './websocket-request.ts';

/** Responses below this size are not compressed, as in a kube-apiserver, in bytes. */
const GZIP_THRESHOLD = 128 * 1024;

/** As in a kube-apiserver: speed counts more than size. */
const GZIP_LEVEL = 1;

const GZIP_HEADERS = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' };

/** Compression with gzip. */
export const GZIP: Compression = { response: compressible, watch: compressibleWatch };

/** Returns a response that is compressed if it is large and the client accepts that. */
function compressible(
  response: HttpResponse,
  { headers }: Pick<HttpRequest, 'headers'>,
): HttpResponse | Promise<HttpResponse> {
  return acceptsGzip(headers['accept-encoding']) ? compress(response) : response;
}

/** Returns a watch compressed if the client accepts it: each piece by itself, so that an idle watch needs no memory. */
function compressibleWatch(
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

/** True if the header has `gzip` without a quality, as upstream reads it. */
function acceptsGzip(header: string | undefined): boolean {
  return header !== undefined && header.split(',').some((coding) => coding.trim() === 'gzip');
}

/** Reads the body up to the threshold; compresses it if there is more. */
async function compress(response: HttpResponse): Promise<HttpResponse> {
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
