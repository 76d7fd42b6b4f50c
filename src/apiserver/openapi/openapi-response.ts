import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Target } from '../request-info.ts';
import type { OpenApiDocument, OpenApiDocuments } from './openapi-documents.ts';
import { documentUrl } from './openapi-documents.ts';

/** A document that is asked for by its hash never changes. */
const FOREVER = { 'cache-control': 'public, immutable' } as const;

/**
 * Answers what is below `/openapi/v3`; undefined for any other path. A client that holds an old
 * hash is sent to the new document, one that holds the document is told so.
 */
export function openApiResponse(
  documents: OpenApiDocuments,
  { headers }: HttpRequest,
  { segments, query }: Target,
): HttpResponse | undefined {
  const [root, version, ...rest] = segments;
  if (root !== 'openapi' || version !== 'v3') return undefined;
  if (rest.length === 0) return respond(documents.index(), headers, {});
  const path = rest.join('/');
  const document = documents.document(path);
  if (!document) return undefined;
  const hash = query.get('hash');
  if (hash && hash !== document.hash) {
    return {
      status: 301,
      headers: { location: documentUrl(path, document.hash) },
      body: bodyOf(''),
    };
  }
  return respond(document, headers, hash ? FOREVER : {});
}

function respond(
  { body, hash }: OpenApiDocument,
  request: HttpRequest['headers'],
  caching: Readonly<Record<string, string>>,
): HttpResponse {
  const etag = `"${hash}"`;
  const headers = { ...caching, etag, vary: 'Accept' };
  if (request['if-none-match'] === etag) return { status: 304, headers, body: bodyOf('') };
  return {
    status: 200,
    headers: { ...headers, 'content-type': 'application/json' },
    body: bodyOf(body),
  };
}

const encoder = new TextEncoder();

async function* bodyOf(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  if (text !== '') yield encoder.encode(text);
}
