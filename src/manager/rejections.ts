import { ApiError } from '../api/api-error.ts';
import type { ApiErrorKind } from '../api/api-error.ts';

/** Kinds of errors that concern the client or the server, and not the object of a request. */
const GENERAL: ReadonlySet<ApiErrorKind> = new Set([
  'unauthorized',
  'tooManyRequests',
  'unavailable',
  'timeout',
  'unreachable',
  'malformed',
]);

/** An object as errors name it. */
interface Named {
  readonly kind?: string | undefined;
  readonly metadata: { readonly name?: string | undefined };
}

/**
 * Calls `work` for one item after another, also after one that the server rejects: admission may deny one object of several.
 * An error that concerns the server ends it.
 *
 * @throws {ApiError} after all else is done, if the server rejected requests. It names all of their objects, and has the kind of
 *   the first error.
 */
export async function forEachObject<T extends Named>(
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const rejections = new Rejections();
  for (const item of items) await rejections.catch(item, () => work(item));
  rejections.throw();
}

/** The rejected requests of one sync. */
export class Rejections {
  readonly #errors: ApiError[] = [];
  readonly #texts: string[] = [];

  get isEmpty(): boolean {
    return this.#errors.length === 0;
  }

  /**
   * Resolves with the result of `work`, or with undefined if the server rejects its request.
   *
   * Rejects with any other error.
   */
  async catch<R>(
    { kind = 'object', metadata }: Named,
    work: () => Promise<R>,
  ): Promise<R | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ApiError) || GENERAL.has(error.kind)) throw error;
      this.#errors.push(error);
      this.#texts.push(`${kind} "${metadata.name ?? ''}": ${error.message}`);
      return undefined;
    }
  }

  /** @throws {ApiError} if there are any */
  throw(): void {
    const [first, ...others] = this.#errors;
    if (!first) return;
    const { kind, code, reason, details, retryAfterMs } = first;
    const message = this.#texts.join('; ');
    const cause = others.length === 0 ? first : new AggregateError(this.#errors, message);
    throw new ApiError({ kind, code, reason, details, retryAfterMs, message, cause });
  }
}
