import { parseTarget, requestInfo } from '../../src/apiserver/request/request-info.ts';
import type { RequestInfo } from '../../src/apiserver/request/request-info.ts';
import type { HttpHandler, HttpResponse } from '../../src/util/http.ts';

/**
 * An authorizer in front of a server. Rejects requests that `isAllowed` does not allow with the message of a
 * kube-apiserver, and records them.
 */
export class Access {
  /** `list pods in b`, `watch counts` */
  readonly refused: string[] = [];
  isAllowed: (info: RequestInfo) => boolean;

  constructor(isAllowed: (info: RequestInfo) => boolean) {
    this.isAllowed = isAllowed;
  }

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const info = requestInfo(request.method, parseTarget(request.path));
      if (!info || this.isAllowed(info)) return handler(request);
      const { verb, resource, namespace } = info;
      this.refused.push(`${verb} ${resource}${namespace ? ` in ${namespace}` : ''}`);
      return refusal(info);
    };
}

function refusal({ verb, group, resource, namespace }: RequestInfo): HttpResponse {
  const name = group ? `${resource}.${group}` : resource;
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope';
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `${name} is forbidden: User "jane" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`,
    reason: 'Forbidden',
    details: { group, kind: resource },
    code: 403,
  };
  return {
    status: 403,
    headers: { 'content-type': 'application/json' },
    body: (async function* () {
      yield Buffer.from(JSON.stringify(status));
    })(),
  };
}
