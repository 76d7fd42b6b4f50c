import type { AttentionItem, ObjectCounts } from '../../serving/attention.ts';
import type { ProcessStatus } from '../../serving/debug-pages.ts';
import type { KeyOwner } from '../../serving/controller-view.ts';
import type { ObjectReport } from '../../serving/object-page.ts';
import { Exposition } from '../../util/exposition.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import type { KeyHistory } from '../../manager/sync-history.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';

/** State of a program at one time. */
export interface ProgramSnapshot {
  /** Time on the caller's monotonic clock. */
  readonly atMs: number;
  readonly status: ProcessStatus;
  readonly queues: QueuesPage;
  readonly metrics: Exposition;
}

/** Shown part of `/debug/queues`. */
export interface QueuesPage {
  /** Absent from a program of an earlier version, as the objects below. */
  readonly attention?: readonly AttentionItem[];
  readonly controllers: readonly {
    readonly controller: string;
    readonly objects?: ObjectCounts | undefined;
    readonly lastFailure?: { readonly at: string };
    readonly ready: ShownKeys<{ readonly queuedMs: number }>;
    readonly delayed: ShownKeys<{ readonly dueInMs: number }>;
    readonly processing: ShownKeys<{ readonly forMs: number; readonly again: boolean }>;
    readonly hotLoops: readonly ShownHotLoop[];
  }[];
  readonly slowest: readonly {
    readonly controller: string;
    readonly key: string;
    readonly tookMs: number;
    readonly result: string;
    readonly causes: readonly Cause[];
  }[];
  readonly hottest: readonly {
    readonly controller: string;
    readonly key: string;
    readonly syncsPerMinute: number;
    readonly causes: readonly Cause[];
  }[];
}

/** Number of the keys in one state, and the first of them. */
interface ShownKeys<More> {
  readonly count: number;
  readonly keys: readonly (More & { readonly key: string; readonly causes: readonly Cause[] })[];
}

/** Hot loop as the pages show it. */
export interface ShownHotLoop {
  readonly key: string;
  readonly object: string;
  readonly fields: readonly string[];
  readonly times: number;
  readonly withinMs: number;
}

/** A key on the page `/debug/why`, in one controller. */
export interface KeyStatus {
  readonly controller: string;
  readonly state: 'running' | 'ready' | 'delayed' | 'idle';
  readonly forMs?: number;
  readonly queuedMs?: number;
  readonly dueInMs?: number;
  /** It was added while it is running, and runs again. */
  readonly again?: boolean;
  /** Why it is queued. */
  readonly causes?: readonly Cause[];
  readonly hotLoop?: ShownHotLoop;
  readonly history?: KeyHistory;
}

/** The pages `/debug/why` and `/debug/object`: the state of a key in each controller that knows it, or why there is none. */
export interface KeyReport {
  readonly controllers: readonly KeyStatus[];
  readonly owner?: KeyOwner;
  /** Absent if the object is not cached, or the program is of an earlier version. */
  readonly object?: Pick<ObjectReport, 'condition'> & Partial<Pick<ObjectReport, 'ownedProblems'>>;
  /** Present if no controller knows the key. */
  readonly error?: string;
}

/** Timeout of the requests, in milliseconds. */
const TIMEOUT_MS = 5000;

/**
 * Reads the debug pages of the program at `address` (`HOST:PORT`).
 *
 * @throws {Error} if there is no response, or an invalid one
 */
export async function fetchMonitorSnapshot(
  address: string,
  now: () => number,
  signal: AbortSignal,
): Promise<ProgramSnapshot> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const get = async (path: string, mayBeMissing = false) =>
    (await request(address, path, within, mayBeMissing)).text();
  const [status, queues, metrics] = await Promise.all([
    get('/debug/status'),
    get('/debug/queues'),
    // A program without metrics has no such page.
    get('/metrics', true),
  ]);
  return {
    atMs: now(),
    status: page<ProcessStatus>(status, ['informers']),
    queues: page<QueuesPage>(queues, ['controllers', 'slowest', 'hottest']),
    metrics: new Exposition(metrics),
  };
}

/**
 * Reads the state and the last syncs of a key, in each controller that knows it.
 *
 * @param controller only in this controller; otherwise in all
 * @throws {Error} if there is no response, or an invalid one
 */
export async function fetchKey(
  address: string,
  { key, controller }: { readonly key: string; readonly controller?: string | undefined },
  signal: AbortSignal,
): Promise<KeyReport> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const query = new URLSearchParams({ key, ...(controller !== undefined && { controller }) });
  const get = (path: string) => request(address, path, within, true);
  const response = await get(`/debug/why?${query.toString()}`);
  const body = await response.text();
  if (response.status === 404) {
    const { error } = page<Pick<KeyReport, 'error'>>(body, []);
    return { controllers: [], ...(error !== undefined && { error }) };
  }
  const report = page<KeyReport>(body, ['controllers']);
  query.set('controller', controller ?? report.controllers[0]?.controller ?? '');
  const found = await get(`/debug/object?${query.toString()}`);
  const text = await found.text();
  return found.ok ? { ...report, object: page<ObjectReport>(text, []) } : report;
}

/** Parses a page that has `lists`; other pages are not from a program. */
function page<P>(text: string, lists: readonly (keyof P)[]): P {
  try {
    const parsed: P = JSON.parse(text);
    if (lists.every((list) => Array.isArray(parsed[list]))) return parsed;
  } catch {
    // The page is not from a program.
  }
  throw new Error('it does not serve the debug pages that top reads, or it has another version');
}

/** Returns a successful response, or one with status 404 if the page may be missing. */
async function request(
  address: string,
  path: string,
  signal: AbortSignal,
  mayBeMissing: boolean,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`http://${address}${path}`, { signal });
  } catch (cause) {
    throw new Error(reasonOf(cause), { cause });
  }
  if (response.ok || (mayBeMissing && response.status === 404)) return response;
  await response.body?.cancel();
  throw new Error(`it responded with ${response.status} to ${path}`);
}

/** Returns the cause that `fetch` hides. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (hasErrorCode(cause, 'ECONNREFUSED')) return 'connection refused';
  if (error instanceof Error && error.name === 'TimeoutError')
    return `no response within ${TIMEOUT_MS / 1000}s`;
  return cause instanceof Error && cause.message ? cause.message : messageOf(error);
}
