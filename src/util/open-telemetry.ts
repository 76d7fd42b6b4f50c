/** Attributes of a span. */
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
    /** Returns `context` with the parent that the headers of a request name. */
    extract(context: object, carrier: object): object;
  };
}

/** Name of the tracer. */
export const TRACER = 'crd-controller';

/** Values of the enum `SpanKind`. */
export const SPAN_KIND = { internal: 0, server: 1, client: 2 } as const;

/** The value of the enum `SpanStatusCode` for an error. */
export const STATUS_ERROR = 2;

/** Records the error that ended the work of a span. */
export function failSpan(span: OpenTelemetrySpan, error: unknown): void {
  const exception = error instanceof Error ? error : String(error);
  span.recordException(exception);
  span.setStatus({
    code: STATUS_ERROR,
    message: typeof exception === 'string' ? exception : exception.message,
  });
}
