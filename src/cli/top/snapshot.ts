import type { ProcessStatus } from '../../serving/debug-pages.ts';
import { Exposition } from '../../util/exposition.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';

/** State of a daemon at one time. */
export interface DaemonSnapshot {
  /** Time on the caller's monotonic clock. */
  readonly atMs: number;
  readonly status: ProcessStatus;
  readonly queues: QueuesPage;
  readonly metrics: Exposition;
}

/** Shown part of `/debug/queues`. */
export interface QueuesPage {
  readonly controllers: readonly {
    readonly controller: string;
    readonly ready: { readonly count: number };
    readonly delayed: { readonly count: number };
    readonly processing: { readonly count: number };
    readonly hotLoops: readonly { readonly key: string }[];
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

/** Timeout of the requests, in milliseconds. */
const TIMEOUT_MS = 5000;

/**
 * Reads the debug pages of the daemon at `address` (`HOST:PORT`).
 *
 * @throws {Error} if there is no response, or an invalid one
 */
export async function fetchSnapshot(
  address: string,
  now: () => number,
  signal: AbortSignal,
): Promise<DaemonSnapshot> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const get = (path: string, { mayBeMissing = false } = {}) =>
    text(address, path, within, mayBeMissing);
  const [status, queues, metrics] = await Promise.all([
    get('/debug/status'),
    get('/debug/queues'),
    // A program without metrics has no such page.
    get('/metrics', { mayBeMissing: true }),
  ]);
  return {
    atMs: now(),
    status: page<ProcessStatus>(status, ['informers']),
    queues: page<QueuesPage>(queues, ['controllers', 'slowest', 'hottest']),
    metrics: new Exposition(metrics),
  };
}

/** Parses a page that has `lists`; other pages are not from a daemon. */
function page<P>(text: string, lists: readonly (keyof P)[]): P {
  try {
    const parsed: P = JSON.parse(text);
    if (lists.every((list) => Array.isArray(parsed[list]))) return parsed;
  } catch {
    // The page is not from a daemon.
  }
  throw new Error('it does not serve the debug pages that top reads, or it has another version');
}

async function text(
  address: string,
  path: string,
  signal: AbortSignal,
  mayBeMissing: boolean,
): Promise<string> {
  let response: Response;
  try {
    response = await fetch(`http://${address}${path}`, { signal });
  } catch (cause) {
    throw new Error(reasonOf(cause), { cause });
  }
  if (!response.ok) {
    await response.body?.cancel();
    if (mayBeMissing && response.status === 404) return '';
    throw new Error(`it responded with ${response.status} to ${path}`);
  }
  return response.text();
}

/** Returns the cause that `fetch` hides. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (hasErrorCode(cause, 'ECONNREFUSED')) return 'connection refused';
  if (error instanceof Error && error.name === 'TimeoutError')
    return `no response within ${TIMEOUT_MS / 1000}s`;
  return cause instanceof Error && cause.message ? cause.message : messageOf(error);
}
