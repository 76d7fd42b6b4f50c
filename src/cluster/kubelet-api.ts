import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import type { LogOptions } from './container-log.ts';

/** The log of one container. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly options: LogOptions;
  /** Go on until the container ends. */
  readonly follow: boolean;
  readonly signal: AbortSignal | undefined;
}

/** What a kubelet says to such a request; a refusal is in its words. */
export type LogAnswer =
  | { readonly kind: 'log'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'refused'; readonly status: 400 | 404; readonly message: string };

/**
 * The HTTP API of a kubelet, which API servers forward to: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.
 *
 * @param now milliseconds since the epoch
 */
export function kubeletApi(
  readLog: (request: LogRequest) => LogAnswer,
  now: () => number,
): HttpHandler {
  return async (request) => {
    const logRequest = logRequestOf(request, now());
    if (!logRequest) return response(404, once('404 page not found\n'));
    const answer = readLog(logRequest);
    if (answer.kind === 'refused') return response(answer.status, once(answer.message));
    return response(200, answer.body);
  };
}

/** Undefined if it is about something else. */
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
