import { Counter } from 'prom-client';
import type { Registry } from './registry.ts';

/** Why an event did not reach the server. */
export type EventDropReason =
  /** There were too many of one type about its object. */
  | 'spam'
  /** As many different events as the buffer holds were waiting. */
  | 'buffer_full'
  /** The server refused it, or it cannot be sent. */
  | 'rejected'
  /** Every attempt failed. */
  | 'retries_exhausted'
  /** The daemon stopped first. */
  | 'shutdown';

export interface EventMetrics {
  dropped(reason: EventDropReason, events?: number): void;
}

/** Counts nothing. */
export const noEventMetrics: EventMetrics = { dropped: () => undefined };

const REASONS: readonly EventDropReason[] = [
  'spam',
  'buffer_full',
  'rejected',
  'retries_exhausted',
  'shutdown',
];

/** What became of events that nobody will see. Call it once for a registry. */
export function eventMetrics(registry: Registry): EventMetrics {
  const dropped = new Counter({
    name: 'crd_controller_events_dropped_total',
    help: 'Events that did not reach the API server',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of REASONS) dropped.inc({ reason }, 0);
  return { dropped: (reason, events = 1) => dropped.inc({ reason }, events) };
}
