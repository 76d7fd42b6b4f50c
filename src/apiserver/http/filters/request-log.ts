import { ANONYMOUS } from '../../../api/user.ts';
import type { RequestLog } from '../../audit/request-log.ts';
import type { Filter } from './filter.ts';

/** Adds the request, and then the status of its response, to the log of requests. */
export function withRequestLog(requests: RequestLog): Filter {
  return async (filtered, next) => {
    const { record } = filtered;
    requests.add(record);
    const response = await next(filtered);
    record.status = response.status;
    if (record.user !== ANONYMOUS) return response;
    // As upstream, an HTTP/2 connection of an unauthenticated client is closed.
    return { ...response, headers: { ...response.headers, connection: 'close' } };
  };
}
