import { Counter, Histogram } from './prom-client.ts';
import type { Registry } from './registry.ts';

/** Counts Ats, and the delay of their commands after the scheduled time or the creation, whichever is later. */
export interface AtMetrics {
  /** An At became due. */
  due(): void;
  /** An At has not started within a minute after it became due. */
  missed(): void;
  /** A command started `lateMs` milliseconds after it was due. */
  started(lateMs: number): void;
}

/** Seconds, from 1 s, the resolution of times in a Pod, to one day. */
const DELAY_BUCKETS = [1, 2, 5, 10, 30, 60, 300, 900, 3600, 86_400];

/** Registers the metrics of Ats. Called once per registry. */
export function atMetrics(registry: Registry): AtMetrics {
  const registers = [registry];
  const due = new Counter({
    name: 'crd_controller_at_due_total',
    help: 'Number of Ats that became due',
    registers,
  });
  const missed = new Counter({
    name: 'crd_controller_at_missed_total',
    help: 'Number of Ats that had not started one minute after they were due',
    registers,
  });
  const delay = new Histogram({
    name: 'crd_controller_at_start_delay_seconds',
    help: 'Time in seconds from when an At was due, or created if later, until its Pod was created',
    buckets: DELAY_BUCKETS,
    registers,
  });
  return {
    due: () => due.inc(),
    missed: () => missed.inc(),
    started: (lateMs) => delay.observe(Math.max(0, lateMs) / 1000),
  };
}
