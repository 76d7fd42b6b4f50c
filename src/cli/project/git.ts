import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { hasErrorCode } from '../../util/values.ts';
import { UsageError } from '../common/errors.ts';
import { newTemporaryFolder } from '../common/temporary-folder.ts';

/** Three texts of a file, and their names in conflict markers. */
export interface ThreeTexts {
  readonly texts: readonly [ours: string, base: string, theirs: string];
  readonly labels: readonly [ours: string, base: string, theirs: string];
}

/** A merged text, with markers around conflicts. */
export interface MergedText {
  readonly text: string;
  readonly conflicts: number;
}

/**
 * Applies the changes between two texts to a third one, as git does.
 *
 * @throws {UsageError} if git is not installed
 */
export async function mergeTexts({ texts, labels }: ThreeTexts): Promise<MergedText> {
  const files = new Map(texts.map((text, index) => [String(index), text]));
  const named = labels.flatMap((label) => ['-L', label]);
  const { code, stdout } = await git(['merge-file', '-p', ...named, '0', '1', '2'], files);
  return { text: stdout, conflicts: code };
}

/**
 * Returns the changes of files as a patch; files without a text do not exist.
 *
 * @throws {UsageError} if git is not installed
 */
export async function patchOf(
  changes: readonly { readonly path: string; readonly from?: string; readonly to?: string }[],
): Promise<string> {
  const files = new Map<string, string>();
  for (const { path, from, to } of changes) {
    if (from !== undefined) files.set(`a/${path}`, from);
    if (to !== undefined) files.set(`b/${path}`, to);
  }
  const flags = ['--no-index', '--no-prefix', '--no-color', '--no-ext-diff'];
  return (await git(['diff', ...flags, 'a', 'b'], files)).stdout;
}

/** Runs git in a folder with files. Codes up to 127 are results. */
async function git(args: readonly string[], files: ReadonlyMap<string, string>) {
  const folder = await newTemporaryFolder('init-update-');
  try {
    for (const name of ['a', 'b']) await mkdir(join(folder, name));
    for (const [path, text] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const options = { cwd: folder, maxBuffer: 2 ** 28 };
    const { stdout } = await promisify(execFile)('git', args, options);
    return { code: 0, stdout };
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT'))
      throw new UsageError('--update merges files with git: install git');
    const { code, stdout } = error as { readonly code?: unknown; readonly stdout?: string };
    if (typeof code !== 'number' || code > 127 || stdout === undefined) throw error;
    return { code, stdout };
  } finally {
    await rm(folder, { recursive: true });
  }
}
