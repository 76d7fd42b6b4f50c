/**
 * One HTTP exchange as plain data. This is the seam between a client and whatever answers it: a
 * function of this type sends over TLS, another calls a server in the same process.
 */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path with its query: `/api/v1/pods?limit=500`. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Aborting ends the exchange, also while the answer's body is being read. */
  readonly signal?: AbortSignal;
  /**
   * The answer goes on without end and may be silent for long. A transport carries it where it can
   * tell silence from death, if it knows such a place.
   * @default false
   */
  readonly endless?: boolean;
  /**
   * Called in the moment the request would go out, which may be long after it was made: it may have
   * waited for a connection. What it throws is what the sender gets, and nothing is sent. Handlers
   * that answer by themselves need not call it: there, no time passes in between.
   */
  readonly beforeSend?: () => void;
}

/** Of a connection that is asked for a sign of life when it is silent. */
export interface Pulse {
  /** `Clock.monotonic()` at the last sign of life. */
  readonly lastMs: number;
}

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The body as it arrives. It can be iterated once; leaving the iteration early closes the
   * exchange. Aborting the request's signal makes it throw the signal's reason.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Of the connection under the body; absent where nobody asks for signs of life. */
  readonly pulse?: Pulse;
}

/** Resolves once the answer's headers are there; rejects if there was no answer. */
export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;
