import type { HttpResponse } from '../util/http.ts';
import type { Logger } from '../util/logger.ts';
import { isRecord, messageOf } from '../util/values.ts';

/** One HTTP request, for the log. */
export interface LoggedRequest {
  readonly verb: string;
  readonly url: string;
  /** Path without query. */
  readonly path: string;
}

/** Maximum number of body characters in the log at the verbosity levels 8 and 9; from 10 on, the complete body. */
const SHORT_BODY = 1024;
const LONG_BODY = 10_240;

const MASKED = '<masked>';

/**
 * Logs HTTP requests at the verbosity levels of client-go: one line (6), headers (7), truncated bodies (8, 9)
 * or complete bodies (10). At every level it masks credentials in headers, Secrets, tokens that the server
 * issues or reviews, values of environment variables, and copies of complete objects in annotations.
 */
export class ClientRequestLog {
  readonly #lines: Logger;
  readonly #headers: Logger;
  readonly #bodies: Logger;
  readonly #longBodies: Logger;
  readonly #wholeBodies: Logger;

  constructor(log: Logger) {
    this.#lines = log.v(6);
    this.#headers = log.v(7);
    this.#bodies = log.v(8);
    this.#longBodies = log.v(9);
    this.#wholeBodies = log.v(10);
  }

  /** Whether anything is logged. */
  get enabled(): boolean {
    return this.#lines.enabled;
  }

  request(call: LoggedRequest, headers: Readonly<Record<string, string>>, body?: string): void {
    if (this.#headers.enabled) {
      const { verb, url } = call;
      this.#headers.info('Request', { verb, url, headers: maskHeaders(headers) });
    }
    if (body !== undefined) this.#body('Request Body', call, body);
  }

  response(call: LoggedRequest, response: HttpResponse, milliseconds: number): void {
    const { verb, url } = call;
    const { status, headers } = response;
    const shown = this.#headers.enabled ? { headers: maskHeaders(headers) } : {};
    this.#lines.info('Response', { verb, url, status, ...shown, milliseconds });
  }

  responseBody(call: LoggedRequest, body: Buffer): void {
    this.#body('Response Body', call, body);
  }

  failure(call: LoggedRequest, error: unknown, milliseconds: number): void {
    const { verb, url } = call;
    const err = messageOf(error);
    this.#lines.info('Request failed', { verb, url, err, milliseconds });
  }

  #body(message: string, call: LoggedRequest, body: string | Buffer): void {
    if (!this.#bodies.enabled) return;
    const most = this.#wholeBodies.enabled
      ? Number.POSITIVE_INFINITY
      : this.#longBodies.enabled
        ? LONG_BODY
        : SHORT_BODY;
    this.#bodies.info(message, { body: presentBody(call, body.toString(), most) });
  }
}

function maskHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, maskHeader(name, value)]),
  );
}

function maskHeader(name: string, value: string): string {
  if (/authorization|cookie|token|secret|key|^impersonate-extra-/.test(name)) {
    return maskCredential(value);
  }
  // The address of a login page can contain a token.
  return name === 'location' ? value.replace(/[?#].*/s, `?${MASKED}`) : value;
}

/** Masks a credential except its scheme, which shows the kind of credential. */
function maskCredential(value: string): string {
  const scheme = /^(Bearer|Basic|Negotiate) /.exec(value)?.[1];
  return scheme ? `${scheme} ${MASKED}` : MASKED;
}

function presentBody(call: LoggedRequest, body: string, most: number): string {
  if (isConfidential(call.path)) return `${MASKED} (${body.length} characters)`;
  const shown = redact(body);
  return shown.length > most
    ? `${shown.slice(0, most)} [truncated ${shown.length - most} chars]`
    : shown;
}

/** Paths at which a JSON patch changes an environment variable, or a copy of the complete object. */
const CONFIDENTIAL_PATH = /\/env(?:\/|$)|last-applied-configuration$/;

/** Reports whether the path is that of Secrets, TokenRequests or TokenReviews. */
function isConfidential(path: string): boolean {
  return /\/(secrets|token|tokenreviews)(\/|$)/.test(path);
}

function redact(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), redactMember);
  } catch {
    // Confidential values can only be found in JSON; text, and JSON nested too deeply, is omitted.
    return `not shown (${body.length} characters that are not JSON)`;
  }
}

function redactMember(key: string, value: unknown): unknown {
  if (key === 'kubectl.kubernetes.io/last-applied-configuration') return MASKED;
  if ((key === 'token' || key === 'password') && typeof value === 'string') return MASKED;
  if (key === 'env' && Array.isArray(value)) return value.map(redactVariable);
  if (!isRecord(value)) return value;
  // An operation of a JSON patch.
  if (
    'value' in value &&
    typeof value['path'] === 'string' &&
    CONFIDENTIAL_PATH.test(value['path'])
  ) {
    return { ...value, value: MASKED };
  }
  return value['kind'] === 'Secret' ? withoutData(value) : value;
}

function redactVariable(variable: unknown): unknown {
  return isRecord(variable) && 'value' in variable ? { ...variable, value: MASKED } : variable;
}

function withoutData(secret: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(secret).map(([key, value]) => [
      key,
      key === 'data' || key === 'stringData' ? MASKED : value,
    ]),
  );
}
