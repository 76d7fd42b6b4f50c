import { isApiError } from '../api/api-error.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { ReconcileResult } from '../metrics/reconcile-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/values.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { SyncRun, SyncResult } from '../workqueue/sync-report.ts';
import { ServiceError } from './call-service.ts';
import type { ServiceCall } from './call-service.ts';
import type { FinishedCall } from '../client/observed-client.ts';

/** One sync of a key with its causes, calls and result. */
export interface SyncRecord extends SyncRun {
  readonly controller: string;
  readonly key: ObjectKey;
  /** RFC 3339. */
  readonly startedAt: string;
  /** Postponements of the key before the sync. */
  readonly postponed: readonly Postponement[];
  /** The first finished calls of the API server and of `callService`. */
  readonly calls: readonly CallRecord[];
  /** Number of calls that are not in `calls`. */
  readonly omittedCalls: number;
  /** Absent while the sync is running. */
  readonly end?: SyncResultRecord;
}

/** Reason why a key was due and was not synced. */
export interface Postponement {
  /** Such as `waiting for a cache to show own writes`. */
  readonly reason: string;
  /** Number of postponements for this reason. */
  readonly times: number;
  /** Total duration in milliseconds. */
  readonly ms: number;
}

/** Call of a sync. */
export interface CallRecord {
  /** The method, for calls of `callService`. */
  readonly verb: FinishedCall['verb'] | ServiceCall['method'];
  /** Such as `pods` or `counts.demo.mark8s.io/status`. Empty for calls of `raw` and `callService`. */
  readonly resource: string;
  /** Key of the object, namespace, or path. For `callService`, the origin of the URL. */
  readonly at: string;
  /**
   * HTTP status of a failed API call, 0 without a response; absent if the call succeeded. For `callService`, the status
   * of any response; absent without one.
   */
  readonly code?: number;
  /** Kind of `ApiError`, reason of {@link ServiceError}, or name of another error. Absent if the call succeeded. */
  readonly error?: string;
  /** Milliseconds from the start of the sync until the call. */
  readonly afterMs: number;
  readonly ms: number;
}

/** Result of a sync. */
export interface SyncResultRecord extends Omit<SyncResult, 'error' | 'requeueAtMs'> {
  /** Error message. */
  readonly error?: string;
}

/** Remembered syncs of a key. */
export interface KeyHistory {
  readonly controller: string;
  readonly key: ObjectKey;
  /** Number of syncs since the key was first remembered. */
  readonly syncs: number;
  readonly failures: number;
  /** Total duration of the syncs, in milliseconds. */
  readonly busyMs: number;
  /** Start of the first of the failures that no success has followed, RFC 3339. Absent if the last sync did not fail. */
  readonly failingSince?: string | undefined;
  /** The last syncs, oldest first. The last one may be running. */
  readonly last: readonly SyncRecord[];
}

/** Syncs of a controller since the start. */
export interface SyncTotals {
  readonly syncs: number;
  readonly failures: number;
  /** Absent if no sync failed. */
  readonly lastFailure?: { readonly key: ObjectKey; readonly at: string };
}

/** Options of {@link SyncHistory}. */
export interface SyncHistoryOptions {
  /**
   * Maximum number of remembered keys of all controllers. The most recently synced keys are kept.
   * @default 1000
   */
  readonly keys?: number | undefined;
  /**
   * Maximum number of remembered syncs per key.
   * @default 5
   */
  readonly syncsPerKey?: number | undefined;
  /**
   * Approximate maximum memory in bytes. Beyond it, the least recently synced keys are forgotten.
   * @default 16_000_000
   */
  readonly bytes?: number | undefined;
}

/** Maximum number of recorded calls per sync, and maximum length of a text. */
const MAX_CALLS = 20;
const MAX_TEXT_LENGTH = 300;

const FAILURES: ReadonlySet<ReconcileResult> = new Set(['error', 'terminalError', 'panic']);

