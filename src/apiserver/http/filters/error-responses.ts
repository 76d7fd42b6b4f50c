import type { Logger } from '../../../util/logger.ts';
import { messageOf } from '../../../util/values.ts';
import { internalError, StatusError } from '../../objects/status-error.ts';
import { ConnectionReset } from '../faults.ts';
import { errorResponse, prettyPrint } from '../response-encoding.ts';
import type { ServedResponse } from '../response.ts';
import type { FilteredRequest, Filter } from './filter.ts';

/** Turns the errors of the filters below into responses. Rejects only where a connection would break. */
export function withErrorResponses(log: Logger): Filter {
  return async (filtered, next) => {
    const { request, record, fault } = filtered;
    try {
      if (fault) throw fault;
      return await next(filtered);
    } catch (error) {
      if (error instanceof StatusError) return responseTo(error, filtered);
      if (error instanceof ConnectionReset || request.signal?.aborted) throw error;
      const { method, path } = record;
      log.error(error, 'Request failed', { method, path });
      const status = internalError(messageOf(error));
      filtered.audit?.failed(status);
      return errorResponse(status, undefined);
    }
  };
}

function responseTo(
  error: StatusError,
  { request, notes, audit }: FilteredRequest,
): ServedResponse {
  audit?.failed(error);
  return prettyPrint(errorResponse(error, request.headers['accept'], notes.warnings), request);
}
