import { isApiError } from '../api/api-error.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { ReconcileResult } from '../metrics/reconcile-metrics.ts';
import { messageOf } from '../util/values.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { SyncRun, SyncResult } from '../workqueue/sync-report.ts';
import type { Postponement } from './sync-log.ts';
import type { EndedCall } from './observed-client.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const OPTIONS: OptionNames<SyncHistoryOptions> = {
  keys: true,
  syncsPerKey: true,
  bytes: true,
};

/** One run of a key: why, what it did, what became of it. */
export interface SyncRecord extends SyncRun {
  readonly controller: string;
  readonly key: ObjectKey;
  /** RFC 3339, by the wall clock. */
  readonly startedAt: string;
  /** What held the key back before, though it was its turn. */
  readonly held: readonly Postponement[];
  /** In order of their ends, bounded. */
  readonly calls: readonly CallRecord[];
  /** How many calls found no place in `calls`. */
  readonly omittedCalls: number;
  /** Absent while it runs. */
  readonly end?: SyncResultRecord;
}

/** A request of a sync. */
export interface CallRecord {
  readonly verb: EndedCall['verb'];
  /** `pods`, `counts.demo.mark8s.io/status`; empty for a path of its own. */
  readonly resource: string;
  /** Key of the object, or what else it was asked for. */
  readonly at: string;
  /** HTTP status of a failure; 0 if there was no answer, absent if it succeeded. */
  readonly code?: number;
  /** Kind of `ApiError` of a failure, or the name of another error. */
  readonly error?: string;
  readonly ms: number;
}

/** Result of a sync. */
export interface SyncResultRecord extends Omit<SyncResult, 'error'> {
  /** Message of the error it ended with. */
  readonly error?: string;
}

/** What is remembered of a key. */
export interface KeyHistory {
  readonly controller: string;
  readonly key: ObjectKey;
  /** Totals since the key was first remembered. */
  readonly runs: number;
  readonly failures: number;
  readonly busyMs: number;
  /** The last runs, latest last; the last of all may be under way. */
  readonly last: readonly SyncRecord[];
}

/** Options of `SyncHistory`. */
export interface SyncHistoryOptions {
  /**
   * Keys that are remembered, of all controllers together: those that ran last.
   * @default 1000
   */
  readonly keys?: number | undefined;
  /**
   * Runs of each that are remembered.
   * @default 5
   */
  readonly syncsPerKey?: number | undefined;
  /**
   * Bytes of memory for all of it, roughly, however much its runs do: beyond that, what ran longest
   * ago is forgotten.
   * @default 16_000_000
   */
  readonly bytes?: number | undefined;
}

/** Calls of a run that are told apart; of a text, so many characters are kept. */
const MOST_CALLS = 20;
const LONGEST_TEXT = 300;

const FAILURES: ReadonlySet<ReconcileResult> = new Set(['error', 'terminalError', 'panic']);

/** Takes down what one run does. */
export class SyncRecorder {
  readonly #calls: CallRecord[] = [];
  #record: SyncRecord;
  #bytes = 0;

  /**
   * @param held what held the key back before
   * @param nowMs by the wall clock
   */
  constructor(
    controller: string,
    key: ObjectKey,
    run: SyncRun,
    held: readonly Postponement[],
    nowMs: number,
  ) {
    const { reconcileID, omittedCauses, attempt, delayedMs, queuedMs } = run;
    this.#record = {
      controller,
      key,
      reconcileID,
      causes: run.causes.map(brief),
      omittedCauses,
      attempt,
      delayedMs,
      queuedMs,
      startedAt: new Date(nowMs).toISOString(),
      held,
      calls: this.#calls,
      omittedCalls: 0,
    };
  }

  get record(): SyncRecord {
    return this.#record;
  }

  /** What it takes, roughly, once it has ended. */
  get bytes(): number {
    return this.#bytes;
  }

  called(call: EndedCall): void {
    if (this.#calls.length < MOST_CALLS) this.#calls.push(callRecord(call));
    else this.#record = { ...this.#record, omittedCalls: this.#record.omittedCalls + 1 };
  }

  ended({ result, tookMs, requeueAfterMs, reason, error }: SyncResult): void {
    const message = error === undefined ? {} : { error: cut(messageOf(error)) };
    const end = { result, tookMs, requeueAfterMs, reason, ...message };
    this.#record = { ...this.#record, end };
    this.#bytes = bytesOf(this.#record);
  }
}

