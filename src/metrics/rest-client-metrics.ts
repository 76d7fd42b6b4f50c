import type { Registry } from 'prom-client';
import { Counter, Gauge, Histogram } from './prom-client.ts';
import type { CounterSeries, HistogramSeries } from './series.ts';
import { SeriesCounter, SeriesHistogram } from './series.ts';

/** Records the requests of a client. */
export interface RestClientMetrics {
  /** An HTTP exchange ended, with a response or with the code `<error>`. */
  exchanged(exchange: RestExchange): void;
  /** A request is retried because of the response `code`. */
  retried(retry: { readonly code: string; readonly verb: string; readonly host: string }): void;
  /** A request was delayed by the client-side rate limiter. */
  throttled(wait: { readonly verb: string; readonly host: string; readonly seconds: number }): void;
  /** A name was resolved for a new connection, or the resolution failed. */
  resolved(lookup: { readonly host: string; readonly seconds: number }): void;
  /** An exec credential plugin was called. */
  execPluginCalled(call: { readonly code: number; readonly status: ExecPluginStatus }): void;
  /** Exec credentials were received that expire at this time, in milliseconds since the Unix epoch. */
  execPluginExpiry(expiresAtMs: number): void;
}

export interface RestExchange {
  readonly verb: string;
  readonly host: string;
  /** HTTP status, or `<error>` if there was no response. */
  readonly code: string;
  readonly seconds: number;
  readonly requestBytes: number;
  /** Absent if the body is a stream or there was no response. */
  readonly responseBytes?: number;
}

export type ExecPluginStatus =
  'no_error' | 'plugin_execution_error' | 'plugin_not_found_error' | 'client_internal_error';

const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const BYTES = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/** Registers client-go's `rest_client_*` metrics. Labels never contain paths. Called once per registry. */
export function restClientMetrics(registry: Registry): RestClientMetrics {
  const registers = [registry];
  const requests = new SeriesCounter({
    name: 'rest_client_requests_total',
    help: 'Number of HTTP requests, partitioned by status code, method, and host.',
    labelNames: ['code', 'method', 'host'] as const,
    registers,
  });
  const retries = new Counter({
    name: 'rest_client_request_retries_total',
    help: 'Number of request retries, partitioned by status code, verb, and host.',
    labelNames: ['code', 'verb', 'host'] as const,
    registers,
  });
  const byVerbAndHost = (name: string, help: string, buckets: number[]) =>
    new SeriesHistogram({ name, help, buckets, labelNames: ['verb', 'host'] as const, registers });
  const duration = byVerbAndHost(
    'rest_client_request_duration_seconds',
    'Request latency in seconds. Broken down by verb, and host.',
    SECONDS,
  );
  const limiter = byVerbAndHost(
    'rest_client_rate_limiter_duration_seconds',
    'Client side rate limiter latency in seconds. Broken down by verb, and host.',
    SECONDS,
  );
  const resolver = new Histogram({
    name: 'rest_client_dns_resolution_duration_seconds',
    help: 'DNS resolver latency in seconds. Broken down by host.',
    buckets: SECONDS,
    labelNames: ['host'] as const,
    registers,
  });
  const requestSize = byVerbAndHost(
    'rest_client_request_size_bytes',
    'Request size in bytes. Broken down by verb and host.',
    BYTES,
  );
  const responseSize = byVerbAndHost(
    'rest_client_response_size_bytes',
    'Response size in bytes. Broken down by verb and host.',
    BYTES,
  );
  const execCalls = new Counter({
    name: 'rest_client_exec_plugin_call_total',
    help: 'Number of calls to an exec plugin, partitioned by exit code and call status.',
    labelNames: ['code', 'call_status'] as const,
    registers,
  });
  let execExpiresAtMs = Number.POSITIVE_INFINITY;
  const execTtl: Gauge = new Gauge({
    name: 'rest_client_exec_plugin_ttl_seconds',
    help: 'Seconds until the exec plugin credentials expire; +Inf if they do not.',
    registers,
    collect: (): void => execTtl.set((execExpiresAtMs - Date.now()) / 1000),
  });

  /** The series of each verb, code and host; there are few. */
  const exchanges = new Map<string, ExchangeSeries>();
  const exchangeSeries = ({ verb, host, code }: RestExchange): ExchangeSeries => {
    const id = `${verb} ${code} ${host}`;
    let series = exchanges.get(id);
    if (!series) {
      series = {
        requests: requests.series({ code, method: verb, host }),
        duration: duration.series({ verb, host }),
        requestSize: requestSize.series({ verb, host }),
      };
      exchanges.set(id, series);
    }
    return series;
  };

  return {
    exchanged(exchange) {
      const { verb, host, seconds, requestBytes, responseBytes } = exchange;
      const series = exchangeSeries(exchange);
      series.requests.inc();
      series.duration.observe(seconds);
      series.requestSize.observe(requestBytes);
      if (responseBytes === undefined) return;
      series.responseSize ??= responseSize.series({ verb, host });
      series.responseSize.observe(responseBytes);
    },
    retried: (labels) => retries.inc(labels),
    throttled: ({ verb, host, seconds }) => limiter.series({ verb, host }).observe(seconds),
    resolved: ({ host, seconds }) => resolver.observe({ host }, seconds),
    execPluginCalled: ({ code, status }) =>
      execCalls.inc({ code: String(code), call_status: status }),
    execPluginExpiry(expiresAtMs) {
      execExpiresAtMs = expiresAtMs;
    },
  };
}

interface ExchangeSeries {
  readonly requests: CounterSeries;
  readonly duration: HistogramSeries;
  readonly requestSize: HistogramSeries;
  /** Absent until there is a response. */
  responseSize?: HistogramSeries;
}
