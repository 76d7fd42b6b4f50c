import { noWebhookMetrics } from '../metrics/no-metrics.ts';
import type { WebhookMetrics, WebhookPathMetrics } from '../metrics/webhook-metrics.ts';
import { OVERLOADED } from '../serving/routes.ts';
import type { Refusal } from '../serving/http-server.ts';
import { rejectOnAbort } from '../util/abort.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { silentLogger } from '../util/logger.ts';
import { OverloadedError } from '../util/memory-budget.ts';
import type { MemoryBudgetOptions } from '../util/memory-budget.ts';
import { occurrenceFields, RateLimitedLog } from '../util/rate-limited-log.ts';
import { isRecord } from '../util/values.ts';
import { TimeoutError, withinTimeout } from '../util/within-timeout.ts';
import { failSpan, SPAN_KIND, TRACER } from '../util/open-telemetry.ts';
import type { OpenTelemetryApi, OpenTelemetrySpan } from '../util/open-telemetry.ts';
import { BadReview, reviewAdmission } from './admission-review.ts';
import type { Unchecked } from './admission-review.ts';
import { reviewConversion } from './conversion-review.ts';
import { CONVERSION_PATH } from './declaration.ts';
import type { AdmissionEntry, WebhookEntries } from './declaration.ts';
import { ReviewBodies } from './review-body.ts';
import type { ReviewType } from './review-body.ts';

/** Dependencies of reviews; all have defaults. */
export interface ReviewerDeps {
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** @default no logs */
  readonly log?: Logger | undefined;
  /** @default none */
  readonly metrics?: WebhookMetrics | undefined;
  /** Creates a span for each review. @default none */
  readonly tracing?: OpenTelemetryApi | undefined;
}

/** A webhook without a server: gets the `request` of a review and returns its `response`. */
export type ReviewFunction = (request: Unchecked) => Promise<Unchecked>;

/** A request to a webhook. */
export interface ReviewRequest {
  readonly path: string;
  readonly body: Buffer;
  /** Value of the parameter `timeout`: `10s`. */
  readonly timeout: string | undefined;
  readonly headers: object;
  /** Aborts when the client closes the connection. */
  readonly signal: AbortSignal;
}

/** The response to a request: a review in JSON if the status is 200, otherwise a text. */
export interface ReviewReply {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Outcome of a review, for the log and the span. It has no content of objects. */
interface Outcome extends ReviewReply {
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly error?: unknown;
}

/** Maximum timeout of a call by an API server, in milliseconds. */
const MAX_TIMEOUT_MS = 30_000;

const ADMISSION = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  // Two typical objects of 1.5 MiB, the limit of etcd, need half of it.
  maxBytes: 48 * 1024 ** 2,
};
const VALIDATING: ReviewType = { ...ADMISSION, copies: 1 };
const MUTATING: ReviewType = { ...ADMISSION, copies: 3 };
const CONVERSION: ReviewType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'ConversionReview',
  maxBytes: 256 * 1024 ** 2,
  copies: 2,
};

/**
 * Answers reviews by the declared functions. A function that fails or that exceeds the timeout is answered with status
 * 500 or 504, so that the API server applies the failure policy of the webhook.
 */
export class Reviewer {
  readonly #entries: WebhookEntries;
  readonly #admission: ReadonlyMap<string, AdmissionEntry>;
  readonly #metrics: ReadonlyMap<string, WebhookPathMetrics>;
  readonly #panic: WebhookMetrics['panic'];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #tracing: OpenTelemetryApi | undefined;
  readonly #bodies: ReviewBodies;
  readonly #refusals: RateLimitedLog;

