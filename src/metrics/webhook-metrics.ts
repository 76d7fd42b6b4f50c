import { Gauge } from './prom-client.ts';
import type { Registry } from './registry.ts';
import { SeriesCounter, SeriesHistogram } from './series.ts';

/** Records the requests to one path. */
export interface WebhookPathMetrics {
  started(): void;
  /** @param code HTTP status of the response */
  finished(code: number, ms: number): void;
  /** The server refused a request before its review. */
  refused(code: number): void;
}

/** Records the requests that webhooks get. */
export interface WebhookMetrics {
  /** Creates the series of a path, with value zero. */
  path(path: string): WebhookPathMetrics;
  /** A function failed: it threw an error that is not a rejection, or returned something else than it must. */
  panic(type: 'admission' | 'conversion'): void;
}

/** The buckets of controller-runtime, in seconds: 10 ns to 1000 s. */
const LATENCY_BUCKETS = Array.from({ length: 12 }, (_, power) => Number(`1e${power - 8}`));

/** Registers controller-runtime's metrics of webhooks. Called once per registry. */
export function webhookMetrics(registry: Registry): WebhookMetrics {
  const registers = [registry];
  const total = new SeriesCounter({
    name: 'controller_runtime_webhook_requests_total',
    help: 'Number of requests to webhooks by HTTP status',
    labelNames: ['webhook', 'code'],
    registers,
  });
  const latency = new SeriesHistogram({
    name: 'controller_runtime_webhook_latency_seconds',
    help: 'Duration of requests to webhooks in seconds',
    labelNames: ['webhook'],
    registers,
    buckets: LATENCY_BUCKETS,
  });
  const inFlight = new Gauge({
    name: 'controller_runtime_webhook_requests_in_flight',
    help: 'Number of requests to webhooks in progress',
    labelNames: ['webhook'],
    registers,
  });
  const panics = {
    admission: new SeriesCounter({
      name: 'controller_runtime_webhook_panics_total',
      help: 'Number of functions for admission that failed',
      registers,
    }),
    conversion: new SeriesCounter({
      name: 'controller_runtime_conversion_webhook_panics_total',
      help: 'Number of conversions that failed',
      registers,
    }),
  };
  return {
    path: (webhook) => {
      panics.admission.series({});
      panics.conversion.series({});
      for (const code of ['200', '500']) total.series({ webhook, code });
      const took = latency.series({ webhook });
      inFlight.set({ webhook }, 0);
      return {
        started: () => inFlight.inc({ webhook }),
        finished: (code, ms) => {
          inFlight.dec({ webhook });
          took.observe(ms / 1000);
          total.series({ webhook, code: String(code) }).inc();
        },
        refused: (code) => total.series({ webhook, code: String(code) }).inc(),
      };
    },
    panic: (type) => panics[type].series({}).inc(),
  };
}
