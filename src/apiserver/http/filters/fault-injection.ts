import type { HttpResponse } from '../../../util/http.ts';
import { faultStatus } from '../../objects/status-error.ts';
import type { FaultPlan, Faults } from '../faults.ts';
import { ConnectionReset } from '../faults.ts';
import type { Filter } from './filter.ts';

/** Injects faults: delays, errors instead of the handling, and lost responses. */
export function withFaults(faults: Faults): Filter {
  return async (filtered, next) => {
    const { request, record } = filtered;
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

function errorOf({ failure, retryAfterSeconds }: FaultPlan): Error | undefined {
  if (typeof failure === 'number') return faultStatus(failure, retryAfterSeconds);
  return failure === 'reset' ? new ConnectionReset() : undefined;
}

/** Ends a response without a reader. */
async function discard({ body }: HttpResponse): Promise<void> {
  await body[Symbol.asyncIterator]().return?.();
}
