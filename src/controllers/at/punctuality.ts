import type { ObjectKey } from '../../api/object-key.ts';
import type { AtMetrics } from '../../metrics/at-metrics.ts';

/** Delay after which a start counts as missed, in milliseconds. The command still starts. */
const MISSED_AFTER_MS = 60_000;

interface Due {
  readonly uid: string;
  missed: boolean;
  started: boolean;
}

/** Counts due, missed and started Ats in the metrics, each At once. */
export class Punctuality {
  readonly #metrics: AtMetrics | undefined;
  /** Ats that are due and not forgotten. */
  readonly #due = new Map<ObjectKey, Due>();

  constructor(metrics?: AtMetrics) {
    this.#metrics = metrics;
  }

  /** Counts an At as due, and as missed if it could have started long ago. */
  due(key: ObjectKey, uid: string, lateMs: number): void {
    let due = this.#due.get(key);
    if (due?.uid !== uid) {
      due = { uid, missed: false, started: false };
      this.#due.set(key, due);
      this.#metrics?.due();
    }
    if (due.missed || due.started || lateMs < MISSED_AFTER_MS) return;
    due.missed = true;
    this.#metrics?.missed();
  }

  /** Counts a start whose Pod was created `lateMs` milliseconds after it could have been. */
  started(key: ObjectKey, lateMs: number): void {
    const due = this.#due.get(key);
    if (!due || due.started) return;
    due.started = true;
    this.#metrics?.started(lateMs);
  }

  /** Forgets an At that is deleted or not due, or whose status shows the start. */
  forget(key: ObjectKey): void {
    this.#due.delete(key);
  }
}