  /** @param memory memory for the reviews in progress */
  constructor(
    entries: WebhookEntries,
    deps: ReviewerDeps = {},
    memory: Omit<Partial<MemoryBudgetOptions>, 'clock'> = {},
  ) {
    const { clock = systemClock, log = silentLogger, metrics = noWebhookMetrics } = deps;
    this.#entries = entries;
    this.#admission = new Map(entries.admission.map((entry) => [entry.path, entry]));
    const paths = [...this.#admission.keys()];
    if (entries.conversions.length > 0) paths.push(CONVERSION_PATH);
    this.#metrics = new Map(paths.map((path) => [path, metrics.path(path)]));
    this.#panic = (type) => metrics.panic(type);
    this.#clock = clock;
    this.#log = log;
    this.#tracing = deps.tracing;
    this.#refusals = new RateLimitedLog(clock);
    this.#bodies = new ReviewBodies({ ...memory, clock });
  }

  /** The served paths. */
  get paths(): readonly string[] {
    return [...this.#metrics.keys()];
  }

  /**
   * Returns the functions by URL, for webhook configurations that name `baseUrl`. They get the `request` of a review and
   * return its `response`. They throw where a server would answer without a review.
   */
  functions(baseUrl: string): Readonly<Record<string, ReviewFunction>> {
    const base = baseUrl.replace(/\/$/, '');
    return Object.fromEntries(
      this.paths.map((path) => [`${base}${path}`, (request) => this.#call(path, request)]),
    );
  }

  async #call(path: string, request: Unchecked): Promise<Unchecked> {
    const { apiVersion, kind } = typeOf(this.#admission.get(path));
    const body = Buffer.from(JSON.stringify({ apiVersion, kind, request }));
    const { signal } = new AbortController();
    const reply = await this.review({ path, body, timeout: undefined, headers: {}, signal });
    if (reply.status !== 200) throw new Error(reply.body.trim());
    const { response } = JSON.parse(reply.body) as { readonly response: Unchecked };
    return response;
  }

  /** Logs and counts a request that the server refused before its review. */
  refused({ path, status, reason, address }: Refusal): void {
    const metrics = this.#metrics.get(path);
    metrics?.refused(status);
    // Others can send requests to any path.
    const webhook = metrics ? path : 'unknown';
    this.#refusals.report(`${webhook} ${status}`, address, (occurrences) => {
      const fields = {
        webhook,
        status,
        reason,
        ...occurrenceFields('client', 'clients', occurrences),
      };
      this.#log.info('Refused a request to a webhook', fields);
    });
  }

  /** Writes suppressed log lines, and stops their timer. */
  flush(): void {
    this.#refusals.flush();
  }

  /** Answers a request to one of the paths. Never rejects. */
  async review(request: ReviewRequest): Promise<ReviewReply> {
    const { path } = request;
    const metrics = this.#metrics.get(path);
    if (!metrics) return { status: 404, body: '404 not found\n' };
    const startedMs = this.#clock.monotonic();
    metrics.started();
    const { span, run } = this.#span(request);
    const outcome = await run(() => this.#outcome(request));
    const { status, body, headers, fields, error } = outcome;
    const durationMs = this.#clock.monotonic() - startedMs;
    metrics.finished(status, durationMs);
    span?.setAttributes({ 'http.response.status_code': status });
    if (error !== undefined && span) failSpan(span, error);
    span?.end();
    const line = { webhook: path, ...fields, status, durationMs };
    if (status === 500) this.#log.error(error, 'Webhook function failed', line);
    else if (status === 504) this.#log.error(error, 'Webhook function timed out', line);
    else if (status !== 200)
      this.#log.v(1).info('Rejected a request to a webhook', { ...line, err: error });
    else this.#log.v(4).info('Answered a review', line);
    return { status, body, ...(headers && { headers }) };
  }

  async #outcome({ path, body, timeout, signal }: ReviewRequest): Promise<Outcome> {
    const entry = this.#admission.get(path);
    const type = typeOf(entry);
    let fields: Outcome['fields'] = {};
    try {
      return await this.#bodies.parse(body, type, signal, async (request) => {
        fields = fieldsOf(request);
        const response: Unchecked = entry
          ? await this.#admit(entry, request, timeoutOf(timeout, entry), signal)
          : this.#convert(request, fields);
        const { allowed } = response;
        if (typeof allowed === 'boolean') fields = { ...fields, allowed };
        const { apiVersion, kind } = type;
        return { status: 200, body: JSON.stringify({ apiVersion, kind, response }), fields };
      });
    } catch (error) {
      if (error instanceof BadReview) {
        return { status: error.status, body: `${error.message}\n`, fields, error };
      }
      if (error instanceof OverloadedError) return { ...OVERLOADED, fields, error };
      if (error instanceof TimeoutError) {
        return { status: 504, body: `the function was ${error.message}\n`, fields, error };
      }
      if (signal.aborted) return { status: 499, body: 'the request was canceled\n', fields, error };
      this.#panic(entry ? 'admission' : 'conversion');
      const failed = `the function failed: the log of the program has the error of review ${fields['uid']}\n`;
      return { status: 500, body: failed, fields, error };
    }
  }

