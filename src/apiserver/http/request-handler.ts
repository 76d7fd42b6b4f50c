import type { HttpRequest } from '../../util/http.ts';
import type { Logger } from '../../util/logger.ts';
import { ANONYMOUS } from '../../api/user.ts';
import type { Auditor } from '../audit/audit.ts';
import type { RequestLog, RequestRecord } from '../audit/request-log.ts';
import type { ObservedRbac } from '../auth/observed-rbac.ts';
import type { KubernetesVersion } from '../objects/kubernetes-version.ts';
import { StatusError } from '../objects/status-error.ts';
import type { Backend } from '../operations/call.ts';
import type { IncomingRequest } from '../request/request-body.ts';
import type { Target } from '../request/request-info.ts';
import { parseTarget, requestInfo } from '../request/request-info.ts';
import type { Faults } from './faults.ts';
import { withAudit } from './filters/audit.ts';
import { withAuthentication } from './filters/authentication.ts';
import { withAuthorization } from './filters/authorization.ts';
import { withReceivedBody } from './filters/body.ts';
import { withDocuments } from './filters/documents.ts';
import { withErrorResponses } from './filters/error-responses.ts';
import { withFaults } from './filters/fault-injection.ts';
import type { FilteredRequest } from './filters/filter.ts';
import { chain, ResponseEnd } from './filters/filter.ts';
import { withHealth } from './filters/health.ts';
import { withImpersonation } from './filters/impersonation.ts';
import { withMetrics } from './filters/metrics.ts';
import { withNotFound } from './filters/not-found.ts';
import { withRequestLog } from './filters/request-log.ts';
import { withValidRequestLine } from './filters/request-line.ts';
import { withResources } from './filters/resources.ts';
import type { OpenStreams } from './open-streams.ts';
import type { Compression, ServedResponse } from './response.ts';

/** Dependencies of `requestHandler`. */
export interface RequestHandlerDeps {
  readonly backend: Backend;
  readonly faults: Faults;
  readonly requests: RequestLog;
  readonly observed: ObservedRbac;
  readonly streams: OpenStreams;
  readonly compression: Compression | undefined;
  readonly auditor: Auditor | undefined;
  readonly log: Logger;
  /** Version that `/version` shows. */
  readonly kubernetesVersion: KubernetesVersion;
}

/**
 * Handles a request, from the network or from this process. Rejects only where a connection would break.
 *
 * @param authenticate whether the request needs credentials
 */
export type RequestHandler = (
  request: IncomingRequest,
  authenticate: boolean,
) => Promise<ServedResponse>;

/** Returns the handler of all requests: a chain of filters. */
export function requestHandler(deps: RequestHandlerDeps): RequestHandler {
  const { backend, kubernetesVersion: version } = deps;
  const { access, clock, metrics, registry, tokens } = backend;
  const handle = chain([
    withRequestLog(deps.requests),
    withFaults(deps.faults, access),
    withAudit(deps.auditor),
    withErrorResponses(deps.log),
    withValidRequestLine(registry),
    withAuthentication(access),
    withImpersonation(access),
    withAuthorization(access),
    withReceivedBody(),
    withMetrics(backend),
    withResources(backend, deps.streams, deps.compression),
    withHealth(metrics),
    withDocuments({ registry, tokens, observed: deps.observed, version, hasMetrics: !!metrics }),
    withNotFound(registry),
  ]);
  return async (request, authenticate) => {
    request.signal?.throwIfAborted();
    const { method, path } = request;
    const pause = clock.active?.({ kind: 'request', method, path });
    if (pause) await pause;
    const { target, fault } = targetOf(request);
    return handle({
      request,
      target,
      record: recordOf(request, fault ? undefined : target, clock.now()),
      authenticate,
      notes: { warnings: [], annotations: new Map() },
      audit: undefined,
      fault,
      user: ANONYMOUS,
      end: new ResponseEnd(),
    });
  };
}

/** Returns the parsed path; of a malformed one, an empty path and the 400. */
function targetOf({ path }: HttpRequest): Pick<FilteredRequest, 'target' | 'fault'> {
  try {
    return { target: parseTarget(path), fault: undefined };
  } catch (error) {
    if (error instanceof StatusError) return { target: parseTarget(''), fault: error };
    throw error;
  }
}

/** Returns the log record of a request. A malformed path has no resource. */
function recordOf(
  { method, path, headers }: HttpRequest,
  target: Target | undefined,
  receivedMs: number,
): RequestRecord {
  const info = target && requestInfo(method, target);
  return { method, path, info, userAgent: headers['user-agent'] ?? '', receivedMs };
}
