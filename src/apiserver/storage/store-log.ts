import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { lockFolder } from './folder-lock.ts';
import { LogFile } from './log-file.ts';
import type { StoredObject } from '../objects/resource-definition.ts';

/** All objects at one revision. */
export interface StoreSnapshot {
  readonly revision: number;
  /** Objects by resource. */
  readonly objects: ReadonlyMap<string, readonly StoredObject[]>;
}

export type LogEntry =
  /** The first line of each file: the snapshot in the next lines. */
  | {
      readonly kind: 'snapshot';
      readonly format: typeof FORMAT;
      readonly revision: number;
      /** Number of objects. */
      readonly objects: number;
    }
  | { readonly kind: 'object'; readonly resource: string; readonly object: StoredObject }
  | {
      readonly kind: 'put';
      readonly revision: number;
      readonly resource: string;
      readonly object: StoredObject;
    }
  | {
      readonly kind: 'remove';
      readonly revision: number;
      readonly resource: string;
      readonly namespace: string | undefined;
      readonly name: string;
    };

export interface StoreLogOptions {
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Logger;
  /**
   * Writes after which a new file is started, in bytes, or the size of the snapshot if that is larger.
   * @default 64 MiB
   */
  readonly fileBytes?: number;
}

const FORMAT = 1;
const NAME = /^objects-(\d+)\.log$/;
const DRAFT = /^objects-\d+\.log\.new$/;
const NEWLINE = 10;
const CHUNK_BYTES = 1024 * 1024;

/**
 * The writes of an object store in a folder, for the next start.
 *
 *   objects-000007.log   snapshot ► write ► write ► … ► write     (full)
 *   objects-000008.log                                snapshot ► write ► write ►
 *
 * Each line is a checksum and a JSON value. Each write is appended before it takes effect, so that it survives
 * the end of the process. The file is flushed to the disk every second while there are writes, and at the end:
 * a failure of the machine can lose the writes of the last second.
 *
 * A full file is followed by one that starts with a snapshot. The last two files are kept, so that watches
 * can resume from the writes in both.
 */
export class StoreLog {
  readonly #folder: string;
  readonly #options: Required<StoreLogOptions>;
  readonly #unlock: () => void;
  /** Numbers of the files, in ascending order. */
  #files: readonly number[];
  #current: LogFile | undefined;
  /** Size of the snapshot in the current file, in bytes. */
  #snapshotBytes = 0;

