import type { RequestLog } from '../../apiserver/audit/request-log.ts';
import type { Clock } from '../../util/clock.ts';
import type { HttpHandler, HttpRequest } from '../../util/http.ts';
import { CLUSTER_CONTROLLERS_AGENT } from './cluster-pages.ts';

/**
 * Time between a client's write and the next one of the cluster controllers. Without it, they change an object
 * before a client that has just created it can send the next request, and that request fails with a conflict. On a
 * cluster this is rare, because its controllers are slower.
 */
const AFTER_CLIENT_MS = 50;

/** Duration of each write of the cluster controllers: a usual one on a cluster. */
const WRITE_MS = 10;

/**
 * Delays the writes of the cluster controllers, which are faster in this process than on a cluster. Lets requests of
 * clients proceed between their reads.
 */
export function paced(
  send: HttpHandler,
  { requests, clock }: { readonly requests: RequestLog; readonly clock: Clock },
): HttpHandler {
  return async (request) => {
    if (isWrite(request)) {
      const start = clock.now() - AFTER_CLIENT_MS;
      const last = requests.recent.findLast(
        (record) => record.receivedMs <= start || isOfClient(record),
      );
      // The clock may have been set back since.
      const leftMs = Math.min((last?.receivedMs ?? start) - start, AFTER_CLIENT_MS);
      await clock.sleep(Math.max(leftMs, WRITE_MS), request.signal);
    } else {
      // One object can need thousands of reads, such as of its owners.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return send(request);
  };
}

function isWrite({ method }: Pick<HttpRequest, 'method'>): boolean {
  return method !== 'GET';
}

function isOfClient(record: RequestLog['recent'][number]): boolean {
  return isWrite(record) && record.userAgent !== CLUSTER_CONTROLLERS_AGENT;
}
