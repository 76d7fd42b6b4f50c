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
import { swaggerJson, swaggerOf } from './swagger.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { toHex } from '../../util/bytes.ts';
import type { Target } from '../request/request-info.ts';

interface OpenApiDocument {
  /** Returns the SHA-256 in upper-case hexadecimal: it changes if the content does. */
  readonly hash: () => Promise<string>;
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
  async index(): Promise<OpenApiDocument> {
    const versions = this.#registry.groups().flatMap(({ versions }) => versions);
    const paths: [string, object][] = [];
    for (const version of versions) {
      const path = pathOf(version);
      const url = documentUrl(path, await this.#document(version).hash());
      paths.push([path, { serverRelativeURL: url }]);
    }
    this.#forgetAllBut(new Set([...versions.map(pathOf), SWAGGER]));
    const json = JSON.stringify({ paths: Object.fromEntries(paths) });
    return { hash: () => hashOf(json), json: () => Promise.resolve(json) };
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
    return this.#cached(SWAGGER, definitions, () => ({
      // It has the same content as the documents of version 3.
      hash: once(async () => hashOf(SWAGGER + (await (await this.index()).json()))),
      json: once(async () => swaggerJson(definitions, await loadDescriptions())),
      protobuf: once(async () => encodeSwagger(swaggerOf(definitions, await loadDescriptions()))),
    }));
  }

  #document(served: GroupVersion): OpenApiDocument {
    const { definitions } = served;
    return this.#cached(pathOf(served), definitions, () => documentOf(definitions));
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
function documentOf(definitions: readonly ResourceDefinition[]): OpenApiDocument {
  const content = async () => openApiOf(definitions, await loadDescriptions());
  return {
    hash: once(() => hashOf(VERSION.gitVersion + JSON.stringify(openApiOf(definitions, {})))),
    json: once(async () => escapedJson(await content())),
    protobuf: once(async () => encodeOpenApi(await content())),
  };
}

/** Calls `make` on the first call, and returns its result on each. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

/** Encodes a document of version 3; as upstream, that of version 2 is not escaped. */
function escapedJson(content: JsonObject): string {
  return escapeHtml(JSON.stringify(content));
}

/** The digest of the platform, because documents have megabytes and it does not block. */
async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(text));
  return toHex(new Uint8Array(digest)).toUpperCase();
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
  if (rest.length === 0) return respond(await documents.index(), headers, {});
  const path = rest.join('/');
  const document = documents.document(path);
  if (!document) return undefined;
  const hash = query.get('hash');
  const current = await document.hash();
  if (hash && hash !== current) {
    return {
      status: 301,
      headers: { location: documentUrl(path, current) },
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
  const etag = `"${await hash()}"`;
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
