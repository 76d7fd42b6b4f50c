import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrorCode } from '../../util/values.ts';

/** Another process uses a folder. */
export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError';
  /** Process ID of the other process. */
  readonly holder: number;
  /** File that locks the folder. */
  readonly file: string;

  constructor(folder: string, holder: number, file: string) {
    super(
      `${folder} is used by the process ${holder}: stop it, or choose another folder. If that process is another program, delete ${file}`,
    );
    this.holder = holder;
    this.file = file;
  }
}

/**
 * Locks a folder for this process by a file with its process ID. The lock of a process that has ended is
 * replaced, also if it was killed. Returns a function that releases the lock.
 *
 * @throws {FolderLockedError} if another process holds the lock
 */
export function lockFolder(folder: string): () => void {
  const file = join(folder, 'lock');
  const holder = holderOf(file);
  if (holder !== undefined && isRunning(holder)) {
    throw new FolderLockedError(folder, holder, file);
  }
  if (holder !== undefined) rmSync(file, { force: true });
  // Fails if another process has just created it.
  writeFileSync(file, `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
  return () => rmSync(file, { force: true });
}

function holderOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** In a container, a restarted process has the process ID of the one before. */
function isRunning(pid: number): boolean {
  if (!(pid > 0) || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasErrorCode(error, 'ESRCH');
  }
}
