import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import type { ProjectFiles } from '../../codegen/template.ts';
import { EXIT_FAILURE, EXIT_OK, onPath } from '../common/errors.ts';
import type { CommandContext } from '../program/program.ts';

/** A folder with generated files. */
export interface GeneratedFolder {
  readonly folder: string;
  readonly files: ProjectFiles;
  /** The texts that the folder has. */
  readonly present: ProjectFiles;
  /** Files of an earlier run, which are deleted. */
  readonly orphans: readonly string[];
}

/** How the files of a folder are written. */
export interface WriteGeneratedOptions extends Pick<CommandContext, 'print'> {
  /** Flag that names the folder. */
  readonly flag: string;
  /** Whether nothing is written, and files that differ are a failure. */
  readonly check: boolean;
}

/** Returns the texts of the files in a folder by their paths; none if it does not exist. */
export async function readTexts(folder: string): Promise<Map<string, string>> {
  if (!existsSync(folder)) return new Map();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return new Map(
    await Promise.all(
      files.map(async ({ parentPath, name }): Promise<[string, string]> => {
        const path = join(parentPath, name);
        return [relative(folder, path).replaceAll(sep, '/'), await readFile(path, 'utf8')];
      }),
    ),
  );
}

/** Writes the files that differ, prints their paths, and returns the exit code. */
export async function writeGenerated(
  { folder, files, present, orphans }: GeneratedFolder,
  { flag, check, print }: WriteGeneratedOptions,
): Promise<number> {
  const stale = [...files].filter(([path, text]) => present.get(path) !== text);
  const changed = [...stale.map(([path]) => path), ...orphans].map((path) => join(folder, path));
  if (check) {
    for (const path of changed)
      print(`${path} is stale: run crd-controller generate without --check`);
    return changed.length === 0 ? EXIT_OK : EXIT_FAILURE;
  }
  await onPath(`cannot use --${flag}=${folder}`, async () => {
    for (const path of orphans) {
      await rm(join(folder, path));
      print(`${join(folder, path)} is deleted`);
    }
    for (const [path, text] of stale) {
      const target = join(folder, path);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, text);
      print(target);
    }
  });
  if (changed.length === 0) print(`${folder} is up to date`);
  return EXIT_OK;
}
