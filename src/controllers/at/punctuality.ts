import type { ObjectKey } from '../../api/object-key.ts';
import { noAtMetrics } from '../../metrics/at-metrics.ts';
import type { AtMetrics } from '../../metrics/at-metrics.ts';

/** So late, a command that has not started counts as missed, though it will still start. */
const MISSED_AFTER_MS = 60_000;

interface Due {
  readonly uid: string;
  missed: boolean;
  started: boolean;
}

/** Counts what becomes of Ats whose time has come: each once, however often it is tried. */
export class Punctuality {
  readonly #metrics: AtMetrics;
  /** From when they are due until they are forgotten. */
  readonly #due = new Map<ObjectKey, Due>();

  constructor(metrics: AtMetrics = noAtMetrics) {
    this.#metrics = metrics;
  }

  /** It could have started `lateMs` milliseconds ago, and is not known to have. */
  due(key: ObjectKey, uid: string, lateMs: number): void {
    let due = this.#due.get(key);
    if (due?.uid !== uid) {
      due = { uid, missed: false, started: false };
      this.#due.set(key, due);
      this.#metrics.due();
    }
    if (due.missed || due.started || lateMs < MISSED_AFTER_MS) return;
    due.missed = true;
    this.#metrics.missed();
  }

  /** It has a Pod, created `lateMs` milliseconds after it could have been. */
  started(key: ObjectKey, lateMs: number): void {
    const due = this.#due.get(key);
    if (!due || due.started) return;
    due.started = true;
    this.#metrics.started(lateMs);
  }

  /** That it has started is on record; or it is gone, or not to start now. */
  forget(key: ObjectKey): void {
    this.#due.delete(key);
  }
}
