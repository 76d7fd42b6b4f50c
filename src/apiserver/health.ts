import { textResponse } from './response.ts';
import type { HttpResponse } from '../util/http.ts';
import type { Target } from './request-info.ts';

const CHECKS: readonly string[] = ['ping', 'log', 'etcd'];

/** The checks of each endpoint, with names of kube-apiserver that probes and scripts request. */
const ENDPOINTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['healthz', CHECKS],
  ['livez', CHECKS],
  ['readyz', [...CHECKS, 'etcd-readiness', 'informer-sync', 'shutdown']],
]);

/**
 * Answers `/healthz`, `/livez`, `/readyz` and the paths of their checks; undefined for other paths. A server
 * that answers is healthy, so no check fails. As upstream, the method does not matter.
 */
export function healthResponse({ segments, query }: Target): HttpResponse | undefined {
  const [endpoint = '', check, ...rest] = segments;
  const checks = ENDPOINTS.get(endpoint);
  if (!checks || rest.length > 0) return undefined;
  if (check !== undefined) return checks.includes(check) ? textResponse(200, 'ok') : undefined;
  if (!query.has('verbose')) return textResponse(200, 'ok');
  const excluded = new Set(query.getAll('exclude').flatMap((names) => names.split(',')));
  const lines = checks.map((name) => `[+]${name} ${excluded.has(name) ? 'excluded: ' : ''}ok`);
  return textResponse(200, `${lines.join('\n')}\n${endpoint} check passed\n`);
}
