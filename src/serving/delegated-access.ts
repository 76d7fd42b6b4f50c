import { createHash } from 'node:crypto';
import { isApiError } from '../api/api-error.ts';
import type { Client } from '../client/client.ts';
import { isRecord } from '../util/values.ts';
import { withinTimeout } from '../util/within-timeout.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import { backoffMs } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';

/** Attributes of a request that access control needs. */
export interface RequestAttributes {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  /** Value of the `Authorization` header. */
  readonly authorization: string | undefined;
  /**
   * Remote address of the client.
   * @default unknown
   */
  readonly address?: string;
  /** Aborts when the server stops. */
  readonly signal: AbortSignal;
}

type DeniedStatus = 401 | 403 | 500 | 503;

/** Result of an access review. */
export type AccessDecision =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly status: DeniedStatus; readonly reason: string };

/** Authenticates and authorizes requests. */
export interface RequestAuthorizer {
  /** Reviews a request. */
  authorize(request: RequestAttributes): Promise<AccessDecision>;
}

/** Dependencies of {@link DelegatedAccess}. */
export interface DelegatedAccessDeps {
  /** Creates TokenReviews and SubjectAccessReviews. Must not be behind a write fence. */
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Lifetimes of cached review results in milliseconds, as in Kubernetes components. */
const TOKEN_TTL_MS = 60_000;
const ALLOWED_TTL_MS = 5 * 60_000;
const DENIED_TTL_MS = 30_000;

/** Maximum size of each cache. Unknown tokens have a cache of their own and cannot evict known ones. */
const MAX_CACHED_ANSWERS = 1000;

/** Maximum length of a token: 16 times that of a ServiceAccount token. */
const MAX_TOKEN_LENGTH = 16 * 1024;

/**
 * Maximum number of concurrent reviews of each kind and `Standing`, so that random tokens cannot flood the API server,
 * and do not keep out clients that had access before.
 */
const MAX_CONCURRENT_REVIEWS = 16;

/** Maximum number of these reviews for new clients of one address, so that one does not take the places of all. */
const MAX_REVIEWS_OF_ADDRESS = 4;

/** What is known of a client: nothing, that a token from its address was valid, or that this token was. */
type Standing = 'new' | 'knownAddress' | 'known';

/** Timeout of a review with all its retries, in milliseconds. */
const REVIEW_TIMEOUT_MS = 10_000;
const ATTEMPTS = 5;
const BACKOFF: BackoffPolicy = { initialMs: 500, maxMs: 10_000, factor: 1.5 };

const AUTHENTICATION = 'authentication.k8s.io/v1';
const AUTHORIZATION = 'authorization.k8s.io/v1';

/** User of a token, in the form that both reviews use. */
interface Subject {
  readonly username: string;
  readonly uid: string | undefined;
  readonly groups: readonly unknown[] | undefined;
  readonly extra: object | undefined;
}

interface CachedAnswer<V> {
  readonly value: V;
  readonly untilMs: number;
}

/**
 * Delegates authentication and authorization to the API server, as Kubernetes components do. A
 * TokenReview authenticates the bearer token. A SubjectAccessReview decides whether its user may
 * access the path (`nonResourceURLs` of a ClusterRole).
 *
 * Results are cached. Without a cached result, requests are rejected while the API server is not
 * available. Tokens are stored as hashes only and are never logged.
 */
export class DelegatedAccess implements RequestAuthorizer {
  readonly #deps: DelegatedAccessDeps;
  readonly #knownTokens = new LruMap<string, CachedAnswer<Subject>>(MAX_CACHED_ANSWERS);
  readonly #unknownTokens = new LruMap<string, CachedAnswer<true>>(MAX_CACHED_ANSWERS);
  readonly #allowed = new LruMap<string, CachedAnswer<true>>(MAX_CACHED_ANSWERS);
  readonly #denied = new LruMap<string, CachedAnswer<true>>(MAX_CACHED_ANSWERS);
  readonly #authenticating = new SharedReviews<Subject | undefined>();
  readonly #authorizing = new SharedReviews<boolean>();
  /** Addresses from which a token was valid. */
  readonly #knownAddresses = new LruMap<string, true>(MAX_CACHED_ANSWERS);

  constructor(deps: DelegatedAccessDeps) {
    this.#deps = deps;
  }

