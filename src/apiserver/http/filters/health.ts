import type { ApiServerMetrics } from '../../../metrics/api-server-metrics.ts';
import { healthMetrics, healthResponse } from '../health.ts';
import { textResponse } from '../response.ts';
import type { Filter } from './filter.ts';

/** Answers health checks, and scrapes if the server records metrics. */
export function withHealth(metrics: ApiServerMetrics | undefined): Filter {
  const counts = new Map<string, number>();
  return async (filtered, next) => {
    const { request, target, record } = filtered;
    if (record.info) return next(filtered);
    const health = target.endsWithSlash ? undefined : healthResponse(target, counts);
    if (health) return health;
    const path = target.segments.join('/');
    if (!metrics || request.method !== 'GET') return next(filtered);
    if (path === 'metrics/slis') return textResponse(200, healthMetrics(counts));
    if (path !== 'metrics') return next(filtered);
    const { contentType, text } = await metrics.expose();
    const response = textResponse(200, text);
    return { ...response, headers: { ...response.headers, 'content-type': contentType } };
  };
}
