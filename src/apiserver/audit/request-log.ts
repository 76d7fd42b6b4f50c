import type { HttpRequest } from '../../util/http.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { User } from '../../api/user.ts';

/** One request that reached the server. */
export interface RequestRecord {
  readonly method: HttpRequest['method'];
  /** The path with its query. */
  readonly path: string;
  /** The request info; absent for paths without a resource (discovery, health). */
  readonly info: RequestInfo | undefined;
  readonly userAgent: string;
  /** Wall clock time at which the request was received, in milliseconds. */
  readonly receivedMs: number;
  /** The user, after impersonation; absent if authentication failed. */
  user?: User;
  /** HTTP status of the response; absent before it is sent, and if the connection was reset. */
  status?: number;
}

/** Number of requests that are kept in full. */
const MAX_RECENT = 1000;

/** Maximum total length of their paths and user agents, which unauthenticated clients choose, in characters. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** Maximum number of combinations of verb, resource and subresource that are counted. */
const COUNTERS = 1000;
const MAX_KEY_CHARACTERS = 500;

/** The log of requests: the last ones completely, and counters of all. */
export class RequestLog {
  readonly #recent: RequestRecord[] = [];
  readonly #counts = new Map<string, number>();
  #characters = 0;

  /** The last requests, oldest first. */
  get recent(): readonly RequestRecord[] {
    return this.#recent;
  }

  /**
   * Returns the number of requests since the last reset, optionally of a verb (`create`), a resource
   * (`pods`) and a subresource (`status`; an empty string for none).
   */
  count(filter: { verb?: string; resource?: string; subresource?: string } = {}): number {
    let total = 0;
    for (const [key, count] of this.#counts) {
      const [verb, resource, subresource] = key.split(' ');
      if (filter.verb !== undefined && filter.verb !== verb) continue;
      if (filter.resource !== undefined && filter.resource !== resource) continue;
      if (filter.subresource !== undefined && filter.subresource !== subresource) continue;
      total += count;
    }
    return total;
  }

  /** Removes all requests. */
  reset(): void {
    this.#recent.length = 0;
    this.#characters = 0;
    this.#counts.clear();
  }

  /** Adds a request. */
  add(record: RequestRecord): void {
    this.#recent.push(record);
    this.#characters += charactersOf(record);
    if (this.#recent.length > 2 * MAX_RECENT || this.#characters > 2 * MAX_CHARACTERS) this.#trim();
    const { info } = record;
    if (!info) return;
    const key = `${info.verb} ${info.resource} ${info.subresource ?? ''}`;
    const count = this.#counts.get(key);
    // Clients choose the names in paths, so the number of counters is bounded.
    const isCounted = this.#counts.size < COUNTERS && key.length <= MAX_KEY_CHARACTERS;
    if (count !== undefined || isCounted) this.#counts.set(key, (count ?? 0) + 1);
  }

  /** Drops the oldest requests beyond the limits. */
  #trim(): void {
    let kept = 0;
    let characters = 0;
    for (const record of this.#recent.toReversed()) {
      const total = characters + charactersOf(record);
      if (kept === MAX_RECENT || total > MAX_CHARACTERS) break;
      kept++;
      characters = total;
    }
    this.#recent.splice(0, this.#recent.length - kept);
    this.#characters = characters;
  }
}

function charactersOf({ path, userAgent }: RequestRecord): number {
  return path.length + userAgent.length;
}