  #admit(entry: AdmissionEntry, request: Unchecked, timeoutMs: number, signal: AbortSignal) {
    return withinTimeout({ clock: this.#clock, timeoutMs, signal }, (limit) =>
      rejectOnAbort(reviewAdmission(entry, request, limit), limit),
    );
  }

  #convert(request: Unchecked, fields: Outcome['fields']) {
    return reviewConversion(this.#entries.conversions, request, (error) => {
      this.#panic('conversion');
      this.#log.error(error, 'Conversion failed', { webhook: CONVERSION_PATH, ...fields });
    });
  }

  #span({ path, headers }: ReviewRequest): {
    readonly span?: OpenTelemetrySpan;
    readonly run: <R>(work: () => R) => R;
  } {
    const api = this.#tracing;
    if (!api) return { run: (work) => work() };
    const parent = api.propagation.extract(api.ROOT_CONTEXT, headers);
    const options = {
      kind: SPAN_KIND.server,
      attributes: { 'http.request.method': 'POST', 'url.path': path },
    };
    const span = api.trace.getTracer(TRACER).startSpan(`POST ${path}`, options, parent);
    const context = api.trace.setSpan(parent, span);
    return { span, run: (work) => api.context.with(context, work) };
  }
}

function typeOf(entry: AdmissionEntry | undefined): ReviewType {
  if (!entry) return CONVERSION;
  return entry.type === 'mutating' ? MUTATING : VALIDATING;
}

/**
 * Returns the timeout of a function: a tenth less than the timeout of the call, 250 ms to one second. The API server's
 * time includes the connection and the TLS handshake.
 */
function timeoutOf(timeout: string | undefined, { options }: AdmissionEntry): number {
  const [, seconds] = /^(\d{1,4}(?:\.\d{1,9})?)s$/.exec(timeout ?? '') ?? [];
  const callMs = Math.min(MAX_TIMEOUT_MS, 1000 * (Number(seconds) || options.timeoutSeconds));
  return callMs - Math.min(1000, Math.max(callMs / 10, Math.min(250, callMs / 2)));
}

const MAX_TEXT_LENGTH = 253;

/** Returns the fields that identify a request in the log. */
function fieldsOf(request: Unchecked): Outcome['fields'] {
  const { uid, operation, namespace, name, userInfo, desiredAPIVersion, objects } = request;
  const user = isRecord(userInfo) ? userInfo['username'] : undefined;
  const texts = Object.entries({ uid, operation, namespace, name, user, desiredAPIVersion });
  return {
    ...Object.fromEntries(
      texts.flatMap(([key, value]) =>
        typeof value === 'string' && value !== '' ? [[key, value.slice(0, MAX_TEXT_LENGTH)]] : [],
      ),
    ),
    ...(Array.isArray(objects) && { objects: objects.length }),
  };
}
