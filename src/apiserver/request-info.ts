import type { HttpRequest } from '../util/http.ts';
import { badRequest } from './status-error.ts';

export type Verb =
  'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

/** The resource attributes of a request. */
export interface RequestInfo {
  readonly verb: Verb;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural name. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
  /** The legacy form of `?watch=true`. The name is that of the watched object; undefined for all. */
  readonly legacyWatch?: { readonly name: string | undefined };
}

/** The path and the query of a request. */
export interface Target {
  /** Decoded segments: `['api', 'v1', 'pods']`. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  /** The path ends with a slash, which matters for paths of the server itself. */
  readonly endsWithSlash: boolean;
}

/** Subresources of a Namespace. Any other segment after its name is a resource in the namespace. */
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);

/** @throws {StatusError} 400 if the path is not well-formed */
export function parseTarget(path: string): Target {
  const at = path.indexOf('?');
  const pathname = at < 0 ? path : path.slice(0, at);
  try {
    return {
      segments: segmentsOf(pathname).map(decoded),
      query: new URLSearchParams(at < 0 ? '' : path.slice(at + 1)),
      endsWithSlash: pathname.endsWith('/'),
    };
  } catch (cause) {
    if (!(cause instanceof URIError)) throw cause;
    throw badRequest(`invalid URL escape in ${JSON.stringify(pathname)}`);
  }
}

function decoded(segment: string): string {
  return segment.includes('%') ? decodeURIComponent(segment) : segment;
}

/** A slash at the end does not matter. An empty segment elsewhere is kept: it is part of no path. */
function segmentsOf(pathname: string): string[] {
  const segments = pathname.split('/').slice(1);
  return segments.at(-1) === '' ? segments.slice(0, -1) : segments;
}

/**
 * Reads a resource's path; undefined if it is none.
 *
 * | path                                                      | is                   |
 * | --------------------------------------------------------- | -------------------- |
 * | `/api/v1/pods`                                            | pods everywhere      |
 * | `/api/v1/namespaces/a`                                    | a namespace          |
 * | `/api/v1/namespaces/a/status`                             | its subresource      |
 * | `/apis/apps/v1/namespaces/a/deployments/web/scale`        | and so on            |
 * | `/apis/apps/v1/watch/namespaces/a/deployments/web`        | a watch of an object |
 * | `/api/v1/namespaces/a/pods/web/proxy/index.html`          | a path of its proxy  |
 */
export function requestInfo(
  method: HttpRequest['method'],
  { segments, query }: Target,
): RequestInfo | undefined {
  const [root, ...rest] = segments;
  if (root !== 'api' && root !== 'apis') return undefined;
  const [group, version, ...served] = root === 'api' ? ['', ...rest] : rest;
  const isWatch = served[0] === 'watch' && method === 'GET';
  const path = isWatch ? served.slice(1) : served;
  if (group === undefined || version === undefined || path.length === 0) return undefined;

  const [first, second, third] = path;
  const inNamespace =
    first === 'namespaces' &&
    second !== undefined &&
    third !== undefined &&
    !(path.length === 3 && NAMESPACE_SUBRESOURCES.has(third));
  const [resource, name, subresource, ...excess] = inNamespace ? path.slice(2) : path;
  if (resource === undefined || (excess.length > 0 && subresource !== 'proxy')) return undefined;
  const place = { group, version, resource, namespace: (inNamespace && second) || undefined };
  if (isWatch) {
    if (subresource !== undefined) return undefined;
    const legacyWatch = { name };
    return { ...place, verb: 'watch', name: undefined, subresource, query, legacyWatch };
  }
  return { ...place, verb: verbOf(method, name, query), name, subresource, query };
}

function verbOf(
  method: HttpRequest['method'],
  name: string | undefined,
  query: URLSearchParams,
): Verb {
  switch (method) {
    case 'GET':
      if (name !== undefined) return 'get';
      return isTrue(query.get('watch')) ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete';
  }
}

/** Parses a boolean of a query like apimachinery: false if absent, `0` or `false`, else true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}
