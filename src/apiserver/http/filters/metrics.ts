import type { Backend } from '../../operations/call.ts';
import { StatusError } from '../../objects/status-error.ts';
import { measureRequest } from '../request-metrics.ts';
import type { Filter } from './filter.ts';

/** Measures requests to served resources. */
export function withMetrics(backend: Pick<Backend, 'registry' | 'clock' | 'metrics'>): Filter {
  if (!backend.metrics) return (filtered, next) => next(filtered);
  return async (filtered, next) => {
    const { request, record, end } = filtered;
    if (!record.info) return next(filtered);
    const ended = measureRequest(backend, request, record.info);
    try {
      const response = await next(filtered);
      end.whenEnded(() => ended(response.status));
      return response;
    } catch (error) {
      ended(error instanceof StatusError ? error.status.code : 500);
      throw error;
    }
  };
}
