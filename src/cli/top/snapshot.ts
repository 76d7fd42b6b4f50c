import type { ProcessStatus } from '../../serving/debug-pages.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import { Exposition } from './exposition.ts';

/** What a daemon said of itself at one moment. */
export interface DaemonSnapshot {
  /** On the monotonic clock of who snapshots. */
  readonly atMs: number;
  readonly status: ProcessStatus;
  readonly queues: QueuesPage;
  readonly metrics: Exposition;
}

/** As much of `/debug/queues` as is shown. */
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

/** Longer than a daemon takes that is alive, in milliseconds. */
const TIMEOUT_MS = 5000;

/**
 * Asks the daemon at `address`, `HOST:PORT`, for all that is shown.
 *
 * @throws {Error} saying why there was no answer, or none to use
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
    // A program may keep none: then what they would show stays empty.
    get('/metrics', { mayBeMissing: true }),
  ]);
  return {
    atMs: now(),
    status: page<ProcessStatus>(status, ['informers']),
    queues: page<QueuesPage>(queues, ['controllers', 'slowest', 'hottest']),
    metrics: new Exposition(metrics),
  };
}

/** A page that has `lists`; others are somebody else's. */
function page<P>(text: string, lists: readonly (keyof P)[]): P {
  try {
    const parsed: P = JSON.parse(text);
    if (lists.every((list) => Array.isArray(parsed[list]))) return parsed;
  } catch {
    // Somebody else's too.
  }
  throw new Error('it is not a crd-controller, or it has another version');
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

/** `fetch` hides what happened. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (hasErrorCode(cause, 'ECONNREFUSED')) return 'connection refused';
  if (error instanceof Error && error.name === 'TimeoutError')
    return `no response within ${TIMEOUT_MS / 1000}s`;
  return cause instanceof Error && cause.message ? cause.message : messageOf(error);
}
