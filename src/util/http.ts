/**
 * An HTTP request as plain data. `HttpHandler` is the interface between a client and its transport: one
 * implementation sends requests over TLS, another calls a server in the same process.
 */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path with query: `/api/v1/pods?limit=500`. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Ends the exchange when it aborts, also while the response body is read. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Marks a request whose response has no end, such as a watch, and may be idle for a long time. Transports
   * use a connection with health checks for it if they can.
   * @default false
   */
  readonly longRunning?: boolean | undefined;
  /**
   * Called immediately before the request is sent, which can be long after the call because requests wait
   * for connections. If it throws, nothing is sent and the request fails with its error. Handlers in the
   * same process need not call it, since they do not wait.
   */
  readonly beforeSend?: (() => void) | undefined;
}

/** The activity of a connection that has health checks. */
export interface ConnectionActivity {
  /** `Clock.monotonic()` at the last received byte or answered ping. */
  readonly lastMs: number;
}

/** The body of a response. */
export interface ResponseBody extends AsyncIterable<Uint8Array> {
  /**
   * Returns all bytes if they have arrived, instead of an iteration, which costs several promises. Undefined if they
   * have not arrived, or if they were read.
   */
  received?(): Uint8Array | undefined;
}

/** Returns the body of a response without content. */
export async function* emptyBody(): AsyncGenerator<Uint8Array, void, undefined> {}

/** A response, with a body that can be read once. */
export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The body as a stream that can be iterated once. Leaving the iteration early ends the exchange. If the
   * request's signal aborts, the iteration throws its reason.
   */
  readonly body: ResponseBody;
  /** The activity of the connection. Absent if the connection has no health checks. */
  readonly activity?: ConnectionActivity;
}

/** Records the HTTP requests of one API call. */
export interface CallTrace {
  /**
   * Sends a request by `handler`, and records it.
   *
   * @param server address of the server: `https://10.0.0.1:6443`
   */
  send(handler: HttpHandler, request: HttpRequest, server: string): Promise<HttpResponse>;
}

/** Resolves when the response headers have arrived. Rejects if there is no response. */
export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;
