import type { Auditor } from '../../audit/audit.ts';
import type { Filter } from './filter.ts';

/** Records the audit events of the request. A watch is complete when it ends. */
export function withAudit(auditor: Auditor | undefined): Filter {
  return async (filtered, next) => {
    const { request, record, notes, end } = filtered;
    const audit = auditor?.start(request, record.info);
    if (!audit) return next(filtered);
    const response = await next({ ...filtered, audit });
    end.whenEnded(() => audit.completed(response.status, notes.annotations));
    return response;
  };
}
