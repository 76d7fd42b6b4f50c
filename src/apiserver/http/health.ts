import { textResponse } from './response.ts';
import type { HttpResponse } from '../../util/http.ts';
import type { Target } from '../request/request-info.ts';

/** The end of the start, in kube-apiserver. */
const STARTED: readonly string[] = [
  ...[
    'start-apiserver-admission-initializer',
    'generic-apiserver-start-informers',
    'priority-and-fairness-config-consumer',
    'priority-and-fairness-filter',
    'storage-object-count-tracker-hook',
    'start-apiextensions-informers',
    'start-apiextensions-controllers',
    'crd-informer-synced',
    'start-system-namespaces-controller',
    'peer-endpoint-reconciler-controller',
    'start-cluster-authentication-info-controller',
    'start-kube-apiserver-identity-lease-controller',
    'start-kube-apiserver-identity-lease-garbage-collector',
    'storage-readiness',
    'start-legacy-token-tracking-controller',
    'start-service-ip-repair-controllers',
    'rbac/bootstrap-roles',
    'scheduling/bootstrap-system-priority-classes',
    'priority-and-fairness-config-producer',
    'bootstrap-controller',
    'start-kubernetes-service-cidr-controller',
    'start-kube-aggregator-informers',
    'apiservice-status-local-available-controller',
    'apiservice-status-remote-available-controller',
    'apiservice-registration-controller',
    'apiservice-discovery-controller',
    'kube-apiserver-autoregistration',
  ].map((hook) => `poststarthook/${hook}`),
  'autoregister-completion',
  'poststarthook/apiservice-openapi-controller',
  'poststarthook/apiservice-openapiv3-controller',
];

const HEALTH = ['ping', 'log', 'loopback-serving-certificate', 'etcd', ...STARTED];

/** The checks of each endpoint, with names of kube-apiserver that probes and scripts request. */
const ENDPOINTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['healthz', HEALTH],
  ['livez', HEALTH],
  ['readyz', ['ping', 'log', 'etcd', 'etcd-readiness', 'informer-sync', ...STARTED, 'shutdown']],
]);

/**
 * Answers `/healthz`, `/livez`, `/readyz` and the paths of their checks; undefined for other paths. A server
 * that answers is healthy, so no check fails. As upstream, the method does not matter.
 *
 * @param counts number of answers of each endpoint, for `healthMetrics`
 */
export function healthResponse(
  { segments, query }: Target,
  counts: Map<string, number>,
): HttpResponse | undefined {
  const [endpoint = '', ...check] = segments;
  const checks = ENDPOINTS.get(endpoint);
  if (!checks) return undefined;
  if (check.length > 0) {
    return checks.includes(check.join('/')) ? textResponse(200, 'ok') : undefined;
  }
  counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  if (!query.has('verbose')) return textResponse(200, 'ok');
  const excluded = new Set(query.getAll('exclude').flatMap((names) => names.split(',')));
  const lines = checks.map((name) => `[+]${name} ${excluded.has(name) ? 'excluded: ' : ''}ok`);
  const unknown = [...excluded].filter((name) => name !== '' && !checks.includes(name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(',');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  return textResponse(200, `${lines.join('\n')}\n${endpoint} check passed\n`);
}

/** Returns the metrics of `/metrics/slis`: the result of each check, and how often endpoints were requested. */
export function healthMetrics(counts: ReadonlyMap<string, number>): string {
  const series = (name: string, status: string, valueOf: (endpoint: string) => number) =>
    [...ENDPOINTS].flatMap(([type, checks]) =>
      checks.map((check) => `${name}{name="${check}",${status}type="${type}"} ${valueOf(type)}`),
    );
  const lines = [
    '# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.',
    '# TYPE kubernetes_healthcheck gauge',
    ...series('kubernetes_healthcheck', '', () => 1),
    '# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.',
    '# TYPE kubernetes_healthchecks_total counter',
    ...series(
      'kubernetes_healthchecks_total',
      'status="success",',
      (type) => counts.get(type) ?? 0,
    ),
  ];
  return `${lines.join('\n')}\n`;
}
