import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';
import { OverloadedError } from './memory-budget.ts';

/** The client sends a body too slowly. */
export class SlowBodyError extends Error {
  override readonly name = 'SlowBodyError';
}

/** Options of `BodyMemory`. */
export interface BodyMemoryOptions {
  readonly bytes: number;
  /** Bytes of each body that are not counted, and that never wait. */
  readonly freeBytes: number;
  /**
   * Maximum time that a body waits for memory, in milliseconds.
   * @default 5000
   */
  readonly waitMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Pick<Clock, 'after' | 'monotonic'> | undefined;
}

/** Time in which a body may have any rate, and the minimum average rate after it. */
const GRACE_MS = 2000;
const MIN_BYTES_PER_MS = 16;

/** Time over which a rate is measured. */
const WINDOW_MS = 250;

/** A body below this rate is given up if others need its memory. */
const SLOW_BYTES_PER_MS = 1024;

/** Interval in which waiting bodies look for memory of slow ones, in milliseconds. */
const CHECK_MS = 100;

/** Memory that is used now. */
interface Usage {
  total: number;
  /** Bytes by remote address. */
  readonly held: Map<string, number>;
  /** Number of bodies that do not wait. */
  active: number;
}

/**
 * Memory of the bodies that are received or used, by the bytes received and not by the length announced.
 *
 * - A body below a minimum rate is given up.
 * - If the memory is used up, bodies wait. The slowest incomplete bodies are given up at once: first those of the
 *   address that holds most.
 * - A body does not wait while its address holds less than an equal share. All bodies together therefore use at most
 *   twice the memory, and one body more.
 */
export class BodyMemory {
  readonly #bytes: number;
  readonly #freeBytes: number;
  readonly #waitMs: number;
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>;
  /** In the order in which they were opened. */
  readonly #bodies = new Set<ReceivedBody>();
  #isCheckDue = false;

  constructor({ bytes, freeBytes, waitMs = 5000, clock = systemClock }: BodyMemoryOptions) {
    this.#bytes = bytes;
    this.#freeBytes = freeBytes;
    this.#waitMs = waitMs;
    this.#clock = clock;
  }

