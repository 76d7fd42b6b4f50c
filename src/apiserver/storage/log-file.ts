import { closeSync, fdatasync, fdatasyncSync, ftruncateSync, writeSync } from 'node:fs';
import type { Clock } from '../../util/clock.ts';

/** Maximum time until a write is flushed to the disk, in milliseconds. */
const SYNC_MS = 1000;

/** A file that grows by whole lines. A line that cannot be written in full is removed again. */
export class LogFile {
  readonly #handle: number;
  readonly #clock: Pick<Clock, 'after'>;
  #size: number;
  #cancelSync: (() => void) | undefined;
  #isSyncing = false;
  #isClosed = false;
  #failure: Error | undefined;

  /**
   * @param handle descriptor of the file; closed by `close`
   * @param size its size, in bytes
   */
  constructor(handle: number, clock: Pick<Clock, 'after'>, size: number = 0) {
    this.#handle = handle;
    this.#clock = clock;
    this.#size = size;
  }

  /** Size in bytes. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends lines. They survive the end of the process at once, and a failure of the machine after a second.
   *
   * @throws {Error} if the lines cannot be written, or earlier ones could not be flushed to the disk
   */
  append(lines: string): void {
    if (this.#failure) throw this.#failure;
    const bytes = Buffer.from(lines);
    let written = 0;
    try {
      while (written < bytes.length) {
        const { length } = bytes;
        written += writeSync(this.#handle, bytes, written, length - written, this.#size + written);
      }
    } catch (error) {
      if (written > 0) this.#removeRest();
      throw error;
    }
    this.#size += written;
    this.#cancelSync ??= this.#clock.after(SYNC_MS, () => this.#syncLater());
  }

  /** Flushes all lines to the disk. */
  sync(): void {
    this.#cancelSync?.();
    this.#cancelSync = undefined;
    fdatasyncSync(this.#handle);
  }

  /** Flushes all lines to the disk and closes the file. */
  close(): void {
    try {
      this.sync();
    } finally {
      this.#isClosed = true;
      if (!this.#isSyncing) closeSync(this.#handle);
    }
  }

  #syncLater(): void {
    this.#cancelSync = undefined;
    if (this.#isSyncing) {
      this.#cancelSync = this.#clock.after(SYNC_MS, () => this.#syncLater());
      return;
    }
    this.#isSyncing = true;
    fdatasync(this.#handle, (error) => {
      this.#isSyncing = false;
      // After a failed flush, the state of the file on the disk is unknown.
      if (error) this.#failure = error;
      if (this.#isClosed) closeSync(this.#handle);
    });
  }

  #removeRest(): void {
    try {
      ftruncateSync(this.#handle, this.#size);
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    }
  }
}
