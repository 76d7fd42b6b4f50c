import { createHash } from 'node:crypto';
import { isApiError } from '../../api/api-error.ts';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../util/values.ts';
import { withinTimeout } from '../../client/within-timeout.ts';
import type { BackoffPolicy } from '../../util/backoff.ts';
import { backoffMs } from '../../util/backoff.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { LruMap } from '../../util/lru-map.ts';

/** What is known of a request before it is answered. */
export interface GuardedRequest {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** The header of that name. */
  readonly authorization: string | undefined;
  /** Aborts when nobody waits for an answer any more, since the server stops. */
  readonly signal: AbortSignal;
}

/** Result of an access review. */
export type Verdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly status: 401 | 403 | 500 | 503; readonly why: string };

/** Says who may ask. */
export interface RequestGuard {
  /** Reviews a request. */
  judge(request: GuardedRequest): Promise<Verdict>;
}

/** Dependencies of `DelegatedAccess`. */
export interface DelegatedAccessDeps {
  /** Asks about others: needs `create` of tokenreviews and subjectaccessreviews, and no write fence. */
  readonly client: Pick<Client, 'raw'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** For how long an answer counts, in milliseconds: those of kube components. */
const TOKEN_MS = 60_000;
const ALLOWED_MS = 5 * 60_000;
const DENIED_MS = 30_000;

/** Answers of each kind that are remembered: nobody's tokens do not displace somebody's. */
const MOST_ANSWERS = 1000;

/** A token that is longer is nobody's: 16 times what a ServiceAccount's has. */
const LONGEST_TOKEN = 16 * 1024;

/** Of each kind, under way: whoever makes up tokens shall not have us flood the API server. */
const MOST_REVIEWS = 16;

/** For a review and its repetitions, in milliseconds. */
const REVIEW_TIMEOUT_MS = 10_000;
const ATTEMPTS = 5;
const BACKOFF: BackoffPolicy = { initialMs: 500, maxMs: 10_000, factor: 1.5 };

const AUTHENTICATION = 'authentication.k8s.io/v1';
const AUTHORIZATION = 'authorization.k8s.io/v1';

/** As a TokenReview has it, and as a SubjectAccessReview wants it. */
interface Subject {
  readonly username: string;
  readonly uid: string | undefined;
  readonly groups: readonly unknown[] | undefined;
  readonly extra: object | undefined;
}

interface Remembered<V> {
  readonly value: V;
  readonly untilMs: number;
}

/**
 * Lets the cluster decide who may ask, as kube components do: a TokenReview tells whose the bearer
 * token is, a SubjectAccessReview whether they may do this to a path (`nonResourceURLs` of a
 * ClusterRole). Both are remembered for a while; nobody gets in while the API server cannot be asked,
 * save who was remembered. Tokens are kept as hashes only, and never logged.
 */
export class DelegatedAccess implements RequestGuard {
  readonly #deps: DelegatedAccessDeps;
  readonly #known = new LruMap<string, Remembered<Subject>>(MOST_ANSWERS);
  readonly #unknown = new LruMap<string, Remembered<true>>(MOST_ANSWERS);
  readonly #allowed = new LruMap<string, Remembered<true>>(MOST_ANSWERS);
  readonly #denied = new LruMap<string, Remembered<true>>(MOST_ANSWERS);
  /** Reviews under way: those who ask the same wait for the same answer. */
  readonly #identifying = new Map<string, Promise<Subject | undefined>>();
  readonly #permitting = new Map<string, Promise<boolean>>();

  constructor(deps: DelegatedAccessDeps) {
    this.#deps = deps;
  }

