import type { Authorizer } from '../../../api/policy-rule.ts';
import { LruMap } from '../../../util/lru-map.ts';
import { actionOf } from '../../auth/access.ts';
import type { ImpersonationMode } from '../../auth/impersonation.ts';
import { authorizeImpersonation, impersonatedUser } from '../../auth/impersonation.ts';
import type { Filter } from './filter.ts';

/** Serves the request for the user in its impersonation headers. Rejects it with 403 if the sender may not do so. */
export function withImpersonation(authorizer: Authorizer): Filter {
  /** The last impersonation mode of each user. */
  const lastModes = new LruMap<string, ImpersonationMode>(10_000);
  return (filtered, next) => {
    const { request, record, user: sender, audit } = filtered;
    const wanted = impersonatedUser(request);
    if (!wanted) return next(filtered);
    const action = actionOf(request, record.info);
    const impersonation = authorizeImpersonation(authorizer, lastModes, sender, wanted, action);
    const { user } = impersonation;
    record.user = user;
    audit?.impersonated(impersonation);
    return next({ ...filtered, user });
  };
}
