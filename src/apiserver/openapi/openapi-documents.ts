import { createHash } from 'node:crypto';
import type { GroupVersion, Registry } from '../registry.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { componentsOf } from './components.ts';
import { pathsOf } from './paths.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Target } from '../request-info.ts';

/** A serialized document. */
interface OpenApiDocument {
  /** JSON. */
  readonly body: string;
  /** SHA-256 of the body in upper-case hexadecimal. */
  readonly hash: string;
}

interface Cached extends OpenApiDocument {
  readonly definitions: readonly ResourceDefinition[];
}

/**
 * The OpenAPI v3 documents of a server: one for each group version, and an index. A document is
 * generated from the registry on the first request, and again after the resources of the group
 * version have changed. The same content has the same hash in every process.
 */
export class OpenApiDocuments {
  readonly #registry: Pick<Registry, 'groups' | 'groupVersion'>;
  readonly #cache = new Map<string, Cached>();

  constructor(registry: Pick<Registry, 'groups' | 'groupVersion'>) {
    this.#registry = registry;
  }

  /** Returns the index at `/openapi/v3`: the URL of the document of each group version. */
  index(): OpenApiDocument {
    const versions = this.#registry.groups().flatMap(({ versions }) => versions);
    const paths = versions.map((version) => {
      const path = pathOf(version);
      return [path, { serverRelativeURL: documentUrl(path, this.#document(version).hash) }];
    });
    this.#forgetAllBut(new Set(versions.map(pathOf)));
    return hashed({ paths: Object.fromEntries(paths) });
  }

  /** Returns the document at `/openapi/v3/<path>`, or undefined if the group version is not served. */
  document(path: string): OpenApiDocument | undefined {
    const [, group = '', version = ''] =
      /^api\/()([^/]+)$/.exec(path) ?? /^apis\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
    const served = this.#registry.groupVersion(group, version);
    return served && this.#document(served);
  }

  #document(served: GroupVersion): OpenApiDocument {
    const path = pathOf(served);
    const { definitions } = served;
    const cached = this.#cache.get(path);
    if (cached && isSame(cached.definitions, definitions)) return cached;
    const document = { ...hashed(contentOf(definitions)), definitions };
    this.#cache.set(path, document);
    return document;
  }

  #forgetAllBut(paths: ReadonlySet<string>): void {
    for (const path of this.#cache.keys()) {
      if (!paths.has(path)) this.#cache.delete(path);
    }
  }
}

/** The URL of the document with this hash. */
function documentUrl(path: string, hash: string): string {
  return `/openapi/v3/${path}?hash=${hash}`;
}

function contentOf(definitions: readonly ResourceDefinition[]): object {
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(definitions.flatMap((each) => Object.entries(pathsOf(each)))),
    components: {
      schemas: Object.fromEntries(componentsOf(definitions)),
      securitySchemes: {
        BearerToken: {
          description: 'Bearer token authentication',
          in: 'header',
          name: 'authorization',
          type: 'apiKey',
        },
      },
    },
  };
}

function pathOf({ group, version }: Pick<GroupVersion, 'group' | 'version'>): string {
  return group ? `apis/${group}/${version}` : `api/${version}`;
}

function isSame(a: readonly ResourceDefinition[], b: readonly ResourceDefinition[]): boolean {
  return a.length === b.length && a.every((definition, index) => definition === b[index]);
}

function hashed(content: object): OpenApiDocument {
  const body = JSON.stringify(content);
  return { body, hash: createHash('sha256').update(body).digest('hex').toUpperCase() };
}

/** A URL with a hash always has the same content. */
const FOREVER = { 'cache-control': 'public, immutable' } as const;

/**
 * Answers requests below `/openapi/v3`; returns undefined for any other path. A request with an old
 * hash is redirected to the current document. A client that has the document gets 304.
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