/** Records one sync. */
export class SyncRecorder {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #startMs: number;
  readonly #calls: CallRecord[] = [];
  #record: SyncRecord;
  #bytes = 0;

  /**
   * @param postponed postponements of the key before the sync
   */
  constructor(
    controller: string,
    key: ObjectKey,
    run: SyncRun,
    postponed: readonly Postponement[],
    clock: Pick<Clock, 'now' | 'monotonic'>,
  ) {
    this.#clock = clock;
    this.#startMs = clock.monotonic();
    const { reconcileID, omittedCauses, attempt, delayedMs, queuedMs } = run;
    this.#record = {
      controller,
      key,
      reconcileID,
      causes: run.causes.map(truncateCause),
      omittedCauses,
      attempt,
      delayedMs,
      queuedMs,
      startedAt: new Date(clock.now()).toISOString(),
      postponed,
      calls: this.#calls,
      omittedCalls: 0,
    };
  }

  get record(): SyncRecord {
    return this.#record;
  }

  /** Approximate memory of the record in bytes. 0 before the end of the sync. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Records a call that has just finished. */
  recordCall(call: FinishedCall | ServiceCall): void {
    const afterMs = Math.max(0, this.#clock.monotonic() - this.#startMs - call.ms);
    if (this.#calls.length < MAX_CALLS) {
      this.#calls.push(
        'method' in call ? serviceCallRecord(call, afterMs) : callRecord(call, afterMs),
      );
    } else this.#record = { ...this.#record, omittedCalls: this.#record.omittedCalls + 1 };
  }

  finish({ result, tookMs, requeueAfterMs, reason, error }: SyncResult): void {
    const message = error === undefined ? {} : { error: truncate(messageOf(error)) };
    const end = { result, tookMs, requeueAfterMs, reason, ...message };
    this.#record = { ...this.#record, end };
    this.#bytes = bytesOf(this.#record);
  }
}

/** The last syncs of the most recently synced keys, for `/debug/why`. The memory is bounded. */
export class SyncHistory {
  readonly #capacity: number;
  readonly #syncsPerKey: number;
  readonly #maxBytes: number;
  #bytes = 0;
  /** Ordered by the last sync, least recent first. */
  readonly #keys = new Map<string, RememberedKey>();
  readonly #totals = new Map<string, SyncTotals>();

  constructor(options: SyncHistoryOptions = {}) {
    const { keys = 1000, syncsPerKey = 5, bytes = 16_000_000 } = options;
    for (const [field, value] of Object.entries({ keys, syncsPerKey, bytes })) {
      if (!Number.isSafeInteger(value) || value < 1) {
        throw new RangeError(`${field} must be a positive integer: got ${value}`);
      }
    }
    this.#capacity = keys;
    this.#syncsPerKey = syncsPerKey;
    this.#maxBytes = bytes;
  }

