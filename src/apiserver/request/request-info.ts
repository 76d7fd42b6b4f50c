import type { HttpRequest } from '../../util/http.ts';
import { badRequest } from '../objects/status-error.ts';

/** The verb `proxy` is that of `/api/v1/proxy/…`, which no longer exists. */
export type Verb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'proxy';

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
  /** Segments of the path from the resource: its name, the object, the subresource and what follows. */
  readonly parts: readonly string[];
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
      segments: segmentsOf(decode(pathname)),
      query: new URLSearchParams(at < 0 ? '' : path.slice(at + 1)),
      endsWithSlash: pathname.endsWith('/'),
    };
  } catch (cause) {
    if (!(cause instanceof URIError)) throw cause;
    throw badRequest(`invalid URL escape in ${JSON.stringify(pathname)}`);
  }
}

/** As in Go, an escaped slash separates segments like any other. */
function decode(pathname: string): string {
  return pathname.includes('%') ? decodeURIComponent(pathname) : pathname;
}

/** Slashes at the end of a path do not matter. An empty segment elsewhere is kept: it is part of no path. */
function segmentsOf(pathname: string): string[] {
  const segments = pathname.split('/').slice(1);
  const last = segments.findLastIndex((segment) => segment !== '');
  return last < 0 ? segments.slice(1) : segments.slice(0, last + 1);
}

/**
 * Reads a resource's path as a kube-apiserver does, whether or not it is served; undefined if it is none.
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
  const [root, ...rest] = segments.slice(segments.findIndex((segment) => segment !== ''));
  if (root !== 'api' && root !== 'apis') return undefined;
  const [group, version, ...served] = root === 'api' ? ['', ...rest] : rest;
  const [first] = served;
  const verb = first === 'watch' || first === 'proxy' ? first : undefined;
  const path = verb ? served.slice(1) : served;
  if (group === undefined || version === undefined || path.length === 0) return undefined;

  const [, second, third] = path;
  const inNamespace =
    path[0] === 'namespaces' && third !== undefined && !NAMESPACE_SUBRESOURCES.has(third);
  const parts = inNamespace ? path.slice(2) : path;
  const [resource = '', name, subresource] = parts;
  const namespace = (inNamespace && second) || undefined;
  const place = { group, version, resource, namespace, parts, query };
  switch (verb) {
    case undefined:
      return { ...place, verb: verbOf(method, name, query), name, subresource };
    case 'watch':
      return { ...place, verb, name: undefined, subresource, legacyWatch: { name } };
    case 'proxy':
      return { ...place, verb, name, subresource: undefined };
  }
}

function verbOf(
  method: HttpRequest['method'],
  name: string | undefined,
  query: URLSearchParams,
): Verb {
  switch (method) {
    case 'GET':
      if (name) return 'get';
      return isTrue(query.get('watch')) ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name ? 'delete' : 'deletecollection';
  }
}

/** Parses a boolean of a query like apimachinery: false if absent, `0` or `false`, else true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/** Returns whether the request must not be stored. */
export function isDryRun({ info }: { readonly info: RequestInfo }): boolean {
  return info.query.getAll('dryRun').includes('All');
}
