import type { HttpRequest } from '../util/http.ts';
import type { RequestInfo } from './request-info.ts';
import type { User } from './user.ts';

/** One request that reached the server. */
export interface RequestRecord {
  readonly method: HttpRequest['method'];
  /** With its query. */
  readonly path: string;
  /** What is asked for; absent for paths that are no resource's (discovery, health). */
  readonly info: RequestInfo | undefined;
  readonly userAgent: string;
  /** The user, after impersonation; absent if authentication failed. */
  user?: User;
  /** HTTP status of the answer; absent while there is none, and where the connection was cut. */
  status?: number;
}

/** Number of requests that are kept in full. */
const MAX_RECENT = 1000;

/** Characters of their paths and user agents, which clients choose before they are authenticated. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** Combinations of verb, resource and subresource that are counted. */
const COUNTERS = 1000;
const MAX_KEY_CHARACTERS = 500;

/** What the server was asked: the last requests whole, all of them as numbers. */
export class RequestLog {
  readonly #recent: RequestRecord[] = [];
  readonly #counts = new Map<string, number>();
  #characters = 0;

  /** The last requests, oldest first. */
  get recent(): readonly RequestRecord[] {
    return this.#recent;
  }

  /**
   * How many requests there were since the last reset; narrowed to a verb (`create`), a resource
   * (`pods`) and a subresource (`status`; an empty string: none) where given.
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
    // Clients choose the names in paths: a new one is counted only while there is room.
    const isCounted = this.#counts.size < COUNTERS && key.length <= MAX_KEY_CHARACTERS;
    if (count !== undefined || isCounted) this.#counts.set(key, (count ?? 0) + 1);
  }

  /** Keeps the last requests, as many as the limits allow. */
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
