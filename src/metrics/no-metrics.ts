/** Implementations that record nothing, for programs without metrics. They do not load prom-client. */
import type { ReconcileMetrics } from './reconcile-metrics.ts';
import type { InformerMetrics, ReflectorMetrics } from './reflector-metrics.ts';
import type { RestClientMetrics } from './rest-client-metrics.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import type { WorkqueueMetrics } from './workqueue-metrics.ts';

export const noInformerMetrics: InformerMetrics = {
  listed: () => undefined,
  watchStarted: () => undefined,
  watchEnded: () => undefined,
  watchStalled: () => undefined,
  historyLost: () => undefined,
  processed: () => undefined,
  handlerFailed: () => undefined,
  objectRefused: () => undefined,
};

export const noReflectorMetrics: ReflectorMetrics = { informer: () => noInformerMetrics };

export const noRestClientMetrics: RestClientMetrics = {
  exchanged: () => undefined,
  retried: () => undefined,
  throttled: () => undefined,
  resolved: () => undefined,
  execPluginCalled: () => undefined,
  execPluginExpiry: () => undefined,
};

export const noReconcileMetrics: ReconcileMetrics = {
  controller: () => ({
    started: () => undefined,
    finished: () => undefined,
    timedOut: () => undefined,
    dropped: () => undefined,
  }),
  postponed: () => ({ stale: () => undefined, hotLoop: () => undefined, damped: () => undefined }),
};

export const noWorkqueueMetrics: WorkqueueMetrics = {
  queue: () => ({
    added: () => undefined,
    retried: () => undefined,
    taken: () => undefined,
    finished: () => undefined,
  }),
};

export const noWebhookMetrics: WebhookMetrics = {
  path: () => ({
    started: () => undefined,
    finished: () => undefined,
    refused: () => undefined,
  }),
  panic: () => undefined,
};