  /**
   * Creates the folder if it does not exist.
   *
   * @throws {Error} if another process uses the folder, or it cannot be used
   */
  constructor(folder: string, options: StoreLogOptions) {
    this.#folder = resolve(folder);
    this.#options = { fileBytes: 64 * 1024 ** 2, ...options };
    // Objects include Secrets.
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#unlock = lockFolder(this.#folder);
    const names = readdirSync(this.#folder);
    for (const name of names.filter((each) => DRAFT.test(each))) rmSync(join(this.#folder, name));
    this.#files = names
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** Whether there are no objects yet. */
  get isEmpty(): boolean {
    return this.#files.length === 0;
  }

  /** Whether the next write needs a new file. */
  get isFull(): boolean {
    const { fileBytes } = this.#options;
    const written = (this.#current?.size ?? 0) - this.#snapshotBytes;
    return written >= Math.max(fileBytes, this.#snapshotBytes);
  }

  /**
   * Returns the oldest snapshot and all later writes. Opens the log for writes at the end. An incomplete last
   * line is removed: it is a write that was never acknowledged.
   *
   * @throws {Error} with the file and the offset of the first damaged line
   */
  *read(): Generator<LogEntry, void, undefined> {
    let revision: number | undefined;
    for (const number of this.#files) {
      const path = this.#path(number);
      const isLast = number === this.#files.at(-1);
      const corrupt = (offset: number, reason: string) =>
        corruptFile(path, offset, reason, { isLast });
      let size = 0;
      let objects = 0;
      let isStarted = false;
      for (const { offset, bytes, isComplete } of linesOf(path)) {
        if (!isComplete && isLast && isStarted && objects === 0) {
          this.#options.log.info('Removed an incomplete write from the end of the log', {
            file: path,
            offset,
            bytes: bytes.length,
          });
          break;
        }
        if (!isComplete) throw corrupt(offset, 'the line is incomplete');
        const entry = entryOf(bytes);
        if (!entry) throw corrupt(offset, 'the checksum does not match');
        if (isStarted === (entry.kind === 'snapshot')) throw corrupt(offset, 'lines are missing');
        size = offset + bytes.length + 1;
        if (entry.kind === 'snapshot') {
          if (entry.format !== FORMAT) throw new Error(`${path} was written by another version`);
          if (revision !== undefined && revision !== entry.revision)
            throw corrupt(offset, `the writes before revision ${entry.revision} are missing`);
          isStarted = true;
          objects = entry.objects;
          if (revision === undefined) yield entry;
          revision = entry.revision;
          continue;
        }
        if (entry.kind === 'object') {
          if (objects === 0) throw corrupt(offset, 'lines are missing');
          objects--;
          // Later snapshots repeat what is known.
          if (number === this.#files[0]) yield entry;
        } else {
          if (objects > 0 || entry.revision !== (revision ?? 0) + 1)
            throw corrupt(offset, 'lines are missing');
          revision = entry.revision;
          yield entry;
        }
        if (entry.kind === 'object') this.#snapshotBytes = size;
      }
      if (!isStarted || objects > 0) throw corrupt(size, 'the snapshot is incomplete');
      if (isLast) this.#open(number, size);
    }
  }

  /**
   * Appends a write, before it takes effect.
   *
   * @throws {Error} if it cannot be stored
   */
  append(entry: LogEntry): void {
    if (!this.#current) throw new Error(`The data folder ${this.#folder} is closed`);
    this.#current.append(lineOf(entry));
  }

  /**
   * Continues in a new file that starts with a snapshot.
   *
   * @param history whether the writes in the file before are kept
   */
  startFile({ revision, objects }: StoreSnapshot, history: 'keep' | 'drop'): void {
    const number = (this.#files.at(-1) ?? 0) + 1;
    const draft = `${this.#path(number)}.new`;
    const count = [...objects.values()].reduce((total, list) => total + list.length, 0);
    const file = new LogFile(openSync(draft, 'w', 0o600), this.#options.clock);
    try {
      let lines = lineOf({ kind: 'snapshot', format: FORMAT, revision, objects: count });
      for (const [resource, list] of objects) {
        for (const object of list) {
          lines += lineOf({ kind: 'object', resource, object });
          if (lines.length < CHUNK_BYTES) continue;
          file.append(lines);
          lines = '';
        }
      }
      file.append(lines);
      file.sync();
      renameSync(draft, this.#path(number));
    } catch (error) {
      file.close();
      rmSync(draft, { force: true });
      throw error;
    }
    syncFolder(this.#folder);
    this.#current?.close();
    this.#current = file;
    this.#snapshotBytes = file.size;
    const kept = history === 'keep' ? this.#files.slice(-1) : [];
    for (const other of this.#files) if (!kept.includes(other)) rmSync(this.#path(other));
    this.#files = [...kept, number];
  }

  /** Flushes the writes to the disk and releases the folder. */
  close(): void {
    this.#current?.close();
    this.#current = undefined;
    this.#unlock();
  }

  #path(number: number): string {
    return join(this.#folder, `objects-${String(number).padStart(6, '0')}.log`);
  }

  #open(number: number, size: number): void {
    const handle = openSync(this.#path(number), 'r+');
    ftruncateSync(handle, size);
    this.#current = new LogFile(handle, this.#options.clock, size);
  }
}

function lineOf(entry: LogEntry): string {
  const json = JSON.stringify(entry);
  return `${checksumOf(json)} ${json}\n`;
}

/** Returns undefined if the line is damaged. */
function entryOf(bytes: Buffer): LogEntry | undefined {
  const json = bytes.subarray(9);
  if (bytes.toString('latin1', 0, 9) !== `${checksumOf(json)} `) return undefined;
  return JSON.parse(json.toString()) as LogEntry;
}

function checksumOf(json: string | Buffer): string {
  return crc32(json).toString(16).padStart(8, '0');
}

interface Line {
  readonly offset: number;
  readonly bytes: Buffer;
  readonly isComplete: boolean;
}

/** Reads a file in chunks, because it can be larger than the longest string. */
function* linesOf(path: string): Generator<Line, void, undefined> {
  const handle = openSync(path, 'r');
  try {
    let offset = 0;
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const count = readSync(handle, chunk);
      if (count === 0) break;
      rest = Buffer.concat([rest, chunk.subarray(0, count)]);
      let start = 0;
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE, start)) {
        yield { offset, bytes: rest.subarray(start, end), isComplete: true };
        offset += end + 1 - start;
        start = end + 1;
      }
      rest = rest.subarray(start);
    }
    if (rest.length > 0) yield { offset, bytes: rest, isComplete: false };
  } finally {
    closeSync(handle);
  }
}

/** Makes the names of new files durable. Windows has no such call. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function corruptFile(
  path: string,
  offset: number,
  reason: string,
  { isLast }: { readonly isLast: boolean },
): Error {
  const next = isLast
    ? `truncate it to ${offset} bytes, which loses this write and all later ones`
    : 'delete it: the next file has all objects, and watches cannot resume from earlier writes';
  return new Error(
    `${path} is corrupt at offset ${offset}: ${reason}. Restore the file from a backup, or ${next}`,
  );
}
