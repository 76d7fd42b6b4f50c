import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { parseTarget, requestInfo } from '../../src/apiserver/request/request-info.ts';
import type { Client } from '../../src/client/client.ts';
import type { Clock } from '../../src/util/clock.ts';
import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';

/** User agent of the client of a test, which may send any request. */
export const TEST_AGENT = 'test';

/** User agent of the cluster controllers. */
export const CLUSTER_AGENT = 'cluster';

/** A client-side rate limit. */
export interface RateLimit {
  /** Requests per second. */
  readonly qps: number;
  readonly burst: number;
}

/** A call of a client with the responses to its requests. */
interface ClientCall {
  readonly rules: WireRules;
  readonly name: string;
  readonly statuses: number[];
}

/** Calls in progress. One storage for all instances, because each one slows down Node.js 22. */
const calls = new AsyncLocalStorage<ClientCall>();

type Json = Readonly<Record<string, unknown>>;

/** Tolerance for the rounding of times. */
const TOLERANCE = 1e-6;

/**
 * Rules for all requests of our programs:
 *
 * - a DELETE names one object and carries the precondition of its uid;
 * - a patch and a binding carry the uid, except patches of events and applies;
 * - a write to finalizers, owner references or a list of the spec carries uid and resourceVersion;
 * - a write of a daemon has a field manager;
 * - a client does not retry after a 4xx, except after 429, and once after 401;
 * - a client does not exceed its rate limit, including retries;
 * - a write of a cluster controller changes something.
 *
 * Test clusters check them at the end.
 */
export class WireRules {
  /** Writes of daemons, as method and path. */
  readonly writes: string[] = [];
  readonly #broken: string[] = [];

  /** Checks each request that goes to `handler`. */
  around(handler: HttpHandler): HttpHandler {
    return async (request) => {
      this.#check(request);
      const call = this.#currentCall();
      const response = await handler(request);
      call?.statuses.push(response.status);
      return response;
    };
  }

  /** Wraps `client` and marks its calls, to distinguish a retry from a new call. */
  follow(client: Client): Client {
    return new Proxy(client, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return (...given: readonly unknown[]): unknown =>
          calls.run({ rules: this, name: String(property), statuses: [] }, () =>
            Reflect.apply(value, target, given),
          );
      },
    });
  }

  /** Checks that the requests of a client, without watches, comply with its rate limit. */
  limited(handler: HttpHandler, { qps, burst }: RateLimit, clock: Clock): HttpHandler {
    let tokens = burst;
    let countedMs = clock.monotonic();
    return (request) => {
      if (!request.longRunning) {
        const nowMs = clock.monotonic();
        tokens = Math.min(burst, tokens + ((nowMs - countedMs) / 1000) * qps) - 1;
        countedMs = nowMs;
        if (tokens < -TOLERANCE) this.#note('beyond the rate limit', request);
      }
      return handler(request);
    };
  }

  /** Checks that each write that succeeds changes an object. */
  changing(handler: HttpHandler, revision: () => number): HttpHandler {
    return async (request) => {
      const before = revision();
      const response = await handler(request);
      const isWrite = request.method !== 'GET' && !request.path.includes('/events');
      if (isWrite && response.status < 300 && revision() === before) {
        this.#note('changes nothing', request);
      }
      return response;
    };
  }

  /** Rejects if a request violated a rule. */
  assertKept(): void {
    const broken = this.#broken.splice(0);
    assert.deepEqual([...new Set(broken)], [], `${broken.length} requests broke a rule`);
  }

  #check(request: HttpRequest): void {
    const userAgent = request.headers['user-agent'] ?? '';
    if (userAgent === TEST_AGENT) return;
    const { method, path } = request;
    if (method !== 'GET' && userAgent !== CLUSTER_AGENT) this.writes.push(`${method} ${path}`);
    const broken = [
      this.#repeated(),
      deletedWithoutUid(request),
      withoutPrecondition(request),
      userAgent === CLUSTER_AGENT ? undefined : unmanaged(request),
    ];
    for (const problem of broken) {
      if (problem !== undefined) this.#note(problem, request);
    }
  }

  #note(problem: string, { method, path, headers }: HttpRequest): void {
    this.#broken.push(`${problem}: ${headers['user-agent']} ${method} ${path}`);
  }

  /** Returns the call that sends the current request, if its client has these rules. */
  #currentCall(): ClientCall | undefined {
    const call = calls.getStore();
    return call?.rules === this ? call : undefined;
  }

  #repeated(): string | undefined {
    const call = this.#currentCall();
    const last = call?.statuses.at(-1);
    if (call === undefined || last === undefined || last < 400 || last >= 500) return undefined;
    if (last === 429 || (last === 401 && call.statuses.length === 1)) return undefined;
    return `${call.name} was repeated after ${last}`;
  }
}

