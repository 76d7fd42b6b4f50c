import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { ServiceAccountTokens } from '../auth/service-account-tokens.ts';
import { JSON_TYPE, requireMediaType } from '../request/negotiation.ts';
import type { Target } from '../request/request-info.ts';
import { jsonResponse } from './response.ts';

/** Answers the paths of OpenID Connect discovery; undefined for other paths. */
export function openIdResponse(
  tokens: Pick<ServiceAccountTokens, 'discovery'>,
  { headers, method }: HttpRequest,
  { segments }: Target,
): HttpResponse | undefined {
  const path = segments.join('/');
  if (!/^(?:\.well-known|openid)\//.test(path)) return undefined;
  const documents = tokens.discovery(headers['host'] ?? 'kubernetes.default.svc');
  const document = Object.hasOwn(documents, path) ? documents[path] : undefined;
  if (!document) return undefined;
  const type = path.endsWith('jwks') ? 'application/jwk-set+json' : JSON_TYPE;
  if (method === 'GET') requireMediaType(headers['accept'], [type]);
  const response = jsonResponse(200, document, [], type);
  return { ...response, headers: { ...response.headers, 'cache-control': 'public, max-age=3600' } };
}
