import { splitKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { CallOptions, Client } from '../client/client.ts';
import type { CallTrace, HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import { formatCause } from '../workqueue/queue-item.ts';
import type { SyncReport, SyncRun } from '../workqueue/sync-report.ts';

type Attributes = Record<string, string | number | boolean | string[]>;

/** The part of a span of OpenTelemetry that tracing uses. */
export interface OpenTelemetrySpan {
  /** Sets attributes by name. */
  setAttributes(attributes: Attributes): unknown;
  /** Sets the status, a `SpanStatusCode`. */
  setStatus(status: { code: number; message?: string }): unknown;
  /** Records an error as an event of the span. */
  recordException(exception: Error | string): void;
  /** Ends the span. */
  end(): void;
}

/** The part of a tracer of OpenTelemetry that tracing uses. */
export interface OpenTelemetryTracer {
  /**
   * Starts a span.
   *
   * @param options.kind a `SpanKind`
   * @param context has the parent
   */
  startSpan(
    name: string,
    options: { kind: number; attributes: Attributes },
    context?: object,
  ): OpenTelemetrySpan;
}

/**
 * The part of the package `@opentelemetry/api` that tracing uses. Pass the module itself:
 * `import * as opentelemetry from '@opentelemetry/api'`. The library does not import the package.
 */
export interface OpenTelemetryApi {
  /** The context without a span. */
  readonly ROOT_CONTEXT: object;
  /** Tracers and spans. */
  readonly trace: {
    /** Returns the tracer of a library. */
    getTracer(name: string): OpenTelemetryTracer;
    /** Returns a context with `span`. */
    setSpan(context: object, span: OpenTelemetrySpan): object;
  };
  /** The current context. */
  readonly context: {
    /** Calls `call` in a context. */
    with<R>(context: object, call: () => R): R;
  };
  /** Propagation to other processes. */
  readonly propagation: {
    /** Writes the context to headers. */
    inject(context: object, carrier: Record<string, string>): void;
  };
}

/** Name of the tracer. */
const TRACER = 'crd-controller';

/** Values of the enums `SpanKind` and `SpanStatusCode`. */
const INTERNAL = 0;
const CLIENT = 2;
const ERROR = 2;

/**
 * Creates a span for each sync of a controller, with a child span for each HTTP request of its API calls. The sync
 * handler runs in the context of the span, so that spans of other libraries become its children, too.
 */
export class SyncTracer {
  readonly #api: OpenTelemetryApi;
  readonly #tracer: OpenTelemetryTracer;
  readonly #controller: string;
  readonly #kind: string;
  /** Running syncs. */
  readonly #spans = new Map<ObjectKey, OpenTelemetrySpan>();

  constructor(api: OpenTelemetryApi, controller: string, kind: string) {
    this.#api = api;
    this.#tracer = api.trace.getTracer(TRACER);
    this.#controller = controller;
    this.#kind = kind;
  }

  /** Starts the span of a sync. */
  start(key: ObjectKey, run: SyncRun): SyncTrace {
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
    const { ROOT_CONTEXT, trace } = this.#api;
    const options = { kind: INTERNAL, attributes };
    const span = this.#tracer.startSpan(`sync ${this.#controller}`, options, ROOT_CONTEXT);
    this.#spans.set(key, span);
    return new SyncTrace(this.#api, this.#tracer, trace.setSpan(ROOT_CONTEXT, span));
  }

  /** Ends the span of a sync. A sync that was postponed before it started has none. */
  finish({ key, result, requeueAfterMs, reason, error }: SyncReport<ObjectKey>): void {
    const span = this.#spans.get(key);
    if (!span) return;
    this.#spans.delete(key);
    span.setAttributes({
      'reconcile.result': result,
      ...(requeueAfterMs !== undefined && { 'reconcile.requeue_after_ms': requeueAfterMs }),
      ...(reason !== undefined && { 'reconcile.reason': reason }),
    });
    if (error !== undefined) fail(span, error);
    span.end();
  }
}

/** The span of one sync, as the parent of others. */
export class SyncTrace {
  readonly #api: OpenTelemetryApi;
  readonly #tracer: OpenTelemetryTracer;
  readonly #context: object;

  constructor(api: OpenTelemetryApi, tracer: OpenTelemetryTracer, context: object) {
    this.#api = api;
    this.#tracer = tracer;
    this.#context = context;
  }

  /** Calls `handler` in the context of the span. */
  run<R>(handler: () => R): R {
    return this.#api.context.with(this.#context, handler);
  }

  /** Returns a client whose calls are children of the span. */
  client(client: Client): Client {
    const traced = <O extends CallOptions>(
      options: O | undefined,
      resource?: Resource,
      subresource?: string,
    ): O & CallOptions => ({
      ...(options as O),
      trace: this.#call(resource && groupResourceOf(resource), subresource),
    });
    const { isDryRun = false } = client;
    return {
      isDryRun,
      get: (resource, at, options) => client.get(resource, at, traced(options, resource)),
      list: (resource, options) => client.list(resource, traced(options, resource)),
      watch: (resource, options) => client.watch(resource, traced(options, resource)),
      create: (resource, object, options) =>
        client.create(resource, object, traced(options, resource)),
      update: (resource, object, options) =>
        client.update(resource, object, traced(options, resource, options?.subresource)),
      patch: (resource, at, patch, options) =>
        client.patch(resource, at, patch, traced(options, resource, options?.subresource)),
      delete: (resource, at, options) => client.delete(resource, at, traced(options, resource)),
      raw: (request) => client.raw(traced(request)),
    };
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
    const span = this.#tracer.startSpan(name, { kind: CLIENT, attributes }, this.#context);
    const headers = { ...request.headers };
    this.#api.propagation.inject(this.#api.trace.setSpan(this.#context, span), headers);
    try {
      const response = await handler({ ...request, headers });
      const { status } = response;
      span.setAttributes({ 'http.response.status_code': status });
      if (status >= 400) {
        span.setAttributes({ 'error.type': String(status) });
        span.setStatus({ code: ERROR });
      }
      return response;
    } catch (error) {
      span.setAttributes({ 'error.type': error instanceof Error ? error.name : '_OTHER' });
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  }
}

function fail(span: OpenTelemetrySpan, error: unknown): void {
  const exception = error instanceof Error ? error : String(error);
  span.recordException(exception);
  span.setStatus({
    code: ERROR,
    message: typeof exception === 'string' ? exception : exception.message,
  });
}
