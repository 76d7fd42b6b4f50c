import type { HttpHandler, HttpRequest, HttpResponse } from '../../util/http.ts';
import type { LogOptions } from './container-log.ts';

/** Request for the log of a container. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly options: LogOptions;
  /** Whether the response continues until the container exits. */
  readonly follow: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Response to a log request. Error messages are those of kubelets. */
export type LogResponse =
  | { readonly kind: 'log'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'error'; readonly status: 400 | 404; readonly message: string };

/**
 * HTTP API of a kubelet, to which API servers forward: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.
 *
 * @param now milliseconds since the epoch
 */
export function kubeletApi(
  readLog: (request: LogRequest) => LogResponse,
  now: () => number,
): HttpHandler {
  return async (request) => {
    const logRequest = logRequestOf(request, now());
    if (!logRequest) return response(404, once('404 page not found\n'));
    const log = readLog(logRequest);
    if (log.kind === 'error') return response(log.status, once(log.message));
    return response(200, log.body);
  };
}

/** Returns undefined for other requests. */
function logRequestOf({ method, path, signal }: HttpRequest, now: number): LogRequest | undefined {
  const { pathname, searchParams } = new URL(path, 'https://kubelet');
  const [, root, namespace, pod, container, ...rest] = pathname.split('/');
  if (method !== 'GET' || root !== 'containerLogs' || rest.length > 0) return undefined;
  if (!namespace || !pod || !container) return undefined;
  const flag = (name: string) => searchParams.get(name) === 'true';
  const number = (name: string) => {
    const text = searchParams.get(name);
    return text === null ? undefined : Number(text);
  };
  const sinceTime = searchParams.get('sinceTime');
  const sinceSeconds = number('sinceSeconds');
  const sinceMs = sinceSeconds === undefined ? undefined : now - sinceSeconds * 1000;
  return {
    namespace,
    pod,
    container,
    follow: flag('follow'),
    signal,
    options: {
      previous: flag('previous'),
      timestamps: flag('timestamps'),
      sinceMs: sinceTime === null ? sinceMs : Date.parse(sinceTime),
      tailLines: number('tailLines'),
      limitBytes: number('limitBytes'),
    },
  };
}

function response(status: number, body: AsyncIterable<Uint8Array>): HttpResponse {
  return { status, headers: { 'content-type': 'text/plain' }, body };
}

async function* once(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(text);
}