function deletedWithoutUid({ method, path, body }: HttpRequest): string | undefined {
  if (method !== 'DELETE') return undefined;
  if (requestInfo(method, parseTarget(path))?.name === undefined) return 'deletes a collection';
  const { uid } = record(parse(body)['preconditions']);
  return typeof uid === 'string' ? undefined : 'deletes without the uid';
}

/** List fields that a write replaces as a whole, which could remove concurrent additions. */
const GUARDED = /finalizers|ownerReferences/;

function withoutPrecondition({ method, path, headers, body }: HttpRequest): string | undefined {
  if (method === 'PUT') return versionless(record(parse(body)['metadata']));
  if (method === 'POST' && /\/binding(?:$|\?)/.test(path)) {
    const { uid } = record(parse(body)['metadata']);
    return typeof uid === 'string' ? undefined : 'binds without the uid';
  }
  if (method !== 'PATCH') return undefined;
  const patch: unknown = JSON.parse(text(body));
  if (path.includes('/events/')) return undefined;
  if (Array.isArray(patch)) {
    const operations = patch.map(record);
    if (!operations.some(({ path: at }) => GUARDED.test(String(at)))) return undefined;
    const values = operations.map(({ path: at, value }) => [String(at).split('/').at(-1), value]);
    return versionless(Object.fromEntries(values) as Json);
  }
  // An apply does not remove entries of others.
  if (headers['content-type']?.includes('apply-patch')) return undefined;
  const metadata = record(record(patch)['metadata']);
  const { uid, resourceVersion } = metadata;
  if (uid === undefined && resourceVersion === undefined) {
    return 'patches without uid or resourceVersion';
  }
  const isMerge = headers['content-type']?.includes('/merge-patch') === true;
  return Object.keys(metadata).some((field) => GUARDED.test(field)) ||
    (isMerge && hasList(record(patch)['spec']))
    ? versionless(metadata)
    : undefined;
}

/** A merge patch replaces a list as a whole. */
function hasList(value: unknown): boolean {
  return Array.isArray(value) || Object.values(record(value)).some(hasList);
}

function versionless({ uid, resourceVersion }: Json): string | undefined {
  return typeof uid === 'string' && typeof resourceVersion === 'string'
    ? undefined
    : 'writes a list of several writers without uid and resourceVersion';
}

function unmanaged({ method, path }: HttpRequest): string | undefined {
  if (method === 'GET' || method === 'DELETE') return undefined;
  const info = requestInfo(method, parseTarget(path));
  // Reviews are not stored.
  if (!info || info.resource.endsWith('reviews')) return undefined;
  return new URLSearchParams(path.split('?')[1]).has('fieldManager')
    ? undefined
    : 'writes without a field manager';
}

function parse(body: HttpRequest['body']): Json {
  return record(JSON.parse(text(body) || '{}'));
}

function text(body: HttpRequest['body']): string {
  return body === undefined || typeof body === 'string'
    ? (body ?? '')
    : Buffer.from(body).toString();
}

function record(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}
