import { escapeHtml } from '../../util/go-format.ts';
import type { GroupVersion, Registry } from '../objects/registry.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { mediaRanges } from '../request/negotiation.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { VERSION } from '../objects/kubernetes-version.ts';
import { componentsOf } from './components.ts';
import { loadDescriptions } from './descriptions.ts';
import type { Descriptions } from './descriptions.ts';
import { encodeOpenApi, encodeSwagger } from './openapi-protobuf.ts';
import { pathsOf } from './paths.ts';
import { swaggerOf } from './swagger.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { toHex } from '../../util/bytes.ts';
import { sha256 } from '../../util/sha256.ts';
import type { Target } from '../request/request-info.ts';

interface OpenApiDocument {
  /** SHA-256 in upper-case hexadecimal: it changes if the content does. */
  readonly hash: string;
  readonly json: () => Promise<string>;
  /** Returns the document as protobuf; absent for the index, which has no other form. */
  readonly protobuf?: () => Promise<Uint8Array>;
}

interface Cached extends OpenApiDocument {
  readonly definitions: readonly ResourceDefinition[];
}

/** Cache key of the version 2 document; no path of a group version. */
const SWAGGER = 'v2';

/**
 * The OpenAPI documents of a server. Version 3 has one for each group version, and an index; version 2 has
 * one for everything. A document is generated from the registry on the first request, and again after the resources of the group
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
    this.#forgetAllBut(new Set([...versions.map(pathOf), SWAGGER]));
    const json = JSON.stringify({ paths: Object.fromEntries(paths) });
    return { hash: hashOf(json), json: () => Promise.resolve(json) };
  }

  /** Returns the document at `/openapi/v3/<path>`, or undefined if the group version is not served. */
  document(path: string): OpenApiDocument | undefined {
    const [, group = '', version = ''] =
      /^api\/()([^/]+)$/.exec(path) ?? /^apis\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
    const served = this.#registry.groupVersion(group, version);
    return served && this.#document(served);
  }

  /** Returns the document at `/openapi/v2`. */
  swagger(): OpenApiDocument {
    const versions = this.#registry.groups().flatMap(({ versions }) => versions);
    const definitions = versions.flatMap(({ definitions }) => definitions);
    return this.#cached(SWAGGER, definitions, () =>
      documentOf(definitions, swaggerOf, JSON.stringify, encodeSwagger),
    );
  }

  #document(served: GroupVersion): OpenApiDocument {
    const { definitions } = served;
    return this.#cached(pathOf(served), definitions, () =>
      documentOf(definitions, openApiOf, escapedJson, encodeOpenApi),
    );
  }

  #cached(
    key: string,
    definitions: readonly ResourceDefinition[],
    make: () => OpenApiDocument,
  ): OpenApiDocument {
    const cached = this.#cache.get(key);
    if (cached && isSame(cached.definitions, definitions)) return cached;
    const document = { ...make(), definitions };
    this.#cache.set(key, document);
    return document;
  }

  #forgetAllBut(paths: ReadonlySet<string>): void {
    for (const path of this.#cache.keys()) {
      if (!paths.has(path)) this.#cache.delete(path);
    }
  }
}

function documentUrl(path: string, hash: string): string {
  return `/openapi/v3/${path}?hash=${hash}`;
}

function openApiOf(
  definitions: readonly ResourceDefinition[],
  descriptions: Descriptions,
): JsonObject {
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(definitions.flatMap((each) => Object.entries(pathsOf(each)))),
    components: {
      schemas: Object.fromEntries(componentsOf(definitions, descriptions)),
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

/**
 * Returns a document whose forms are generated on the first request for them. The descriptions of built-in types are
 * not hashed, but the version of Kubernetes that they come from, so that the index needs no descriptions.
 */
function documentOf(
  definitions: readonly ResourceDefinition[],
  contentOf: (definitions: readonly ResourceDefinition[], descriptions: Descriptions) => JsonObject,
  toJson: (content: JsonObject) => string,
  encode: (content: JsonObject) => Uint8Array,
): OpenApiDocument {
  const hash = hashOf(VERSION.gitVersion + JSON.stringify(contentOf(definitions, {})));
  const content = async () => contentOf(definitions, await loadDescriptions());
  let json: Promise<string> | undefined;
  let bytes: Promise<Uint8Array> | undefined;
  return {
    hash,
    json: () => (json ??= content().then((value) => toJson(value))),
    protobuf: () => (bytes ??= content().then(encode)),
  };
}

/** Encodes a document of version 3; as upstream, that of version 2 is not escaped. */
function escapedJson(content: JsonObject): string {
  return escapeHtml(JSON.stringify(content));
}

function hashOf(text: string): string {
  return toHex(sha256(text)).toUpperCase();
}

/** A URL with a hash always has the same content. */
const FOREVER = { 'cache-control': 'public, immutable' } as const;

/**
 * Answers requests below `/openapi`; returns undefined for any other path. A request with an old
 * hash is redirected to the current document. A client that has the document gets 304.
 */
export async function openApiResponse(
  documents: OpenApiDocuments,
  { headers }: HttpRequest,
  { segments, query }: Target,
): Promise<HttpResponse | undefined> {
  const [root, version, ...rest] = segments;
  if (root !== 'openapi') return undefined;
  if (version === 'v2' && rest.length === 0) {
    return respond(documents.swagger(), headers, { vary: 'Accept-Encoding, Accept' }, 'v2');
  }
  if (version !== 'v3') return undefined;
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

async function respond(
  { hash, json, protobuf }: OpenApiDocument,
  request: HttpRequest['headers'],
  extra: Readonly<Record<string, string>>,
  version: 'v2' | 'v3' = 'v3',
): Promise<HttpResponse> {
  const etag = `"${hash}"`;
  const common = { vary: 'Accept', ...extra };
  const form = protobuf ? formFor(request['accept'], version) : 'json';
  if (!form) return { status: 406, headers: common, body: bodyOf('') };
  const headers = { ...common, etag };
  if (request['if-none-match'] === etag) return { status: 304, headers, body: bodyOf('') };
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': form === 'json' ? 'application/json' : protobufType(version),
    },
    body: bodyOf(await (form === 'json' || !protobuf ? json() : protobuf())),
  };
}

/** Returns the form that a client wants most; undefined if there is none. Clients name protobuf in two ways. */
function formFor(
  accept: string | undefined,
  version: 'v2' | 'v3',
): 'json' | 'protobuf' | undefined {
  for (const { type } of mediaRanges(accept)) {
    if (type === 'application/json' || type === 'application/*' || type === '*/*') return 'json';
    if (type.replace('@', '.') === protobufType(version)) return 'protobuf';
  }
  return undefined;
}

function protobufType(version: 'v2' | 'v3'): string {
  return `application/com.github.proto-openapi.spec.${version}.v1.0+protobuf`;
}

const encoder = new TextEncoder();

async function* bodyOf(body: string | Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (body !== '') yield typeof body === 'string' ? encoder.encode(body) : body;
}
