import { ApiError } from '../api/api-error.ts';
import { parseJson, structureOf } from '../client/json.ts';
import { SMALL_BODY_BYTES } from '../serving/request-body.ts';
import { shareOfHeap } from '../util/heap-limit.ts';
import { MemoryBudget } from '../util/memory-budget.ts';
import type { MemoryBudgetOptions } from '../util/memory-budget.ts';
import { isRecord } from '../util/values.ts';
import { BadReview } from './admission-review.ts';
import type { Unchecked } from './admission-review.ts';

/** A type of review. */
export interface ReviewType {
  readonly apiVersion: string;
  readonly kind: string;
  /** Maximum memory of the parsed body, in bytes. */
  readonly maxBytes: number;
  /** Number of copies of the parsed body that its review needs. */
  readonly copies: number;
}

/** Memory for the parsed bodies of all reviews in progress: at most half of the heap and 256 MiB. */
const MEMORY_SHARE = 1 / 2;
const MEMORY_BOUNDS = { max: 256 * 1024 ** 2 };

/** The same for small bodies, which do not wait for large ones. */
const SMALL_SHARE = 1 / 8;
const SMALL_BOUNDS = { max: 64 * 1024 ** 2 };

/** Memory of a parsed text for each opening bracket, colon and comma, in bytes. Typical objects need a fifth of it. */
const MARK_BYTES = 48;

/** Parses the bodies of reviews. Reviews share a memory: others are not parsed until there is enough. */
export class ReviewBodies {
  readonly #maxBytes: number;
  readonly #large: MemoryBudget;
  readonly #small: MemoryBudget;

  constructor(memory: Partial<MemoryBudgetOptions> = {}) {
    const { bytes = shareOfHeap(MEMORY_SHARE, MEMORY_BOUNDS) } = memory;
    const smallBytes = Math.min(bytes, shareOfHeap(SMALL_SHARE, SMALL_BOUNDS));
    this.#maxBytes = bytes;
    this.#large = new MemoryBudget({ ...memory, bytes });
    this.#small = new MemoryBudget({ ...memory, bytes: smallBytes });
  }

  /**
   * Calls `use` with the request of a review.
   *
   * @throws {BadReview} if the body is not a review of this type with a request, or needs too much memory
   * @throws {OverloadedError} if there was not enough memory in time
   */
  async parse<R>(
    body: Buffer,
    type: ReviewType,
    signal: AbortSignal,
    use: (request: Unchecked) => R | Promise<R>,
  ): Promise<R> {
    const { members, marks } = structureOf(body);
    const bytes = body.length + MARK_BYTES * marks;
    if (bytes > Math.min(type.maxBytes, this.#maxBytes)) {
      throw new BadReview('the body has too many values', 413);
    }
    const memory = body.length <= SMALL_BODY_BYTES ? this.#small : this.#large;
    return memory.use(bytes * type.copies, signal, () => use(requestIn(body, members, type)));
  }
}

function requestIn(body: Buffer, members: number, { apiVersion, kind }: ReviewType): Unchecked {
  let review: unknown;
  try {
    review = parseJson(body, 'the review');
  } catch (error) {
    throw error instanceof ApiError ? new BadReview(error.message) : error;
  }
  if (!isRecord(review) || review['apiVersion'] !== apiVersion || review['kind'] !== kind) {
    throw new BadReview(`the body is not a ${kind} of ${apiVersion}`);
  }
  // Of duplicate keys, JSON.parse keeps the last. Another parser, which checked the object before, may keep the first.
  if (membersOf(review) !== members) throw new BadReview('the body has duplicate keys');
  const { request } = review;
  if (!isRecord(request)) throw new BadReview('request is missing');
  return request;
}

/** Returns the number of members of all objects in a value. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members: unknown[] = Object.values(value);
  const own = Array.isArray(value) ? 0 : members.length;
  return members.reduce<number>((sum, member) => sum + membersOf(member), own);
}
