import type { Clock } from '../../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { RequestRecord } from '../audit/request-log.ts';
import type { StoreSnapshot } from '../storage/store-log.ts';

/**
 * How a request fails:
 *
 * | failure        | the write is executed    | the client gets      |
 * | -------------- | ------------------------ | -------------------- |
 * | a status code  | no                       | that answer          |
 * | `'reset'`      | no                       | a broken connection  |
 * | `'lostResponse'` | yes                      | a broken connection  |
 */
export type Failure = number | 'reset' | 'lostResponse';

/** Matches requests by method, by properties, or by a function. */
export type RequestMatcher =
  | HttpRequest['method']
  | {
      readonly method?: HttpRequest['method'];
      readonly verb?: string;
      readonly resource?: string;
      readonly subresource?: string;
      readonly namespace?: string;
      readonly name?: string;
      /** Name of the user, after impersonation. */
      readonly user?: string;
    }
  | ((request: RequestRecord) => boolean);

/** Options of an injected fault. */
export interface FaultOptions {
  /**
   * Number of matching requests that it affects.
   * @default 1
   */
  readonly times?: number;
  /** `Retry-After` of an answer with a status code, in seconds. */
  readonly retryAfterSeconds?: number;
}

export interface FaultPlan {
  readonly failure: Failure;
  readonly retryAfterSeconds: number | undefined;
}

/** May be asynchronous: the request waits for it. */
type BeforeHook = (request: RequestRecord) => Failure | void | Promise<Failure | void>;
type AfterHook = (
  request: RequestRecord,
  response: HttpResponse,
) => 'reset' | void | Promise<'reset' | void>;

interface Pending<T> {
  readonly matches: (request: RequestRecord) => boolean;
  readonly what: T;
  left: number;
}

/** A broken connection. The listener breaks the real connection. */
export class ConnectionReset extends Error {
  override readonly name = 'ConnectionReset';
  readonly code = 'ECONNRESET';

  constructor(message: string = 'read ECONNRESET') {
    super(message);
  }
}

export interface FaultsDeps {
  readonly clock: Clock;
  /** Cuts the connections of all watches. */
  readonly dropWatches: () => void;
  /** Drops the history of all resources. */
  readonly expireHistory: () => void;
  readonly snapshot: () => StoreSnapshot;
  /** Restores a snapshot; undefined restores the state of a new server. */
  readonly restore: (snapshot: StoreSnapshot | undefined) => void;
}

/**
 * Injects faults of real servers. Each plan applies to the next matching request; the oldest of
 * several matching plans applies first.
 */
export class Faults {
  readonly #deps: FaultsDeps;
  #failures: Pending<FaultPlan>[] = [];
  #delays: Pending<number>[] = [];
  readonly #before = new Set<BeforeHook>();
  readonly #after = new Set<AfterHook>();

  constructor(deps: FaultsDeps) {
    this.#deps = deps;
  }

  /** The next matching request fails. */
  failNext(matcher: RequestMatcher, failure: Failure, options: FaultOptions = {}): void {
    const { times = 1, retryAfterSeconds } = options;
    this.#failures.push({
      matches: predicate(matcher),
      what: { failure, retryAfterSeconds },
      left: times,
    });
  }

  /** The next matching request waits `ms` milliseconds on the server's clock before it is served. */
  delayNext(matcher: RequestMatcher, ms: number, options: FaultOptions = {}): void {
    const { times = 1 } = options;
    this.#delays.push({ matches: predicate(matcher), what: ms, left: times });
  }

  /**
   * Calls `hook` before each request is served. The request fails with its result, if any. The returned
   * function removes the hook.
   */
  beforeRequest(hook: BeforeHook): () => void {
    this.#before.add(hook);
    return () => this.#before.delete(hook);
  }

  /**
   * Calls `hook` after each request was served and before its response is sent. `'reset'` drops the
   * response. The returned function removes the hook.
   */
  afterRequest(hook: AfterHook): () => void {
    this.#after.add(hook);
    return () => this.#after.delete(hook);
  }

  /** Breaks the connections of all watches. */
  dropWatches(): void {
    this.#deps.dropWatches();
  }

  /** Drops all history like a compaction of etcd: older resourceVersions get 410 Gone. */
  expireHistory(): void {
    this.#deps.expireHistory();
  }

  /** Returns a backup of all objects and the revision, like `etcdctl snapshot save`. */
  snapshot(): StoreSnapshot {
    return this.#deps.snapshot();
  }

  /**
   * Restores a backup like a restore of etcd with the API server stopped: all watches break, later
   * writes are lost, and resourceVersions continue from the backup's. A watch from a later
   * resourceVersion is accepted and sends no events until the server has passed it. The server
   * continues at once; for an outage, return `'reset'` from a `beforeRequest` hook.
   */
  restore(snapshot: StoreSnapshot): void {
    this.#deps.restore(snapshot);
  }

  /** Like `restore`, with the objects of a new server: its namespaces only. */
  wipe(): void {
    this.#deps.restore(undefined);
  }

  /** Removes all plans and hooks. */
  clear(): void {
    this.#failures = [];
    this.#delays = [];
    this.#before.clear();
    this.#after.clear();
  }

  /** Whether a plan or a hook can read the user of a request. */
  get areActive(): boolean {
    return this.#failures.length + this.#delays.length + this.#before.size > 0;
  }

  /** Returns the fault of a request, if any, after its delay. */
  async before(request: RequestRecord, signal?: AbortSignal): Promise<FaultPlan | undefined> {
    const delay = take(this.#delays, request);
    if (delay !== undefined) await this.#deps.clock.sleep(delay, signal);
    for (const hook of this.#before) {
      const failure = await hook(request);
      if (failure !== undefined) return { failure, retryAfterSeconds: undefined };
    }
    return take(this.#failures, request);
  }

  /** Whether `after` has an effect. */
  get hasAfterHooks(): boolean {
    return this.#after.size > 0;
  }

  /** @throws {ConnectionReset} if the response is dropped */
  async after(request: RequestRecord, response: HttpResponse): Promise<void> {
    for (const hook of this.#after) {
      if ((await hook(request, response)) === 'reset') throw new ConnectionReset();
    }
  }
}

function take<T>(pending: Pending<T>[], request: RequestRecord): T | undefined {
  const index = pending.findIndex(({ matches }) => matches(request));
  const plan = pending[index];
  if (!plan) return undefined;
  plan.left--;
  if (plan.left <= 0) pending.splice(index, 1);
  return plan.what;
}

function predicate(matcher: RequestMatcher): (request: RequestRecord) => boolean {
  if (typeof matcher === 'function') return matcher;
  if (typeof matcher === 'string') return ({ method }) => method === matcher;
  const { method, user, ...wanted } = matcher;
  const properties = Object.entries(wanted);
  return (request) =>
    (method === undefined || request.method === method) &&
    (user === undefined || request.user?.name === user) &&
    properties.every(([property, value]) => {
      const { info } = request;
      if (!info) return false;
      // An empty subresource stands for the resource itself.
      return (info[property as keyof typeof wanted] ?? '') === value;
    });
}
