import { withBody } from '../../request/request-body.ts';
import type { Filter } from './filter.ts';

/** Receives the body, before the resource is looked up: its definition may change while the body arrives. */
export function withReceivedBody(): Filter {
  return async (filtered, next) => {
    const request = await withBody(filtered.request);
    filtered.audit?.requested(request);
    return next({ ...filtered, request });
  };
}
