import { Counter, Histogram } from 'prom-client';
import type { Registry } from './registry.ts';

/** Whether commands start when they should: at their time, or when their At is created if that is later. */
export interface AtMetrics {
  /** The time of an At has come, and it has not started yet. */
  due(): void;
  /** An At has not started for so long after its time that somebody should know. */
  missed(): void;
  /** A command started `lateMs` milliseconds after its time. */
  started(lateMs: number): void;
}

/** Counts nothing. */
export const noAtMetrics: AtMetrics = {
  due: () => undefined,
  missed: () => undefined,
  started: () => undefined,
};

/** Seconds: the times in a Pod are whole ones, and who comes an hour late may as well come a day late. */
const DELAY_BUCKETS = [1, 2, 5, 10, 30, 60, 300, 900, 3600, 86_400];

/** How punctual Ats are. Call it once for a registry. */
export function atMetrics(registry: Registry): AtMetrics {
  const registers = [registry];
  const due = new Counter({
    name: 'crd_controller_at_due_total',
    help: 'Ats whose time has come before they had started',
    registers,
  });
  const missed = new Counter({
    name: 'crd_controller_at_missed_total',
    help: 'Ats that had not started a minute after they could have',
    registers,
  });
  const delay = new Histogram({
    name: 'crd_controller_at_start_delay_seconds',
    help: 'Time from when an At was due, and there, until its Pod was created',
    buckets: DELAY_BUCKETS,
    registers,
  });
  return {
    due: () => due.inc(),
    missed: () => missed.inc(),
    started: (lateMs) => delay.observe(Math.max(0, lateMs) / 1000),
  };
}
