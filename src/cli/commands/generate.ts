import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, isAbsolute, join, relative, sep } from 'node:path';
import { generateModules, LIBRARY_MODULES } from '../../codegen/generate-modules.ts';
import type { Definitions, GeneratedModule } from '../../codegen/generate-modules.ts';
import { isGenerated } from '../../codegen/generate-types.ts';
import { goQuote } from '../../util/go-quote.ts';
import { readTextFile } from '../../client/read-file.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import type { CommandContext } from '../program.ts';
import { EXIT_FAILURE, EXIT_OK, onPath, pathError, UsageError } from '../errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { GENERATE_OPTIONS } from '../flags/options.ts';

/** Names of files that can contain CRDs. */
const MANIFEST = /\.(?:ya?ml|json)$/;

/**
 * Generates TypeScript modules from the CRDs in files and folders. Files that were not generated are not
 * overwritten.
 *
 * @throws {UsageError} if there is no input, or a CRD is invalid
 */
export async function generate(
  paths: readonly string[],
  { out, check }: OptionValues<typeof GENERATE_OPTIONS>,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  if (paths.length === 0)
    throw new UsageError('generate requires the path of a CRD: a file or folder');
  const modules = modulesOf(await definitionsIn(paths));
  if (modules.length === 0) {
    throw new UsageError(`No CustomResourceDefinition in ${paths.map(goQuote).join(', ')}`);
  }
  const stale: GeneratedModule[] = [];
  const writing = <T>(action: () => Promise<T>) => onPath(`cannot use --out=${out}`, action);
  for (const module of modules) {
    const present = await writing(() => textAt(join(out, module.fileName)));
    if (present === module.text) continue;
    if (present !== undefined && !isGenerated(present)) {
      throw new UsageError(
        `${join(out, module.fileName)} exists and was not generated: move it, or choose another --out`,
      );
    }
    stale.push(module);
  }
  if (check) {
    for (const { fileName } of stale) {
      print(`${join(out, fileName)} is stale: run crd-controller generate`);
    }
    return stale.length === 0 ? EXIT_OK : EXIT_FAILURE;
  }
  await writing(() => mkdir(out, { recursive: true }));
  for (const { fileName, text } of stale) {
    await writing(() => writeFile(join(out, fileName), text));
    print(join(out, fileName));
  }
  if (stale.length === 0) print(`${out} is up to date`);
  return EXIT_OK;
}

/** Files in folders are optional, because folders also have files such as `kustomization.yaml`. */
async function definitionsIn(paths: readonly string[]): Promise<Definitions[]> {
  const files: { file: string; isOptional: boolean }[] = [];
  for (const path of paths) {
    const isOptional = (await inspect(path)).isDirectory();
    const found = isOptional ? await manifestsIn(path) : [path];
    for (const file of found) files.push({ file, isOptional });
  }
  return Promise.all(
    files.map(async ({ file, isOptional }) => ({
      source: sourceOf(file),
      text: await onPath(`cannot read ${file}`, () => readTextFile(file)),
      isOptional,
    })),
  );
}

async function inspect(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT')) throw pathError(`cannot read ${path}`, error);
    throw new UsageError(`File or folder ${goQuote(path)} does not exist`);
  }
}

async function manifestsIn(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => MANIFEST.test(name)).toSorted();
  if (names.length === 0) throw new UsageError(`No YAML or JSON file in ${goQuote(folder)}`);
  return names.map((name) => join(folder, name));
}

/**
 * Returns a path that does not depend on the location of the project, so that generated text is
 * reproducible.
 */
function sourceOf(file: string): string {
  const path = relative('.', file);
  return path.startsWith('..') || isAbsolute(path) ? basename(path) : path.replaceAll(sep, '/');
}

function modulesOf(definitions: readonly Definitions[]): GeneratedModule[] {
  try {
    return generateModules(definitions, {
      command: '`crd-controller generate`',
      modules: LIBRARY_MODULES,
    });
  } catch (error) {
    // The message is complete; a cause would repeat it.
    throw new UsageError(messageOf(error));
  }
}

async function textAt(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
