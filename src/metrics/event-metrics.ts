import { Counter } from './prom-client.ts';
import type { Registry } from './registry.ts';

/** Reason for which an event was not written. */
export type EventDropReason =
  /** Too many events of one type on its object. */
  | 'spam'
  /** The buffer was full. */
  | 'buffer_full'
  /** The server rejected it, or it could not be sent as a request. */
  | 'rejected'
  /** All attempts failed. */
  | 'retries_exhausted'
  /** The process stopped first. */
  | 'shutdown';

export interface EventMetrics {
  dropped(reason: EventDropReason, events?: number): void;
}

const REASONS: readonly EventDropReason[] = [
  'spam',
  'buffer_full',
  'rejected',
  'retries_exhausted',
  'shutdown',
];

/** Registers the metric of dropped events. Called once per registry. */
export function eventMetrics(registry: Registry): EventMetrics {
  const dropped = new Counter({
    name: 'crd_controller_events_dropped_total',
    help: 'Number of events that were not written to the API server, by reason',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of REASONS) dropped.inc({ reason }, 0);
  return { dropped: (reason, events = 1) => dropped.inc({ reason }, events) };
}
