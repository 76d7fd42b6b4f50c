import { constants, createReadStream, open } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

/** The text of a file; rejects if it cannot be read. */
export type ReadFile = (path: string) => Promise<string>;

/** Of this machine. */
export const readTextFile: ReadFile = async (path) =>
  (await stat(path)).isFIFO() ? text(await openInput(path)) : readFile(path, 'utf8');

/**
 * Opens a file, or a FIFO such as a process substitution of a shell. An aborted `signal` ends the
 * stream with an error.
 *
 * The `open` of a FIFO that has no writer yet would block a thread of libuv's pool, and with it the end
 * of the process; without blocking, the event loop waits for the writer.
 */
export async function openInput(path: string, signal?: AbortSignal): Promise<Readable> {
  if (!(await stat(path)).isFIFO()) return createReadStream(path, { signal });
  const fd = await promisify(open)(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false, ...(signal && { signal }) });
}
