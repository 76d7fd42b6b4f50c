import { writeSync } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { hasErrorCode, messageOf } from '../util/values.ts';

/** Dependencies of `RecordingFile`. */
export interface RecordingFileDeps {
  readonly path: string;
  /** Size after which the file becomes `FILE.1`, in bytes. */
  readonly maxBytes: number;
  /** Returns the time of a line that is added now. The first one is 0. */
  readonly now: () => number;
  /** Returns the first line of a file whose further lines are not older than `sinceMs`. */
  readonly header: (sinceMs: number) => string;
  /** Returns the line that reports lost lines. */
  readonly gap: (lines: number, reason: string) => string;
  /** Called when a further file starts, and after a gap: the next lines must describe all objects again. */
  readonly onStart: () => void;
  /** Called when lines were written. */
  readonly onWritten: () => void;
}

/** Maximum number of characters that wait for the disk. */
const MAX_WAITING = 8 * 1024 * 1024;

/** Time in which lines are collected before a write, in milliseconds. */
const DELAY_MS = 50;

/** Time after a failed write, in milliseconds. */
const RETRY_MS = 1000;

/**
 * Writes lines to a file in order, without delaying the process. If the disk is too slow or full, lines are lost, and a
 * gap is recorded. An existing file becomes `FILE.1`.
 */
export class RecordingFile {
  readonly #deps: RecordingFileDeps;
  #handle: FileHandle | undefined;
  #lines: string[] = [];
  #waiting = 0;
  /** No line that waits is older. */
  #sinceMs = 0;
  #size = 0;
  #lost = 0;
  #reason = '';
  #isGap = false;
  /** Whether the file has all objects, so that a new one can start. */
  #mayRotate = true;
  /** Whether the file can end in the middle of a line. */
  #isTorn = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> | undefined;
  #opening: Promise<unknown> | undefined;
  #isOpen = false;
  #isClosed = false;
  readonly #atExit = (): void => this.#writeNow();

  constructor(deps: RecordingFileDeps) {
    this.#deps = deps;
  }

  /** @throws {Error} if the file cannot be written */
  async open(): Promise<void> {
    this.#opening = this.#start();
    await this.#opening;
    this.#isOpen = true;
    this.#arm(0);
    process.once('exit', this.#atExit);
  }

  /** Number of characters that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Adds a line without a line break. */
  write(line: string): void {
    if (this.#isClosed) return;
    if (this.#isGap || this.#waiting + line.length > MAX_WAITING) {
      this.#lose(1, 'the disk is too slow');
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length + 1;
    this.#arm(DELAY_MS);
  }

  #arm(delayMs: number): void {
    if (!this.#isOpen) return;
    this.#timer ??= setTimeout(() => void this.#flush(), delayMs).unref();
  }

  /** Reports that the file describes all objects. */
  complete(): void {
    this.#mayRotate = true;
  }

  /** Writes the lines that wait, in one attempt each. */
  async flush(): Promise<void> {
    await this.#opening;
    if (!this.#isOpen) return;
    // Lines that were added during a write wait for the next one.
    await this.#writing;
    await this.#flush();
    if (this.#lines.length > 0) await this.#flush();
  }

  /** Writes what waits, and closes the file. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    process.off('exit', this.#atExit);
    await this.#handle?.close();
    this.#handle = undefined;
  }

  #lose(lines: number, reason: string): void {
    this.#isGap = true;
    this.#lost += lines;
    this.#reason = reason;
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      if (this.#lines.length > 0) this.#arm(DELAY_MS);
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    const lines = this.#take();
    const takenMs = this.#deps.now();
    if (lines.length > 0) {
      try {
        await this.#append(`${this.#isTorn ? '\n' : ''}${lines.join('\n')}\n`);
        this.#isTorn = false;
        this.#sinceMs = takenMs;
        await this.#rotate();
      } catch (error) {
        this.#isTorn = true;
        this.#lose(lines.length, messageOf(error));
        this.#arm(RETRY_MS);
        return;
      }
    }
    if (this.#isGap) this.#endGap();
    this.#deps.onWritten();
  }

  #take(): string[] {
    const lines = this.#lines;
    this.#lines = [];
    this.#waiting = 0;
    return lines;
  }

  #endGap(): void {
    const lost = this.#lost;
    this.#lost = 0;
    this.#isGap = false;
    this.write(this.#deps.gap(lost, this.#reason));
    this.#mayRotate = false;
    this.#deps.onStart();
  }

  async #append(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    const handle = this.#handle ?? (await this.#startNext());
    await handle.appendFile(bytes);
    this.#size += bytes.length;
  }

  /** Starts a new file if this one is full. If that fails, the next write tries it again. */
  async #rotate(): Promise<void> {
    if (!this.#mayRotate || this.#size <= this.#deps.maxBytes) return;
    try {
      await this.#startNext();
    } catch (error) {
      this.#reason = messageOf(error);
    }
  }

  async #startNext(): Promise<FileHandle> {
    const handle = await this.#start();
    this.#mayRotate = false;
    this.#deps.onStart();
    return handle;
  }

  /** Starts a file. The former one becomes `FILE.1`. */
  async #start(): Promise<FileHandle> {
    const { path, header } = this.#deps;
    await this.#handle?.close();
    this.#handle = undefined;
    // A device, such as /dev/stdout, keeps its name.
    if (await isFile(path)) await rename(path, `${path}.1`);
    const handle = await open(path, 'w', 0o600);
    this.#handle = handle;
    const line = Buffer.from(`${header(this.#sinceMs)}\n`);
    await handle.appendFile(line);
    this.#size = line.length;
    return handle;
  }

  /** Writes what waits when the process exits. */
  #writeNow(): void {
    const lines = this.#take();
    if (!this.#handle || lines.length === 0) return;
    try {
      writeSync(this.#handle.fd, `${lines.join('\n')}\n`);
    } catch (error) {
      // The process ends, and the file lacks its last lines.
      this.#lose(lines.length, messageOf(error));
    }
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return false;
    throw error;
  }
}
