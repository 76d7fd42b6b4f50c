import { SyncError, withinTimeout } from 'crd-controller';
import type { Clock } from 'crd-controller';

/** Time to wait for a response, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** A failed request. */
export class ServiceError extends SyncError {
  override readonly name = 'ServiceError';
  /** Whether the service rejected the record: a retry does not help. */
  readonly isRejection: boolean;

  constructor(message: string, isRejection: boolean, cause?: unknown) {
    super(isRejection ? 'RecordRejected' : 'ServiceUnavailable', message, { cause });
    this.isRejection = isRejection;
  }
}

/** Client of a REST service that stores a record at `/records/ID`. */
export class RecordService<T> {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #fetch: typeof fetch;

  /** @param url address of the service, with a final slash */
  constructor(url: string, clock: Clock, send: typeof fetch = fetch) {
    this.#url = url;
    this.#clock = clock;
    this.#fetch = send;
  }

  /** Returns the record, or undefined if there is none. */
  async get(id: string, signal: AbortSignal): Promise<T | undefined> {
    const text = await this.#request('GET', id, signal);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  /** Creates or replaces the record. */
  async put(id: string, record: unknown, signal: AbortSignal): Promise<void> {
    await this.#request('PUT', id, signal, JSON.stringify(record));
  }

  /** Deletes the record if it exists. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#request('DELETE', id, signal);
  }

  /** Returns the body of the response, or undefined if the service answered 404. */
  async #request(method: string, id: string, signal: AbortSignal, body?: string) {
    const url = new URL(`records/${id}`, this.#url);
    const request = { method, headers: { 'content-type': 'application/json' }, body: body ?? null };
    const limit = { clock: this.#clock, timeoutMs: TIMEOUT_MS, signal };
    let response: Response;
    let text: string;
    try {
      [response, text] = await withinTimeout(limit, async (limited) => {
        const answer = await this.#fetch(url, { ...request, signal: limited });
        return [answer, await answer.text()];
      });
    } catch (error) {
      // The program stops.
      if (signal.aborted) throw error;
      throw new ServiceError('the service did not answer', false, error);
    }
    const { status } = response;
    if (response.ok) return text;
    if (status === 404 && method !== 'PUT') return undefined;
    const isRejection = status >= 400 && status < 500 && status !== 408 && status !== 429;
    throw new ServiceError(`the service answered ${status}: ${text.slice(0, 200)}`, isRejection);
  }
}
