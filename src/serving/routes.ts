import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { MetricsText } from '../metrics/registry.ts';
import { printableText } from '../util/printable.ts';
import type { HealthCheck } from './health-checks.ts';

/** Endpoints of an `HttpServer`. */
export interface HttpServerRoutes {
  /** Checks of `/livez` and `/healthz`: the process itself, never its dependencies. */
  readonly livez?: readonly HealthCheck[] | undefined;
  /** Checks of `/readyz`. */
  readonly readyz?: readonly HealthCheck[] | undefined;
  /** Metrics in the Prometheus text format, served at `/metrics`. */
  readonly metrics?: (() => Promise<MetricsText>) | undefined;
  /** Pages by path, such as `/debug/queues`. */
  readonly pages?: Pages | undefined;
  /** Downloads by path, such as `/debug/pprof/profile`. GET only. */
  readonly downloads?: Downloads | undefined;
  /** Settings by path, such as `/debug/flags/v`: read with GET, changed with PUT. */
  readonly settings?: Settings | undefined;
  /** Calls by path, such as `/convert`. POST with JSON only. */
  readonly calls?: Calls | undefined;
}

/** Response of a page. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** @default none, apart from those of every response */
  readonly headers?: Readonly<Record<string, string>>;
}

export const PLAIN_TEXT = 'text/plain; charset=utf-8';

/** API servers retry such a call within its timeout. The connection stays open, and the body is discarded. */
export const OVERLOADED: Page = {
  status: 429,
  contentType: PLAIN_TEXT,
  body: '429 too many requests\n',
  headers: { 'retry-after': '1' },
};

/** Pages by path. */
export type Pages = ReadonlyMap<string, (query: URLSearchParams) => Page>;

/**
 * Returns a function that builds JSON pages: indented, without characters that could control a terminal, numbers rounded to three
 * decimals, credentials masked.
 *
 * @param redact masks credentials in strings, as for the log
 */
export function jsonPages(
  redact: (text: string) => string = (text) => text,
): (status: number, value: unknown) => Page {
  const replacer = (_: string, member: unknown): unknown => {
    if (typeof member === 'string') return redact(member);
    return typeof member === 'number' ? Math.round(member * 1000) / 1000 : member;
  };
  return (status, value) => ({
    status,
    contentType: 'application/json',
    body: `${printableText(JSON.stringify(value, replacer, 2))}\n`,
  });
}

/**
 * Returns a JSON page without indentation. For large values: the replacer of `jsonPages` takes most of their time. Credentials
 * are not masked.
 */
export function compactJsonPage(status: number, value: unknown): Page {
  return {
    status,
    contentType: 'application/json',
    body: `${printableText(JSON.stringify(value))}\n`,
  };
}

export interface DownloadRequest {
  readonly query: URLSearchParams;
  /** Aborts when the client disconnects or the server stops. */
  readonly signal: AbortSignal;
}

/** Response that takes time to produce, or that is too large to be held in memory. */
export interface Download {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Readable;
  /**
   * File name under which a browser saves the body.
   * @default the browser shows the body
   */
  readonly fileName?: string;
}

/** Downloads by path. */
export type Downloads = ReadonlyMap<string, (request: DownloadRequest) => Promise<Download>>;

/** Request of a call. */
export interface CallRequest {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Function that answers a body in JSON. */
export interface RouteCall {
  /** Maximum length of the body, in bytes. */
  readonly maxBytes: number;
  /** Returns the response. */
  readonly respond: (request: CallRequest) => Promise<Page>;
}

/** Calls by path. */
export type Calls = ReadonlyMap<string, RouteCall>;

/** Setting that can be changed while the process runs. */
export interface RouteSetting {
  /** Name in responses: `klog.logging.verbosity`. */
  readonly name: string;
  /** Returns the current value. */
  readonly get: () => string;
  /** @throws {RangeError} if the text is not a valid value */
  readonly set: (text: string) => void;
}

/** Settings by path. */
export type Settings = ReadonlyMap<string, RouteSetting>;

/** Maximum length of the new value of a setting, in bytes. */
export const MAX_SETTING_BYTES: number = 1024;

/** Changes a setting and returns the response, with the texts of Kubernetes components. */
export function changeSetting(
  { name, set }: RouteSetting,
  text: string,
): { readonly status: number; readonly body: string } {
  try {
    set(text);
    return { status: 200, body: `successfully set ${name} to ${text}` };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { status: 400, body: `failed set ${name} ${text}: ${error.message}` };
  }
}
