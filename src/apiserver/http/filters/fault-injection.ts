import type { HttpResponse } from '../../../util/http.ts';
import type { Authenticator, User } from '../../../api/user.ts';
import { impersonatedUser } from '../../auth/impersonation.ts';
import { faultStatus, StatusError } from '../../objects/status-error.ts';
import type { FaultPlan, Faults } from '../faults.ts';
import { ConnectionReset } from '../faults.ts';
import { senderOf } from './authentication.ts';
import type { Filter, FilteredRequest } from './filter.ts';

/** Injects faults: delays, errors instead of the handling, and lost responses. */
export function withFaults(faults: Faults, authenticator: Authenticator): Filter {
  return async (filtered, next) => {
    const { request, record } = filtered;
    if (faults.areActive) {
      const user = userOf(filtered, authenticator);
      if (user) record.user = user;
    }
    const plan = await faults.before(record, request.signal);
    request.signal?.throwIfAborted();
    const response = await next({ ...filtered, fault: (plan && errorOf(plan)) ?? filtered.fault });
    try {
      if (plan?.failure === 'lostResponse') throw new ConnectionReset();
      if (faults.hasAfterHooks) await faults.after(record, response);
    } catch (error) {
      await discard(response);
      throw error;
    }
    return response;
  };
}

/** Returns the user for whom the request is to be served, or undefined if the authentication fails later. */
function userOf(filtered: FilteredRequest, authenticator: Authenticator): User | undefined {
  try {
    return impersonatedUser(filtered.request) ?? senderOf(filtered, authenticator);
  } catch (error) {
    if (error instanceof StatusError) return undefined;
    throw error;
  }
}

function errorOf({ failure, retryAfterSeconds }: FaultPlan): Error | undefined {
  if (typeof failure === 'number') return faultStatus(failure, retryAfterSeconds);
  return failure === 'reset' ? new ConnectionReset() : undefined;
}

/** Ends a response without a reader. */
async function discard({ body }: HttpResponse): Promise<void> {
  await body[Symbol.asyncIterator]().return?.();
}
