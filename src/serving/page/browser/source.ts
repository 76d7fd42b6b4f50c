import { Exposition } from '../../../util/exposition.ts';
import type { WhyReport } from '../../queue-pages.ts';
import type { Snapshot } from './monitor.ts';

/** Timeout of a request, in milliseconds. */
const TIMEOUT_MS = 8000;

/** Response with a status other than 200. */
export class ResponseError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** Whether the server asks for other credentials. */
  get isForbidden(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/**
 * Returns the text at a path relative to the page.
 *
 * @throws {ResponseError} if the status is not 200
 */
async function text(path: string, init: RequestInit = {}): Promise<string> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(path, { ...init, signal, cache: 'no-store', redirect: 'error' });
  const body = await response.text();
  if (!response.ok) throw new ResponseError(response.status, body.trim().slice(0, 2000));
  return body;
}

/** Returns the JSON at a path, or undefined if the server has no such page. */
export async function fetchJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await text(path)) as T;
  } catch (error) {
    if (error instanceof ResponseError && error.status === 404) return undefined;
    throw error;
  }
}

/** Returns the syncs of a key, or why the program knows none. */
export async function fetchWhy(
  key: string,
): Promise<{ readonly why?: WhyReport; readonly unknown?: string }> {
  try {
    const path = `why?${new URLSearchParams({ key }).toString()}`;
    return { why: JSON.parse(await text(path)) as WhyReport };
  } catch (error) {
    if (!(error instanceof ResponseError) || error.status !== 404) throw error;
    const { error: unknown } = JSON.parse(error.message) as { readonly error: string };
    return { unknown };
  }
}

/** Changes a setting of the server. */
export async function put(path: string, value: string): Promise<string> {
  return text(path, { method: 'PUT', body: value });
}

/** Reads the state of the controllers. */
export async function fetchSnapshot(): Promise<Snapshot> {
  const [status, queues, history, metrics] = await Promise.all([
    fetchJson<Snapshot['status']>('status'),
    fetchJson<Snapshot['queues']>('queues?limit=0'),
    fetchJson<Snapshot['history']>('history'),
    // A program without metrics has no such page.
    text('../metrics').catch((error: unknown) => {
      if (error instanceof ResponseError && error.status === 404) return '';
      throw error;
    }),
  ]);
  if (!status || !queues) throw new Error('The server has no pages about controllers');
  const exposition = new Exposition(metrics);
  return { atMs: performance.now(), status, queues, history: history ?? [], metrics: exposition };
}