/**
 * The last runs of the keys that ran last: what answers "why did this key run?". It costs memory, so
 * there is one only where somebody may ask.
 */
export class SyncHistory {
  readonly #capacity: number;
  readonly #syncsPerKey: number;
  readonly #mostBytes: number;
  #bytes = 0;
  /** In the order in which they ran last. */
  readonly #keys = new Map<string, Remembered>();

  constructor(options: SyncHistoryOptions = {}) {
    checkOptions(options, OPTIONS, 'SyncHistory');
    const { keys = 1000, syncsPerKey = 5, bytes = 16_000_000 } = options;
    for (const [field, value] of Object.entries({ keys, syncsPerKey, bytes })) {
      if (!Number.isSafeInteger(value) || value < 1) {
        throw new RangeError(`${field} must be a positive integer: got ${value}`);
      }
    }
    this.#capacity = keys;
    this.#syncsPerKey = syncsPerKey;
    this.#mostBytes = bytes;
  }

  /** A run has begun. */
  began(recorder: SyncRecorder): void {
    const { controller, key } = recorder.record;
    const id = idOf(controller, key);
    const known = this.#keys.get(id) ?? {
      controller,
      key,
      runs: 0,
      failures: 0,
      busyMs: 0,
      last: [],
    };
    known.last.push(recorder);
    if (known.last.length > this.#syncsPerKey) this.#bytes -= known.last.shift()?.bytes ?? 0;
    this.#keys.delete(id);
    this.#keys.set(id, known);
    if (this.#keys.size > this.#capacity) this.#forgetOldest();
  }

  /** It has ended: `recorder` knows how. */
  ended({ record: { controller, key, end }, bytes }: SyncRecorder): void {
    const known = this.#keys.get(idOf(controller, key));
    if (!known || !end) return;
    known.runs++;
    known.busyMs += end.tookMs;
    if (FAILURES.has(end.result)) known.failures++;
    this.#bytes += bytes;
    while (this.#bytes > this.#mostBytes && this.#keys.size > 1) this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const [id, { last }] of this.#keys) {
      this.#keys.delete(id);
      for (const recorder of last) this.#bytes -= recorder.bytes;
      return;
    }
  }

  /** Returns the last syncs of a key. */
  of(controller: string, key: string): KeyHistory | undefined {
    const known = this.#keys.get(idOf(controller, key));
    return known && historyOf(known);
  }

  /** All that are remembered, the one that ran last in front. */
  all(): KeyHistory[] {
    return Array.from(this.#keys.values(), historyOf).toReversed();
  }
}

interface Remembered {
  readonly controller: string;
  readonly key: ObjectKey;
  runs: number;
  failures: number;
  busyMs: number;
  readonly last: SyncRecorder[];
}

function historyOf({ last, ...known }: Remembered): KeyHistory {
  return { ...known, last: last.map(({ record }) => record) };
}

/** No name of a controller has a space. */
function idOf(controller: string, key: string): string {
  return `${controller} ${key}`;
}

function callRecord({ verb, resource, at, options, ms, failed, error }: EndedCall): CallRecord {
  const { subresource } = options ?? {};
  const plural = resource ? groupResourceOf(resource) : '';
  const record = {
    verb,
    resource: subresource ? `${plural}/${subresource}` : plural,
    at: cut(at),
    ms,
  };
  if (!failed) return record;
  if (isApiError(error)) return { ...record, code: error.code, error: error.kind };
  return { ...record, error: error instanceof Error ? error.name : 'unknown' };
}

/** One call, on a line: `patch counts.demo.mark8s.io/status default/web ok 3ms`. */
export function formatCall({ verb, resource, at, code, error, ms }: CallRecord): string {
  const result = error === undefined ? 'ok' : code ? `${code} ${error}` : error;
  return [verb, resource, at, result, `${Math.round(ms)}ms`]
    .filter((word) => word !== '')
    .join(' ');
}

/** Roughly, of what has no text, in bytes. */
const RUN_BYTES = 600;
const CAUSE_BYTES = 60;
const CALL_BYTES = 160;

/** What it costs to remember a run, roughly. */
function bytesOf({ causes, calls, end }: SyncRecord): number {
  let bytes = RUN_BYTES + (end?.error?.length ?? 0);
  for (const { text } of causes) bytes += CAUSE_BYTES + text.length;
  for (const { at } of calls) bytes += CALL_BYTES + at.length;
  return bytes;
}

function brief(cause: Cause): Cause {
  return { ...cause, text: cut(cause.text) };
}

function cut(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
