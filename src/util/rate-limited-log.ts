import type { Clock } from './clock.ts';

/** Reports of one cause since its previous line. */
export interface Occurrences {
  /** Number of reports since the previous line. */
  readonly times: number;
  /** Number of reports since the cause was first reported. */
  readonly total: number;
  /** Milliseconds since the cause was first reported. */
  readonly forMs: number;
  /** The first ten distinct subjects of the reports since the previous line. */
  readonly subjects: readonly string[];
  /** Number of further subjects. */
  readonly moreSubjects: number;
}

/** Writes the line of a cause. */
export type WriteLine = (occurrences: Occurrences) => void;

/** Options of `RateLimitedLog`. */
export interface RateLimitedLogOptions {
  /**
   * Minimum time between two lines of one cause, in milliseconds.
   * @default 60_000
   */
  readonly windowMs?: number | undefined;
  /**
   * Delay of the first line of a cause, in milliseconds, to collect reports of the same moment. Zero
   * writes it at once.
   * @default 0
   */
  readonly gatherMs?: number | undefined;
  /**
   * Number of lines in a window that are written at once.
   * @default 1
   */
  readonly burst?: number | undefined;
}

const WINDOW_MS = 60_000;

/** Maximum number of causes. Another one replaces the oldest, whose suppressed reports are written. */
const MAX_CAUSES = 1000;

const MAX_SUBJECTS = 10;
/** Maximum number of distinct subjects that are counted. */
const MAX_COUNTED_SUBJECTS = 10_000;

interface Cause {
  readonly sinceMs: number;
  endMs: number;
  writtenMs: number;
  written: number;
  total: number;
  held: number;
  readonly subjects: Set<string>;
  write: WriteLine | undefined;
}

/**
 * Limits log lines by their cause. A failure of a thousand objects is one line at once, then one line per
 * window with the number of occurrences and the objects. Causes do not suppress each other.
 *
 * The caller defines the cause and writes the line. A timer runs only while reports are suppressed. `flush`
 * stops it.
 */
