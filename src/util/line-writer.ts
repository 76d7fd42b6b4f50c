import { writeSync } from 'node:fs';
import type { Clock } from './clock.ts';
import { hasErrorCode, messageOf } from './values.ts';

/** Lines that were lost because they could not be written. */
export interface DroppedLines {
  readonly lines: number;
  /** Error of the last of them: `ENOSPC: no space left on device, write`. */
  readonly reason: string;
}

/** Returns the line that reports dropped lines, with its line break. */
export type DropNotice = (dropped: DroppedLines) => string;

/** Options of `LineWriter`. */
export interface LineWriterOptions {
  /**
   * Clock for retries of a descriptor that would block.
   * @default the clock of the machine, with timers that do not keep the process alive
   */
  readonly clock?: Pick<Clock, 'monotonic' | 'after'> | undefined;
  /**
   * Maximum number of bytes that wait for a descriptor that would block.
   * @default 1048576 (1 MiB)
   */
  readonly maxWaitingBytes?: number | undefined;
}

/** The clock of the machine, with timers that do not keep the process alive. */
export const unrefClock: Pick<Clock, 'monotonic' | 'after'> = {
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
};

const MAX_WAITING_BYTES = 1024 * 1024;

/** Delay before the next attempt to write to a full pipe, in milliseconds. */
const RETRY_MS = 20;

/** Maximum time that `flush` waits for the reader of a full pipe, in milliseconds. */
const FLUSH_TIMEOUT_MS = 200;

/** Delay between two attempts of `flush`, in milliseconds. */
const FLUSH_RETRY_MS = 5;

/** Never notified: `Atomics.wait` on it blocks the thread for the timeout. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

const LINE_BREAK = Buffer.from('\n');

/** A line, or the notice of lines that were dropped before it. */
interface Entry {
  readonly bytes: Buffer;
  /** Number of dropped lines that the notice reports, 0 for a line. */
  readonly reports: number;
  /** Number of bytes that are written. */
  written: number;
}

/**
 * Writes lines to a file descriptor, in order. Never throws, so that a full disk, a closed pipe or a slow
 * reader does not stop or delay the process.
 *
 * A line is written before `write` returns, unless the descriptor is non-blocking and full. Node.js makes
 * pipes of standard output and standard error non-blocking. In this case up to `maxWaitingBytes` wait for
 * the reader. Lines that cannot be written are dropped and counted. A notice with their number and the
 * reason precedes the next line that is written.
 */
export class LineWriter {
  readonly #fd: number;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #maxWaitingBytes: number;
  readonly #waiting: Entry[] = [];
  #waitingBytes = 0;
  /** Part of a line was written and the rest dropped: the next entry starts with a line break. */
  #isMidLine = false;
  #dropped = 0;
  #unreported = 0;
  #reason = '';
  #notice: DropNotice = plainNotice;
  #isRetryDue = false;

  constructor(fd: number, options: LineWriterOptions = {}) {
    this.#fd = fd;
    this.#clock = options.clock ?? unrefClock;
    this.#maxWaitingBytes = options.maxWaitingBytes ?? MAX_WAITING_BYTES;
  }

  /** Number of lines dropped so far. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Writes `line`, which ends with a line break. `notice` formats the report of lines dropped before it. */
  write(line: string, notice: DropNotice = plainNotice): void {
    this.#notice = notice;
    const bytes = Buffer.from(line);
    if (this.#waiting.length > 0 && this.#waitingBytes + bytes.length > this.#maxWaitingBytes) {
      this.#drop('the reader is too slow');
      return;
    }
    this.#report();
    this.#enqueue(bytes, 0);
    this.#send();
  }

  /** Reports dropped lines and waits up to 200 ms for a full pipe. Called at the end of the process. */
  flush(): void {
    const deadlineMs = this.#clock.monotonic() + FLUSH_TIMEOUT_MS;
    this.#report();
    this.#send();
    while (this.#waiting.length > 0 && this.#clock.monotonic() < deadlineMs) {
      Atomics.wait(PAUSE, 0, 0, FLUSH_RETRY_MS);
      this.#send();
    }
  }

  #drop(reason: string): void {
    this.#dropped++;
    this.#unreported++;
    this.#reason = reason;
  }

  #report(): void {
    const lines = this.#unreported;
    if (lines === 0) return;
    this.#unreported = 0;
    this.#enqueue(Buffer.from(this.#notice({ lines, reason: this.#reason })), lines);
  }

  #enqueue(bytes: Buffer, reports: number): void {
    this.#waiting.push({ bytes, reports, written: 0 });
    this.#waitingBytes += bytes.length;
  }

  /** Writes waiting entries until none is left or the descriptor would block. */
  #send(): void {
    for (let entry = this.#waiting[0]; entry; entry = this.#waiting[0]) {
      try {
        this.#sendEntry(entry);
      } catch (error) {
        if (hasErrorCode(error, 'EAGAIN')) {
          this.#retryLater();
          return;
        }
        this.#lose(entry, error);
      }
      this.#waiting.shift();
      this.#waitingBytes -= entry.bytes.length;
    }
  }

  #sendEntry(entry: Entry): void {
    if (this.#isMidLine) writeSync(this.#fd, LINE_BREAK);
    this.#isMidLine = false;
    while (entry.written < entry.bytes.length) {
      entry.written += writeSync(this.#fd, entry.bytes, entry.written);
    }
  }

  #lose(entry: Entry, error: unknown): void {
    const reason = messageOf(error);
    this.#isMidLine ||= entry.written > 0;
    if (entry.reports === 0) {
      this.#drop(reason);
    } else {
      this.#unreported += entry.reports;
      this.#reason = reason;
    }
  }

  #retryLater(): void {
    if (this.#isRetryDue) return;
    this.#isRetryDue = true;
    this.#clock.after(RETRY_MS, () => {
      this.#isRetryDue = false;
      this.#send();
      if (this.#waiting.length > 0) return;
      this.#report();
      this.#send();
    });
  }
}

/** Writers by descriptor. Two writers of one descriptor could interrupt each other's lines. */
const writers = new Map<number, LineWriter>();

/** Returns the writer of standard output (1) or standard error (2), which is flushed when the process exits. */
export function lineWriterOf(fd: 1 | 2): LineWriter {
  let writer = writers.get(fd);
  if (!writer) {
    const created = new LineWriter(fd);
    process.once('exit', () => created.flush());
    writers.set(fd, created);
    writer = created;
  }
  return writer;
}

function plainNotice({ lines, reason }: DroppedLines): string {
  return `Dropped ${lines} log lines that could not be written: ${reason}\n`;
}
