import { constants, createReadStream, open } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

/** Reads a text file; rejects if it cannot be read. */
export type ReadFile = (path: string) => Promise<string>;

/** Reads a file or FIFO of this machine. */
export const readTextFile: ReadFile = async (path) =>
  (await stat(path)).isFIFO() ? text(await openInput(path)) : readFile(path, 'utf8');

/**
 * Opens a file, or a FIFO such as a process substitution of a shell. Aborting `signal` ends the stream with an
 * error.
 *
 * A FIFO is opened in non-blocking mode. Otherwise `open` blocks a thread of libuv's pool until there is a
 * writer, and the process cannot exit meanwhile.
 */
export async function openInput(path: string, signal?: AbortSignal): Promise<Readable> {
  if (!(await stat(path)).isFIFO()) return createReadStream(path, { signal });
  const fd = await promisify(open)(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false, signal });
}