export class RateLimitedLog {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #windowMs: number;
  readonly #gatherMs: number;
  readonly #burst: number;
  readonly #causes = new Map<string, Cause>();
  #timer: { readonly dueMs: number; cancel(): void } | undefined;

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, options: RateLimitedLogOptions = {}) {
    this.#clock = clock;
    this.#windowMs = options.windowMs ?? WINDOW_MS;
    this.#gatherMs = options.gatherMs ?? 0;
    this.#burst = options.burst ?? 1;
  }

  /**
   * Reports that `cause` occurred on `subject`. Calls `write` at once, or that of the latest report when
   * the window ends.
   *
   * @returns false if the report is suppressed until the window ends
   */
  report(cause: string, subject: string, write: WriteLine): boolean {
    const nowMs = this.#clock.monotonic();
    const known = this.#known(cause, nowMs);
    const state = known ?? this.#start(cause, nowMs);
    state.total++;
    state.held++;
    state.write = write;
    if (state.subjects.size < MAX_COUNTED_SUBJECTS) state.subjects.add(subject);
    const isGathering = state.written === 0 && this.#gatherMs > 0;
    if (!isGathering && state.written < this.#burst) {
      this.#write(state, nowMs);
      return true;
    }
    this.#wakeAt(state.endMs);
    return isGathering;
  }

  /**
   * Removes `cause`, so that its next report counts as the first. Writes a delayed first line now and drops
   * other suppressed reports.
   */
  end(cause: string): void {
    const state = this.#causes.get(cause);
    if (!state) return;
    if (state.written === 0) this.#write(state, this.#clock.monotonic());
    this.#causes.delete(cause);
    if (this.#timer) this.#wakeAtNextEnd();
  }

  /** Shortens the window of `cause` to `windowMs` after its last line. */
  shorten(cause: string, windowMs: number): void {
    const state = this.#causes.get(cause);
    if (!state || state.written === 0) return;
    state.endMs = Math.min(state.endMs, state.writtenMs + windowMs);
    if (state.held > 0) this.#wakeAt(state.endMs);
  }

  /** Writes the suppressed reports and removes all causes. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const nowMs = this.#clock.monotonic();
    for (const state of this.#causes.values()) this.#write(state, nowMs);
    this.#causes.clear();
  }

  /** Returns the cause if it was reported within the last window. */
  #known(cause: string, nowMs: number): Cause | undefined {
    const state = this.#causes.get(cause);
    if (!state || state.endMs > nowMs) return state;
    return this.#endWindow(cause, state, nowMs) ? state : undefined;
  }

  #start(cause: string, nowMs: number): Cause {
    const [oldest] = this.#causes;
    if (oldest && this.#causes.size >= MAX_CAUSES) {
      this.#write(oldest[1], nowMs);
      this.#causes.delete(oldest[0]);
    }
    const state: Cause = {
      sinceMs: nowMs,
      endMs: nowMs + (this.#gatherMs > 0 ? this.#gatherMs : this.#windowMs),
      writtenMs: nowMs,
      written: 0,
      total: 0,
      held: 0,
      subjects: new Set(),
      write: undefined,
    };
    this.#causes.set(cause, state);
    return state;
  }

  /** @returns false if there was no report in the window and the cause was removed */
  #endWindow(cause: string, state: Cause, nowMs: number): boolean {
    if (state.held === 0) {
      this.#causes.delete(cause);
      return false;
    }
    this.#write(state, nowMs);
    state.endMs = nowMs + this.#windowMs;
    return true;
  }

  #write(state: Cause, nowMs: number): void {
    const { held, total, sinceMs, subjects, write } = state;
    if (held === 0) return;
    const occurrences: Occurrences = {
      times: held,
      total,
      forMs: nowMs - sinceMs,
      subjects: [...subjects].slice(0, MAX_SUBJECTS),
      moreSubjects: Math.max(0, subjects.size - MAX_SUBJECTS),
    };
    state.held = 0;
    state.subjects.clear();
    state.write = undefined;
    state.written++;
    state.writtenMs = nowMs;
    write?.(occurrences);
  }

  /** Sets the single timer, which fires at the earliest end of a window with suppressed reports. */
  #wakeAt(dueMs: number): void {
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.cancel();
    const cancel = this.#clock.after(dueMs - this.#clock.monotonic(), () => this.#wake());
    this.#timer = { dueMs, cancel };
  }

  #wake(): void {
    const nowMs = this.#clock.monotonic();
    for (const [cause, state] of this.#causes) {
      if (state.endMs <= nowMs) this.#endWindow(cause, state, nowMs);
    }
    this.#wakeAtNextEnd();
  }

  #wakeAtNextEnd(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    let nextMs = Infinity;
    for (const { held, endMs } of this.#causes.values()) {
      if (held > 0) nextMs = Math.min(nextMs, endMs);
    }
    if (nextMs < Infinity) this.#wakeAt(nextMs);
  }
}

/**
 * Returns the subjects as fields: `{ [one]: subject }`, or `{ [many]: subjects }` with the number of further
 * ones as `more`.
 */
export function subjectFields(
  one: string,
  many: string,
  { subjects, moreSubjects }: Pick<Occurrences, 'subjects' | 'moreSubjects'>,
): Readonly<Record<string, unknown>> {
  const [first, second] = subjects;
  if (second === undefined) return { [one]: first };
  return { [many]: subjects.join(', '), ...(moreSubjects > 0 && { more: moreSubjects }) };
}

/** Returns the subjects as fields, with the number of `times` if there are several reports. */
export function occurrenceFields(
  one: string,
  many: string,
  occurrences: Occurrences,
): Readonly<Record<string, unknown>> {
  const { times } = occurrences;
  return { ...(times > 1 && { times }), ...subjectFields(one, many, occurrences) };
}
