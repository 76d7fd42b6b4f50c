import type { Authorizer } from '../../../api/policy-rule.ts';
import { actionOf } from '../../auth/access.ts';
import { accessDenied } from '../../objects/status-error.ts';
import type { Filter } from './filter.ts';

/** Rejects a request with 403 if its user may not send it. */
export function withAuthorization(authorizer: Authorizer): Filter {
  return (filtered, next) => {
    const { request, record, user, audit } = filtered;
    const action = actionOf(request, record.info);
    const { allowed, reason } = authorizer.authorize(user, action);
    audit?.authorized(allowed, reason);
    if (!allowed) throw accessDenied(user, action, reason);
    return next(filtered);
  };
}