  /** Reviews a request. */
  async judge({ method, path, authorization = '', signal }: GuardedRequest): Promise<Verdict> {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    if (token === undefined || token.length > LONGEST_TOKEN) return UNAUTHORIZED;
    const { log } = this.#deps;
    try {
      const subject = await this.#subjectOf(token, signal);
      if (!subject) return UNAUTHORIZED;
      const verb = method.toLowerCase();
      if (await this.#mayAsk(subject, { verb, path }, signal)) return { allowed: true };
      const { username } = subject;
      log.v(4).info('Refused a request', { user: username, verb, path });
      return {
        allowed: false,
        status: 403,
        why: `User "${username}" cannot ${verb} path "${path}"`,
      };
    } catch (error) {
      if (error instanceof Busy) return { allowed: false, status: 503, why: error.message };
      log.error(error, 'Could not find out who may ask', { path });
      return { allowed: false, status: 500, why: 'The API server could not be asked' };
    }
  }

  /** Whose the token is; undefined if it is nobody's. */
  async #subjectOf(token: string, signal: AbortSignal): Promise<Subject | undefined> {
    const key = hashOf(token);
    const known = this.#recall(this.#known, key);
    if (known || this.#recall(this.#unknown, key)) return known;
    return once(this.#identifying, key, async () => {
      const review = await this.#ask(signal, `/apis/${AUTHENTICATION}/tokenreviews`, {
        apiVersion: AUTHENTICATION,
        kind: 'TokenReview',
        spec: { token },
      });
      const subject = subjectIn(review);
      if (subject) this.#remember(this.#known, key, subject, TOKEN_MS);
      else this.#remember(this.#unknown, key, true, TOKEN_MS);
      return subject;
    });
  }

  async #mayAsk(
    { username, ...rest }: Subject,
    nonResourceAttributes: { readonly verb: string; readonly path: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    const spec = { user: username, ...rest, nonResourceAttributes };
    const key = hashOf(JSON.stringify(spec));
    if (this.#recall(this.#allowed, key)) return true;
    if (this.#recall(this.#denied, key)) return false;
    return once(this.#permitting, key, async () => {
      const { allowed } = await this.#ask(signal, `/apis/${AUTHORIZATION}/subjectaccessreviews`, {
        apiVersion: AUTHORIZATION,
        kind: 'SubjectAccessReview',
        spec,
      });
      if (allowed === true) this.#remember(this.#allowed, key, true, ALLOWED_MS);
      else this.#remember(this.#denied, key, true, DENIED_MS);
      return allowed === true;
    });
  }

  /** The status of a review, after as many attempts as there is time for. */
  #ask(outer: AbortSignal, path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const { client, clock } = this.#deps;
    const limit = { clock, timeoutMs: REVIEW_TIMEOUT_MS, signal: outer };
    return withinTimeout(limit, async (signal) => {
      for (let attempt = 1; ; attempt++) {
        try {
          const review = await client.raw({ method: 'POST', path, body, signal });
          if (isRecord(review) && isRecord(review['status'])) return review['status'];
          throw new Error(`The answer to POST ${path} is no review`);
        } catch (error) {
          if (signal.aborted || attempt === ATTEMPTS || !mayPass(error)) throw error;
          await clock.sleep(backoffMs(BACKOFF, attempt - 1), signal);
          signal.throwIfAborted();
        }
      }
    });
  }

  #recall<V>(answers: LruMap<string, Remembered<V>>, key: string): V | undefined {
    const answer = answers.get(key);
    return answer && this.#deps.clock.monotonic() < answer.untilMs ? answer.value : undefined;
  }

  #remember<V>(answers: LruMap<string, Remembered<V>>, key: string, value: V, ms: number): void {
    answers.set(key, { value, untilMs: this.#deps.clock.monotonic() + ms });
  }
}

const UNAUTHORIZED: Verdict = { allowed: false, status: 401, why: 'Unauthorized' };

class Busy extends Error {
  constructor() {
    super('Too many who are not known yet ask at the same time');
  }
}

async function once<R>(
  underWay: Map<string, Promise<R>>,
  key: string,
  ask: () => Promise<R>,
): Promise<R> {
  const asked = underWay.get(key);
  if (asked) return asked;
  if (underWay.size >= MOST_REVIEWS) throw new Busy();
  const answer = ask().finally(() => underWay.delete(key));
  underWay.set(key, answer);
  return answer;
}

/** Failures that may be over soon. */
function mayPass(error: unknown): boolean {
  return isApiError(error, 'unreachable', 'timeout', 'internal', 'unavailable', 'tooManyRequests');
}

function subjectIn({
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

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
