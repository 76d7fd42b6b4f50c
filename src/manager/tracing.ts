import { splitKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import { failSpan, SPAN_KIND, STATUS_ERROR, TRACER } from '../util/open-telemetry.ts';
import type {
  OpenTelemetryApi,
  OpenTelemetrySpan,
  OpenTelemetryTracer,
} from '../util/open-telemetry.ts';
import type { CallTrace, HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import { formatCause } from '../workqueue/queue-item.ts';
import { hookedClient } from '../client/client-calls.ts';
import type { SyncReport, SyncRun } from '../workqueue/sync-report.ts';
import type { ControllerObserver, SyncHandler } from './controller-options.ts';

/**
 * Creates a span for each sync of a controller, with a child span for each HTTP request of its API calls. The sync
 * handler runs in the context of the span, so that spans of other libraries become its children, too.
 */
export class SyncTracer implements ControllerObserver {
  readonly #api: OpenTelemetryApi;
  readonly #tracer: OpenTelemetryTracer;
  readonly #controller: string;
  readonly #kind: string;
  /** Running syncs. */
  readonly #traces = new Map<ObjectKey, SyncTrace>();

  constructor(api: OpenTelemetryApi, controller: string, kind: string) {
    this.#api = api;
    this.#tracer = api.trace.getTracer(TRACER);
    this.#controller = controller;
    this.#kind = kind;
  }

  /** Returns a handler that runs in the context of the span of its sync. */
  wrap(handler: SyncHandler): SyncHandler {
    return (key, context) => {
      const trace = this.#traces.get(key);
      if (!trace) return handler(key, context);
      const client = trace.client(context.client);
      return trace.run(() => handler(key, { ...context, client }));
    };
  }

  /** Starts the span of a sync. */
  started(key: ObjectKey, run: SyncRun): void {
    const { namespace, name } = splitKey(key);
    const attributes = {
      'k8s.object.kind': this.#kind,
      'k8s.object.name': name,
      ...(namespace !== undefined && { 'k8s.namespace.name': namespace }),
      'reconcile.controller': this.#controller,
      'reconcile.id': run.reconcileID,
      'reconcile.causes': run.causes.map(formatCause),
      'reconcile.attempt': run.attempt,
      'reconcile.delayed_ms': run.delayedMs,
      'reconcile.queued_ms': run.queuedMs,
    };
    const options = { kind: SPAN_KIND.internal, attributes };
    const root = this.#api.ROOT_CONTEXT;
    const span = this.#tracer.startSpan(`sync ${this.#controller}`, options, root);
    this.#traces.set(key, new SyncTrace(this.#api, this.#tracer, span));
  }

  /** Ends the span of a sync. A sync that was postponed before it started has none. */
  ended({ key, result, requeueAfterMs, reason, error }: SyncReport<ObjectKey>): void {
    const span = this.#traces.get(key)?.span;
    if (!span) return;
    this.#traces.delete(key);
    span.setAttributes({
      'reconcile.result': result,
      ...(requeueAfterMs !== undefined && { 'reconcile.requeue_after_ms': requeueAfterMs }),
      ...(reason !== undefined && { 'reconcile.reason': reason }),
    });
    if (error !== undefined) failSpan(span, error);
    span.end();
  }
}

/** The span of one sync, as the parent of others. */
class SyncTrace {
  readonly span: OpenTelemetrySpan;
  readonly #api: OpenTelemetryApi;
  readonly #tracer: OpenTelemetryTracer;
  readonly #context: object;

  constructor(api: OpenTelemetryApi, tracer: OpenTelemetryTracer, span: OpenTelemetrySpan) {
    this.span = span;
    this.#api = api;
    this.#tracer = tracer;
    this.#context = api.trace.setSpan(api.ROOT_CONTEXT, span);
  }

  /** Calls `handler` in the context of the span. */
  run<R>(handler: () => R): R {
    return this.#api.context.with(this.#context, handler);
  }

  /** Returns a client whose calls are children of the span. */
  client(client: Client): Client {
    return hookedClient(client, ({ call: { resource, subresource }, options, send }) =>
      send({
        ...options,
        trace: this.#call(resource && groupResourceOf(resource), subresource),
      }),
    );
  }

  /** @param resource `counts.demo.mark8s.io`; undefined for other paths */
  #call(resource: string | undefined, subresource: string | undefined): CallTrace {
    const parts = [resource, subresource].filter((part) => part !== undefined);
    let sent = 0;
    return {
      send: (handler, request, server) =>
        this.#send(handler, request, { server, target: parts.join('/'), resends: sent++ }),
    };
  }

  async #send(
    handler: HttpHandler,
    request: HttpRequest,
    { server, target, resends }: { server: string; target: string; resends: number },
  ): Promise<HttpResponse> {
    const { method, path } = request;
    const url = URL.parse(server);
    const attributes = {
      'http.request.method': method,
      'url.full': server + path,
      'server.address': url?.hostname ?? server,
      ...(url && { 'server.port': Number(url.port || (url.protocol === 'http:' ? 80 : 443)) }),
      ...(resends > 0 && { 'http.request.resend_count': resends }),
    };
    const name = target === '' ? method : `${method} ${target}`;
    const span = this.#tracer.startSpan(
      name,
      { kind: SPAN_KIND.client, attributes },
      this.#context,
    );
    const headers = { ...request.headers };
    this.#api.propagation.inject(this.#api.trace.setSpan(this.#context, span), headers);
    try {
      const response = await handler({ ...request, headers });
      const { status } = response;
      span.setAttributes({ 'http.response.status_code': status });
      if (status >= 400) {
        span.setAttributes({ 'error.type': String(status) });
        span.setStatus({ code: STATUS_ERROR });
      }
      return response;
    } catch (error) {
      span.setAttributes({ 'error.type': error instanceof Error ? error.name : '_OTHER' });
      failSpan(span, error);
      throw error;
    } finally {
      span.end();
    }
  }
}
