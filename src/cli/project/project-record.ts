import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ProjectStep } from '../../codegen/project-steps.ts';
import type { ProjectFiles } from '../../codegen/template.ts';
import { isRecord, messageOf } from '../../util/values.ts';
import { UsageError } from '../common/errors.ts';

/** File of a project with what `init` wrote. Part of its repository. */
export const PROJECT_RECORD = '.crd-controller.json';

/** What `init` wrote to a project. `init --update` compares it with what a newer version would write. */
export interface ProjectRecord {
  /** The version of this package that wrote the files. */
  readonly version: string;
  readonly steps: readonly ProjectStep[];
  /** The texts as they were written. */
  readonly files: ProjectFiles;
}

/** Returns the text of a record. The files are compressed, because their texts are in the project, too. */
export function recordText({ version, steps, files }: ProjectRecord): string {
  const compressed = [...files]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, text]) => [path, deflateRawSync(text).toString('base64')]);
  return `${JSON.stringify({ version, steps, files: Object.fromEntries(compressed) }, null, 2)}\n`;
}

/**
 * Reads the record of the project in a folder. Undefined if it has none.
 *
 * @throws {UsageError} if the file is damaged
 */
export async function readRecord(dir: string): Promise<ProjectRecord | undefined> {
  const path = join(dir, PROJECT_RECORD);
  if (!existsSync(path)) return undefined;
  try {
    const record: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (!isRecord(record) || !isRecord(record['files']) || !Array.isArray(record['steps']))
      throw new Error('it has no steps and files');
    const files = Object.entries(record['files']).map(
      ([file, text]) =>
        [file, inflateRawSync(Buffer.from(String(text), 'base64')).toString()] as const,
    );
    return { version: String(record['version']), steps: record['steps'], files: new Map(files) };
  } catch (error) {
    const restore = 'Restore it from the history of the repository';
    throw new UsageError(`${path} is damaged: ${messageOf(error)}. ${restore}`);
  }
}