  /** Registers a body from a remote address. Close it when its memory is free. */
  open(address: string): ReceivedBody {
    const body = new ReceivedBody(address, this.#freeBytes, this.#clock, () => {
      this.#bodies.delete(body);
      this.#wake();
    });
    this.#bodies.add(body);
    return body;
  }

  /**
   * Counts received bytes, and resolves when more can be received.
   *
   * @throws {OverloadedError} if the body had to wait too long, or was given up for others
   * @throws {SlowBodyError} if its rate is too low
   */
  async received(body: ReceivedBody, bytes: number): Promise<void> {
    body.count(bytes);
    if (body.heldBytes === 0 || this.#mayContinue(body, this.#usage())) return;
    this.#giveUpSlow();
    if (this.#mayContinue(body, this.#usage())) return;
    const waiting = body.wait();
    this.#checkLater();
    await Promise.race([waiting, body.givenUp]);
  }

  #usage(): Usage {
    const usage: Usage = { total: 0, held: new Map(), active: 0 };
    for (const { address, heldBytes, isWaiting } of this.#bodies) {
      usage.total += heldBytes;
      usage.held.set(address, (usage.held.get(address) ?? 0) + heldBytes);
      if (heldBytes > 0 && !isWaiting) usage.active++;
    }
    return usage;
  }

  #mayContinue({ address, isWaiting }: ReceivedBody, { total, held, active }: Usage): boolean {
    if (total <= this.#bytes) return true;
    // One body continues if all wait.
    const others = isWaiting ? active : active - 1;
    return others === 0 || (held.get(address) ?? 0) <= this.#bytes / held.size;
  }

  /** Gives up slow bodies until there is enough memory. */
  #giveUpSlow(): void {
    const usage = this.#usage();
    const { held } = usage;
    let { total } = usage;
    const slow = [...this.#bodies]
      .filter((body) => body.heldBytes > 0 && body.isIncomplete && body.rate < SLOW_BYTES_PER_MS)
      .toSorted(
        (a, b) => (held.get(b.address) ?? 0) - (held.get(a.address) ?? 0) || a.rate - b.rate,
      );
    for (const body of slow) {
      if (total <= this.#bytes) return;
      total -= body.heldBytes;
      body.giveUp(new OverloadedError('other requests need the memory of a slow one'));
    }
  }

  /** Resumes bodies while there is memory: first those that hold least, so that a large one cannot delay others. */
  #wake(): void {
    const waiting = [...this.#bodies].filter(({ isWaiting }) => isWaiting);
    if (waiting.length === 0) return;
    const usage = this.#usage();
    for (const body of waiting.toSorted((a, b) => a.heldBytes - b.heldBytes)) {
      if (!this.#mayContinue(body, usage)) continue;
      body.resume();
      usage.active++;
    }
  }

  #checkLater(): void {
    if (this.#isCheckDue) return;
    this.#isCheckDue = true;
    this.#clock.after(CHECK_MS, () => {
      this.#isCheckDue = false;
      this.#giveUpSlow();
      this.#wake();
      for (const body of this.#bodies) {
        if (!body.isWaiting) continue;
        if (body.waitedMs < this.#waitMs) this.#checkLater();
        else body.giveUp(new OverloadedError('too many requests'));
      }
    });
  }
}

/** A body that is received or used. */
export class ReceivedBody {
  /** Remote address of the client. */
  readonly address: string;
  /** Rejects when the body is given up. */
  readonly givenUp: Promise<never>;
  readonly #freeBytes: number;
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly #onClosed: () => void;
  readonly #giveUp: (error: Error) => void;
  #bytes = 0;
  #isComplete = false;
  #isClosed = false;
  #startMs: number;
  #windowStartMs: number;
  #windowBytes = 0;
  /** Rate in the last window, in bytes per millisecond. */
  #rate = Number.POSITIVE_INFINITY;
  #waiting: { readonly sinceMs: number; readonly resume: () => void } | undefined;
  #cancelRateCheck: () => void = () => undefined;

  constructor(
    address: string,
    freeBytes: number,
    clock: Pick<Clock, 'after' | 'monotonic'>,
    onClosed: () => void,
  ) {
    const { promise, reject } = Promise.withResolvers<never>();
    // The body may be closed before anything waits for it.
    promise.catch(() => undefined);
    this.address = address;
    this.givenUp = promise;
    this.#giveUp = reject;
    this.#freeBytes = freeBytes;
    this.#clock = clock;
    this.#onClosed = onClosed;
    this.#startMs = this.#windowStartMs = clock.monotonic();
    this.#checkRate(GRACE_MS);
  }

  /** Counted bytes. */
  get heldBytes(): number {
    return Math.max(0, this.#bytes - this.#freeBytes);
  }

  /** Whether the client can send. */
  get isIncomplete(): boolean {
    return !this.#isComplete && !this.isWaiting;
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined;
  }

  get waitedMs(): number {
    return this.#waiting ? this.#clock.monotonic() - this.#waiting.sinceMs : 0;
  }

  /** Current rate, in bytes per millisecond. */
  get rate(): number {
    const ms = this.#clock.monotonic() - this.#windowStartMs;
    return ms < WINDOW_MS ? this.#rate : this.#windowBytes / ms;
  }

  count(bytes: number): void {
    this.#bytes += bytes;
    this.#windowBytes += bytes;
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#windowStartMs < WINDOW_MS) return;
    this.#rate = this.rate;
    this.#windowStartMs = nowMs;
    this.#windowBytes = 0;
  }

  /** Resolves when the body is resumed. The time does not count for its rate. */
  wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting = { sinceMs: this.#clock.monotonic(), resume: resolve };
    return promise;
  }

  resume(): void {
    const { waitedMs } = this;
    this.#waiting?.resume();
    this.#waiting = undefined;
    this.#startMs += waitedMs;
    this.#windowStartMs = this.#clock.monotonic();
    this.#windowBytes = 0;
    this.#rate = Number.POSITIVE_INFINITY;
  }

  /** Marks the body as received: only its memory counts until it is closed. */
  complete(): void {
    this.#isComplete = true;
    this.#cancelRateCheck();
  }

  giveUp(error: Error): void {
    this.#giveUp(error);
    this.close();
  }

  /** Frees the memory. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.complete();
    this.#waiting = undefined;
    this.#onClosed();
  }

  #checkRate(ms: number): void {
    this.#cancelRateCheck = this.#clock.after(ms, () => {
      const activeMs = this.#clock.monotonic() - this.#startMs - this.waitedMs - GRACE_MS;
      const isSlow = !this.isWaiting && this.#bytes <= activeMs * MIN_BYTES_PER_MS;
      if (isSlow) this.giveUp(new SlowBodyError('the body arrives too slowly'));
      else this.#checkRate(1000);
    });
  }
}
