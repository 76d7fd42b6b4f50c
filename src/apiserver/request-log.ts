import type { HttpRequest } from '../util/http.ts';
import type { RequestInfo } from './request-info.ts';

/** One request that reached the server. */
export interface RequestRecord {
  readonly method: HttpRequest['method'];
  /** With its query. */
  readonly path: string;
  /** What is asked for; absent for paths that are no resource's (discovery, health). */
  readonly info: RequestInfo | undefined;
  readonly userAgent: string;
  /** HTTP status of the answer; absent while there is none, and where the connection was cut. */
  status?: number;
}

/** Of the requests that are remembered whole. */
const REMEMBERED = 1000;

/** Combinations of verb, resource and subresource that are counted. */
const COUNTERS = 1000;

/** What the server was asked: the last requests whole, all of them as numbers. */
export class RequestLog {
  readonly #recent: RequestRecord[] = [];
  readonly #counts = new Map<string, number>();

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

  reset(): void {
    this.#recent.length = 0;
    this.#counts.clear();
  }

  add(record: RequestRecord): void {
    this.#recent.push(record);
    if (this.#recent.length > 2 * REMEMBERED) {
      this.#recent.splice(0, this.#recent.length - REMEMBERED);
    }
    const { info } = record;
    if (!info) return;
    const key = `${info.verb} ${info.resource} ${info.subresource ?? ''}`;
    const count = this.#counts.get(key);
    // Names in paths are the client's choice: a new one is counted only while there is room.
    if (count !== undefined || this.#counts.size < COUNTERS)
      this.#counts.set(key, (count ?? 0) + 1);
  }
}
