import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onPath } from './errors.ts';

/**
 * Creates a folder for temporary files, whose name starts with `prefix`.
 *
 * @throws {UsageError} if the temporary folder of the user cannot be written
 */
export function newTemporaryFolder(prefix: string, parent: string = tmpdir()): Promise<string> {
  return onPath(`cannot write to the temporary folder ${parent}; set TMPDIR to another one`, () =>
    mkdtemp(join(parent, prefix)),
  );
}
