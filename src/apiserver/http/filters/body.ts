import { withBody } from '../../request/request-body.ts';
import type { Filter } from './filter.ts';

/** Receives the body of a request to a resource, whose definition may change while the body arrives. */
export function withReceivedBody(): Filter {
  return async (filtered, next) => {
    if (!filtered.record.info) return next(filtered);
    const request = await withBody(filtered.request);
    filtered.audit?.requested(request);
    return next({ ...filtered, request });
  };
}
