import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { definitionText } from '../../codegen/crd-parser.ts';
import { generateModules, LIBRARY_MODULES } from '../../codegen/generate-modules.ts';
import type { Definitions, GeneratedModule } from '../../codegen/generate-modules.ts';
import { isGenerated } from '../../codegen/generate-types.ts';
import { isCustomResource } from '../../crd/custom-resource.ts';
import type { CustomResource } from '../../crd/custom-resource.ts';
import { goQuote } from '../../util/go-quote.ts';
import { readTextFile } from '../../client/kube-config/read-file.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import type { CommandContext } from '../program/program.ts';
import { EXIT_FAILURE, EXIT_OK, onPath, pathError, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { GENERATE_OPTIONS } from '../flags/options.ts';

/** Names of files that can contain CRDs. */
const MANIFEST = /\.(?:ya?ml|json)$/;

/** Names of modules, which define kinds by `customResource`. */
export const MODULE: RegExp = /\.[cm]?[jt]s$/;

/** Value of `--out` for standard output, as in kubectl. */
const STDOUT = '-';

const COMMAND = '`crd-controller generate`';

type GeneratedFile = Pick<GeneratedModule, 'fileName' | 'text'>;

/**
 * Generates TypeScript modules from the CRDs in files and folders, and CRDs from modules with definitions of
 * `customResource`. Files that were not generated are not overwritten.
 *
 * @throws {UsageError} if there is no input, a CRD is invalid, or a module cannot be imported
 */
export async function generate(
  paths: readonly string[],
  { out, check }: OptionValues<typeof GENERATE_OPTIONS>,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  if (paths.length === 0)
    throw new UsageError('generate requires the path of a CRD: a file or folder');
  const definitions = await definitionsIn(paths.filter((path) => !MODULE.test(path)));
  const files: GeneratedFile[] = modulesOf(definitions);
  for (const path of paths.filter((file) => MODULE.test(file))) {
    for (const file of await definedBy(path)) files.push(file);
  }
  if (files.length === 0) {
    throw new UsageError(`No CustomResourceDefinition in ${paths.map(goQuote).join(', ')}`);
  }
  if (out === STDOUT) {
    if (check || definitions.length > 0) {
      throw new UsageError(
        `--out=- prints the CRDs of modules: do not use it with ${check ? '--check' : 'CRDs'}`,
      );
    }
    print(files.map(({ text }) => text.trimEnd()).join('\n---\n'));
    return EXIT_OK;
  }
  const stale: GeneratedFile[] = [];
  const writing = <T>(action: () => Promise<T>) => onPath(`cannot use --out=${out}`, action);
  for (const file of files) {
    const present = await writing(() => textAt(join(out, file.fileName)));
    if (present === file.text) continue;
    if (present !== undefined && !isGenerated(present)) {
      throw new UsageError(
        `${join(out, file.fileName)} exists and was not generated: move it, or choose another --out`,
      );
    }
    stale.push(file);
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

/** Reads the files that can contain CRDs. Files in folders are optional, because folders also have files such as `kustomization.yaml`. */
export async function definitionsIn(paths: readonly string[]): Promise<Definitions[]> {
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
      command: COMMAND,
      modules: LIBRARY_MODULES,
    });
  } catch (error) {
    // The message is complete; a cause would repeat it.
    throw new UsageError(messageOf(error));
  }
}

/** Returns the CRDs of the kinds that a module exports. */
async function definedBy(path: string): Promise<GeneratedFile[]> {
  const exported = Object.values(await importModule(path)).filter(isCustomResource);
  const definitions = new Map<string, CustomResource['definition']>();
  for (const { definition } of exported) {
    const { name = '' } = definition.metadata;
    const other = definitions.get(name);
    // A version that is part of another definition of the kind has no CRD of its own.
    if (other && other.spec.versions.length >= definition.spec.versions.length) continue;
    definitions.set(name, definition);
  }
  if (definitions.size === 0) {
    throw new UsageError(`${path} exports no kind that customResource defines`);
  }
  return Array.from(definitions, ([name, definition]) => ({
    fileName: `${name}.yaml`,
    text: definitionText(definition, sourceOf(path)),
  }));
}

/**
 * Imports a module of the user.
 *
 * @throws {UsageError} if that fails
 */
export async function importModule(path: string): Promise<object> {
  await inspect(path);
  try {
    const module: unknown = await import(pathToFileURL(resolve(path)).href);
    return typeof module === 'object' && module ? module : {};
  } catch (error) {
    throw new UsageError(`cannot import ${path}: ${messageOf(error)}${placeOf(error)}`);
  }
}

/** Returns the place where an error was thrown: ` (at src/a.ts:1:7)`. */
function placeOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const [, url, at] = /(file:\/\/[^\s)]+?)((?::\d+){1,2})\b/.exec(stack) ?? [];
  return url === undefined || at === undefined
    ? ''
    : ` (at ${relative('.', fileURLToPath(url))}${at})`;
}

async function textAt(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