  /** Adds a sync that has started. */
  start(recorder: SyncRecorder): void {
    const { controller, key } = recorder.record;
    const id = idOf(controller, key);
    const known = this.#keys.get(id) ?? {
      controller,
      key,
      syncs: 0,
      failures: 0,
      busyMs: 0,
      failingSince: undefined,
      last: [],
    };
    known.last.push(recorder);
    if (known.last.length > this.#syncsPerKey) this.#bytes -= known.last.shift()?.bytes ?? 0;
    this.#keys.delete(id);
    this.#keys.set(id, known);
    if (this.#keys.size > this.#capacity) this.#forgetOldest();
  }

  /** Updates the totals after a sync has finished. */
  finish({ record: { controller, key, startedAt, end }, bytes }: SyncRecorder): void {
    if (!end) return;
    const isFailure = FAILURES.has(end.result);
    const { syncs, failures, lastFailure } = this.totals(controller);
    this.#totals.set(controller, {
      syncs: syncs + 1,
      failures: failures + Number(isFailure),
      ...(isFailure ? { lastFailure: { key, at: startedAt } } : lastFailure && { lastFailure }),
    });
    const known = this.#keys.get(idOf(controller, key));
    if (!known) return;
    known.syncs++;
    known.busyMs += end.tookMs;
    if (isFailure) {
      known.failures++;
      known.failingSince ??= startedAt;
    } else known.failingSince = undefined;
    this.#bytes += bytes;
    while (this.#bytes > this.#maxBytes && this.#keys.size > 1) this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const [id, { last }] of this.#keys) {
      this.#keys.delete(id);
      for (const recorder of last) this.#bytes -= recorder.bytes;
      return;
    }
  }

  /** Returns the history of a key, or undefined if the key is not remembered. */
  of(controller: string, key: string): KeyHistory | undefined {
    const known = this.#keys.get(idOf(controller, key));
    return known && historyOf(known);
  }

  /** Returns the totals of a controller. */
  totals(controller: string): SyncTotals {
    return this.#totals.get(controller) ?? { syncs: 0, failures: 0 };
  }

  /** Returns all histories, most recently synced key first. */
  all(): KeyHistory[] {
    return Array.from(this.#keys.values(), historyOf).toReversed();
  }
}

interface RememberedKey {
  readonly controller: string;
  readonly key: ObjectKey;
  syncs: number;
  failures: number;
  busyMs: number;
  failingSince: string | undefined;
  readonly last: SyncRecorder[];
}

function historyOf({ last, ...known }: RememberedKey): KeyHistory {
  return { ...known, last: last.map(({ record }) => record) };
}

/** Unique, because controller names contain no spaces. */
function idOf(controller: string, key: string): string {
  return `${controller} ${key}`;
}

function callRecord(
  { verb, resource, at, options, ms, failed, error }: FinishedCall,
  afterMs: number,
): CallRecord {
  const { subresource } = options ?? {};
  const plural = resource ? groupResourceOf(resource) : '';
  const record = {
    verb,
    resource: subresource ? `${plural}/${subresource}` : plural,
    at: truncate(at),
    afterMs,
    ms,
  };
  if (!failed) return record;
  if (isApiError(error)) return { ...record, code: error.code, error: error.kind };
  return { ...record, error: nameOf(error) };
}

function serviceCallRecord(
  { method, origin, status, ms, error }: ServiceCall,
  afterMs: number,
): CallRecord {
  return {
    verb: method,
    resource: '',
    at: truncate(origin),
    ...(status !== undefined && { code: status }),
    ...(error !== undefined && {
      error: error instanceof ServiceError ? error.reason : nameOf(error),
    }),
    afterMs,
    ms,
  };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}

/**
 * Formats a call: `patch counts.demo.mark8s.io/status default/web ok 3ms`, or
 * `DELETE https://dns.example.com 503 ServiceFailed 3ms`.
 */
export function formatCall({ verb, resource, at, code, error, ms }: CallRecord): string {
  const result = [code || undefined, error].filter((word) => word !== undefined).join(' ') || 'ok';
  return [verb, resource, at, result, `${Math.round(ms)}ms`]
    .filter((word) => word !== '')
    .join(' ');
}

/** Approximate memory of the parts without texts, in bytes. */
const RUN_BYTES = 600;
const CAUSE_BYTES = 60;
const CALL_BYTES = 160;

/** Estimates the memory of a record. */
function bytesOf({ causes, calls, end }: SyncRecord): number {
  let bytes = RUN_BYTES + (end?.error?.length ?? 0);
  for (const { text, changes = [] } of causes) {
    bytes += CAUSE_BYTES + text.length;
    for (const { field, before = '', after = '' } of changes) {
      bytes += CAUSE_BYTES + field.length + before.length + after.length;
    }
  }
  for (const { at } of calls) bytes += CALL_BYTES + at.length;
  return bytes;
}

function truncateCause(cause: Cause): Cause {
  return { ...cause, text: truncate(cause.text) };
}

function truncate(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}
