import { openIdResponse } from '../openid.ts';
import type { HttpRequest, HttpResponse } from '../../../util/http.ts';
import type { ObservedRbac } from '../../auth/observed-rbac.ts';
import { yamlOfRole } from '../../auth/observed-rbac.ts';
import type { ServiceAccountTokens } from '../../auth/service-account-tokens.ts';
import { findDocument } from '../../discovery/discovery.ts';
import { OpenApiDocuments, openApiResponse } from '../../discovery/openapi-documents.ts';
import { rootPaths } from '../../discovery/root-paths.ts';
import type { KubernetesVersion } from '../../objects/kubernetes-version.ts';
import { versionInfo } from '../../objects/kubernetes-version.ts';
import type { Registry } from '../../objects/registry.ts';
import { methodNotAllowed } from '../../objects/status-error.ts';
import { JSON_TYPE, requireMediaType } from '../../request/negotiation.ts';
import type { Target } from '../../request/request-info.ts';
import { indentBody, objectResponse, prettyPrint } from '../response-encoding.ts';
import { jsonResponse, textResponse } from '../response.ts';
import type { Filter } from './filter.ts';

export interface DocumentsDeps {
  readonly registry: Registry;
  readonly tokens: Pick<ServiceAccountTokens, 'discovery'>;
  readonly observed: ObservedRbac;
  readonly version: KubernetesVersion;
  readonly hasMetrics: boolean;
}

/** Answers discovery, OpenAPI, OpenID Connect discovery, `/version` and the list of paths. */
export function withDocuments(deps: DocumentsDeps): Filter {
  const openApi = new OpenApiDocuments(deps.registry);
  return async (filtered, next) => {
    const { request, target, record } = filtered;
    if (record.info) return next(filtered);
    return (await documentAt(deps, openApi, request, target)) ?? next(filtered);
  };
}

/** @throws {StatusError} 405 if a document is not requested by GET */
async function documentAt(
  deps: DocumentsDeps,
  openApi: OpenApiDocuments,
  request: HttpRequest,
  target: Target,
): Promise<HttpResponse | undefined> {
  const { registry, tokens } = deps;
  const { segments, endsWithSlash } = target;
  const [first, ...rest] = segments;
  const isAlone = rest.length === 0;
  const openId = () => openIdResponse(tokens, request, target);
  // As upstream, the method does not matter at the root and at the list of groups.
  if (request.method !== 'GET' && first !== undefined && !(first === 'apis' && isAlone)) {
    const isOther = (first === 'version' && isAlone) || openId() !== undefined;
    if (!isOther && !findDocument(registry, segments, {})) return undefined;
    throw methodNotAllowed();
  }
  if (first === undefined)
    return indentBody(jsonResponse(200, { paths: rootPaths(registry, deps.hasMetrics) }));
  const { accept } = request.headers;
  if (first === 'version' && isAlone) {
    requireMediaType(accept, [JSON_TYPE]);
    return indentBody(jsonResponse(200, versionInfo(deps.version)));
  }
  if (first === 'observed-rbac' && isAlone) {
    return textResponse(200, yamlOfRole(deps.observed.roleOf(target.query.get('user') ?? '')));
  }
  return (
    openId() ??
    (endsWithSlash ? undefined : await openApiResponse(openApi, request, target)) ??
    discoveryResponse(registry, request, target)
  );
}

function discoveryResponse(
  registry: Registry,
  request: HttpRequest,
  { segments }: Target,
): HttpResponse | undefined {
  const document = findDocument(registry, segments, request.headers);
  if (!document) return undefined;
  const { value, encoding, parameters } = document;
  const response = prettyPrint(objectResponse(200, value, encoding, [], parameters), request);
  if (parameters === undefined) return response;
  const headers = { ...response.headers, vary: 'Accept', 'cache-control': 'public' };
  return { ...response, headers };
}
