import { randomUUID } from 'node:crypto';
import { link, mkdtemp, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { errorText } from './error-text.ts';
import { UsageError } from './exit-codes.ts';

/** First line of every kubeconfig that this program writes: how it knows its own again. */
const MARKER = '# Written by crd-controller, which may write it again.';

/**
 * Writes a kubeconfig to `path`, for its owner's eyes only. The file is there completely or not at
 * all, and a file that somebody else wrote is left alone.
 *
 * @returns the absolute path
 * @throws {UsageError} if `path` cannot be written, or is a file that is not ours
 */
export async function writeKubeconfig(path: string, kubeconfig: string): Promise<string> {
  const target = resolve(path);
  const isThere = await requireOurs(target);
  const draft = join(dirname(target), `.${randomUUID()}.kubeconfig`);
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${MARKER}\n${kubeconfig}`);
    } finally {
      await file.close();
    }
    // A link, unlike a rename, fails if a file has come to be there meanwhile.
    await (isThere ? rename(draft, target) : link(draft, target));
  } catch (error) {
    throw new UsageError(`Could not write the kubeconfig ${target}: ${reasonOf(error, target)}`);
  } finally {
    await rm(draft, { force: true });
  }
  return target;
}

/**
 * Makes sure early that `writeKubeconfig` may write to `path`.
 *
 * @returns whether the file exists
 * @throws {UsageError} if there is a file that is not ours, or something else than a regular file:
 * reading a FIFO would wait for its writer
 */
export async function requireOurs(path: string): Promise<boolean> {
  let text: string | undefined;
  try {
    const isFile = (await stat(path)).isFile();
    if (isFile) text = await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return false;
    throw new UsageError(`Could not read ${path}, to see whether it may be overwritten`, {
      cause: error,
    });
  }
  if (text === undefined) {
    throw new UsageError(`${path} is not a regular file: name another`);
  }
  if (text.startsWith(`${MARKER}\n`)) return true;
  throw new UsageError(
    `${path} exists and was not written by crd-controller: name another file, or move it away`,
  );
}

/** A kubeconfig in a new folder of its own, which `remove` deletes. */
export async function temporaryKubeconfig(
  kubeconfig: string,
): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'crd-controller-'));
  const path = await writeKubeconfig(join(folder, 'kubeconfig'), kubeconfig);
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

function reasonOf(error: unknown, target: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `there is no folder ${dirname(target)}`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `the folder ${dirname(target)} may not be written to`;
    case 'EEXIST':
      return 'somebody else has just written it';
    default:
      return errorText(error);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
