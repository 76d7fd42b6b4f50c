import type { Registry } from '../objects/registry.ts';

/** Returns the paths that the root of the server lists. */
export function rootPaths(registry: Registry, hasMetrics: boolean): string[] {
  const paths = [
    '/.well-known/openid-configuration',
    '/api',
    '/apis',
    '/healthz',
    '/livez',
    ...(hasMetrics ? ['/metrics', '/metrics/slis'] : []),
    '/openapi/v2',
    '/openapi/v3',
    '/openid/v1/jwks',
    '/readyz',
    '/version',
  ];
  for (const { name, versions } of registry.groups()) {
    const root = name ? `/apis/${name}` : '/api';
    if (name) paths.push(root);
    for (const { version } of versions) paths.push(`${root}/${version}`);
  }
  return paths.sort();
}