  /** Reviews a request. */
  async authorize({
    method,
    path,
    authorization = '',
    address = '',
    signal,
  }: RequestAttributes): Promise<AccessDecision> {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return UNAUTHORIZED;
    const { log } = this.#deps;
    try {
      const subject = await this.#authenticate(token, address, signal);
      if (!subject) return UNAUTHORIZED;
      if (address !== '') this.#knownAddresses.set(address, true);
      const verb = method.toLowerCase();
      if (await this.#isAllowed(subject, { verb, path }, signal)) return { allowed: true };
      const { username } = subject;
      log.v(4).info('Denied request', { user: username, verb, path });
      return denied(403, `User "${username}" cannot ${verb} path "${path}"`);
    } catch (error) {
      if (error instanceof TooManyReviews) return denied(503, error.message);
      log.error(error, 'Unable to authorize request', { path });
      return denied(500, 'Unable to authorize: the API server is not available');
    }
  }

  /** Returns the user of the token, or undefined if the token is not valid. */
  async #authenticate(
    token: string,
    address: string,
    signal: AbortSignal,
  ): Promise<Subject | undefined> {
    const key = hash(token);
    const known = this.#cached(this.#knownTokens, key);
    if (known || this.#cached(this.#unknownTokens, key)) return known;
    // A token that was valid stays in its cache after the answer has expired. A renewed token is a new one.
    const standing: Standing = this.#knownTokens.get(key)
      ? 'known'
      : this.#knownAddresses.get(address)
        ? 'knownAddress'
        : 'new';
    return this.#authenticating.once(key, { standing, address }, async () => {
      const review = await this.#review(signal, `/apis/${AUTHENTICATION}/tokenreviews`, {
        apiVersion: AUTHENTICATION,
        kind: 'TokenReview',
        spec: { token },
      });
      const subject = subjectOf(review);
      if (subject) this.#cache(this.#knownTokens, key, subject, TOKEN_TTL_MS);
      else this.#cache(this.#unknownTokens, key, true, TOKEN_TTL_MS);
      return subject;
    });
  }

  async #isAllowed(
    { username, ...rest }: Subject,
    nonResourceAttributes: { readonly verb: string; readonly path: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    const spec = { user: username, ...rest, nonResourceAttributes };
    const key = hash(JSON.stringify(spec));
    if (this.#cached(this.#allowed, key)) return true;
    if (this.#cached(this.#denied, key)) return false;
    const standing: Standing = this.#allowed.get(key) ? 'known' : 'new';
    return this.#authorizing.once(key, { standing }, async () => {
      const { allowed } = await this.#review(
        signal,
        `/apis/${AUTHORIZATION}/subjectaccessreviews`,
        {
          apiVersion: AUTHORIZATION,
          kind: 'SubjectAccessReview',
          spec,
        },
      );
      if (allowed === true) this.#cache(this.#allowed, key, true, ALLOWED_TTL_MS);
      else this.#cache(this.#denied, key, true, DENIED_TTL_MS);
      return allowed === true;
    });
  }

  /** Creates a review and returns its status. Retries within the timeout. */
  #review(
    outer: AbortSignal,
    path: string,
    body: object,
  ): Promise<Readonly<Record<string, unknown>>> {
    const { client, clock } = this.#deps;
    const limit = { clock, timeoutMs: REVIEW_TIMEOUT_MS, signal: outer };
    return withinTimeout(limit, async (signal) => {
      for (let attempt = 1; ; attempt++) {
        try {
          const review = await client.raw({ method: 'POST', path, body, signal });
          if (isRecord(review) && isRecord(review['status'])) return review['status'];
          throw new Error(`Unexpected response to POST ${path}: no status in the review`);
        } catch (error) {
          if (signal.aborted || attempt === ATTEMPTS || !isRetriable(error)) throw error;
          await clock.sleep(backoffMs(BACKOFF, attempt - 1), signal);
          signal.throwIfAborted();
        }
      }
    });
  }

  #cached<V>(answers: LruMap<string, CachedAnswer<V>>, key: string): V | undefined {
    const answer = answers.get(key);
    return answer && this.#deps.clock.monotonic() < answer.untilMs ? answer.value : undefined;
  }

  #cache<V>(answers: LruMap<string, CachedAnswer<V>>, key: string, value: V, ms: number): void {
    answers.set(key, { value, untilMs: this.#deps.clock.monotonic() + ms });
  }
}

const UNAUTHORIZED = denied(401, 'Unauthorized');

function denied(status: DeniedStatus, reason: string): AccessDecision {
  return { allowed: false, status, reason };
}

class TooManyReviews extends Error {
  constructor() {
    super('Too many requests wait for authorization; try again later');
  }
}

/** Reviews in progress. Equal requests share one review. */
class SharedReviews<R> {
  readonly #inProgress = new Map<string, Promise<R>>();
  readonly #counts: Record<Standing, number> = { new: 0, knownAddress: 0, known: 0 };
  /** Reviews for new clients by address. */
  readonly #ofAddress = new Map<string, number>();

  /**
   * Calls `review`, or shares the call for the same key that is in progress.
   *
   * @throws {TooManyReviews} if there are too many for clients of this standing
   */
  async once(
    key: string,
    { standing, address = '' }: { readonly standing: Standing; readonly address?: string },
    review: () => Promise<R>,
  ): Promise<R> {
    const shared = this.#inProgress.get(key);
    if (shared) return shared;
    const isLimited = standing === 'new' && address !== '';
    const ofAddress = this.#ofAddress.get(address) ?? 0;
    if (isLimited && ofAddress >= MAX_REVIEWS_OF_ADDRESS) throw new TooManyReviews();
    if (this.#counts[standing] >= MAX_CONCURRENT_REVIEWS) throw new TooManyReviews();
    this.#counts[standing]++;
    if (isLimited) this.#ofAddress.set(address, ofAddress + 1);
    const answer = review().finally(() => {
      this.#counts[standing]--;
      if (isLimited) this.#leave(address);
      this.#inProgress.delete(key);
    });
    this.#inProgress.set(key, answer);
    return answer;
  }

  #leave(address: string): void {
    const left = (this.#ofAddress.get(address) ?? 0) - 1;
    if (left > 0) this.#ofAddress.set(address, left);
    else this.#ofAddress.delete(address);
  }
}

/** Returns whether a retry can succeed. */
function isRetriable(error: unknown): boolean {
  return isApiError(error, 'unreachable', 'timeout', 'internal', 'unavailable', 'tooManyRequests');
}

function subjectOf({
  authenticated,
  user,
}: Readonly<Record<string, unknown>>): Subject | undefined {
  if (authenticated !== true || !isRecord(user)) return undefined;
  const { username, uid, groups, extra } = user;
  if (typeof username !== 'string' || username === '') return undefined;
  return {
    username,
    uid: typeof uid === 'string' ? uid : undefined,
    groups: Array.isArray(groups) ? groups : undefined,
    extra: isRecord(extra) ? extra : undefined,
  };
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
