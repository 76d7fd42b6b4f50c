import { atMetrics } from './at-metrics.ts';
import type { AtMetrics } from './at-metrics.ts';
import { customMetrics } from './custom-metrics.ts';
import type { CustomMetrics } from './custom-metrics.ts';
import { eventMetrics } from './event-metrics.ts';
import type { EventMetrics } from './event-metrics.ts';
import { leaderElectionMetrics } from './leader-election-metrics.ts';
import type { LeaderElectionMetrics } from './leader-election-metrics.ts';
import { managerMetrics, reconcileMetrics } from './reconcile-metrics.ts';
import type { ManagerMetrics, ReconcileMetrics } from './reconcile-metrics.ts';
import { reflectorMetrics } from './reflector-metrics.ts';
import type { ReflectorMetrics } from './reflector-metrics.ts';
import type { Registry } from './registry.ts';
import { restClientMetrics } from './rest-client-metrics.ts';
import type { RestClientMetrics } from './rest-client-metrics.ts';
import { webhookMetrics } from './webhook-metrics.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import { workqueueMetrics } from './workqueue-metrics.ts';
import type { WorkqueueMetrics } from './workqueue-metrics.ts';

/** All metrics by the component that records them. */
export interface Metrics {
  readonly restClient: RestClientMetrics;
  readonly reflector: ReflectorMetrics;
  readonly workqueue: WorkqueueMetrics;
  readonly reconcile: ReconcileMetrics;
  readonly events: EventMetrics;
  readonly leaderElection: LeaderElectionMetrics;
  readonly manager: ManagerMetrics;
  readonly at: AtMetrics;
  readonly webhook: WebhookMetrics;
  /** Metrics that the program defines. */
  readonly custom: CustomMetrics;
}

/** Options of {@link metricsOf}. */
export interface MetricsOptions {
  /**
   * Name of the program, as the label `manager` of `running_managed_controllers`.
   * @default 'crd-controller'
   */
  readonly manager?: string | undefined;
}

/** Registers all metrics. Called once per registry. */
export function metricsOf(registry: Registry, options: MetricsOptions = {}): Metrics {
  const { manager = 'crd-controller' } = options;
  return {
    restClient: restClientMetrics(registry),
    reflector: reflectorMetrics(registry),
    workqueue: workqueueMetrics(registry),
    reconcile: reconcileMetrics(registry),
    events: eventMetrics(registry),
    leaderElection: leaderElectionMetrics(registry),
    manager: managerMetrics(registry, manager),
    at: atMetrics(registry),
    webhook: webhookMetrics(registry),
    custom: customMetrics(registry),
  };
}
