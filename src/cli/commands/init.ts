import { existsSync } from 'node:fs';
import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kindNames } from '../../codegen/kind-names.ts';
import type { KindNames } from '../../codegen/kind-names.ts';
import { goQuote } from '../../util/go-quote.ts';
import { hasErrorCode, isRecord } from '../../util/values.ts';
import { asRecord } from '../../codegen/schema.ts';
import { scaffold, TEMPLATE_PATHS } from '../../codegen/scaffold.ts';
import type { ProjectFiles } from '../../codegen/scaffold.ts';
import type { CommandContext } from '../program.ts';
import { EXIT_OK, onPath, UsageError } from '../errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { INIT_OPTIONS } from '../flags/options.ts';
import { manifest, packageRoot } from '../package.ts';

const PACKAGE = 'package.json';

const TEMPLATE = new URL('examples/06-library/static-site/', packageRoot());

/**
 * Creates the project of a controller for a new kind. No existing file is overwritten, and nothing is
 * written if a file exists. A `package.json` with dependencies only, as `npm install` writes it, is
 * completed.
 *
 * @throws {UsageError} if a name is invalid, or a file exists
 */
export async function init(
  operands: readonly string[],
  { group, plural, dir }: OptionValues<typeof INIT_OPTIONS>,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  const [kind, stray] = operands;
  if (kind === undefined) throw new UsageError('init requires a KIND, as in: init StaticSite');
  if (stray !== undefined)
    throw new UsageError(`init takes one KIND: unexpected argument ${goQuote(stray)}`);
  const options = { kind, group, plural: plural || undefined, dependency: await dependency() };
  const files = new Map(project(await template(), options));
  const writing = <T>(action: () => Promise<T>) => onPath(`cannot use --dir=${dir}`, action);
  const installed = await writing(() => installedIn(join(dir, PACKAGE)));
  if (installed) files.set(PACKAGE, withDependencies(files.get(PACKAGE) ?? '', installed));
  const own = [...files.keys()].filter((path) => path !== PACKAGE || !installed);
  const existing = await writing(() => present(own.map((path) => join(dir, path))));
  if (existing.length > 0) {
    throw new UsageError(
      `Existing files are not overwritten: ${existing.join(', ')}. Choose an empty folder with --dir`,
    );
  }
  for (const [path, text] of files) {
    const target = join(dir, path);
    await writing(() => mkdir(dirname(target), { recursive: true }));
    const flag = own.includes(path) ? 'wx' : 'w';
    await writing(() => writeFile(target, text, { flag }));
    print(target);
  }
  print(nextSteps(dir));
  return EXIT_OK;
}

/** Returns the dependencies of a `package.json` that has nothing else, or undefined. */
async function installedIn(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (!existsSync(path)) return undefined;
  let manifest: unknown;
  try {
    manifest = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!isRecord(manifest) || Object.keys(manifest).join() !== 'dependencies') return undefined;
  const { dependencies } = manifest;
  return isRecord(dependencies) ? dependencies : undefined;
}

function withDependencies(text: string, installed: Readonly<Record<string, unknown>>): string {
  const manifest: { readonly dependencies: object } = JSON.parse(text);
  const dependencies = { ...manifest.dependencies, ...installed };
  return `${JSON.stringify({ ...manifest, dependencies }, null, 2)}\n`;
}

interface ProjectOptions {
  readonly kind: string;
  readonly group: string;
  readonly plural: string | undefined;
  readonly dependency: string;
}

function project(
  files: ProjectFiles,
  { kind, group, plural, dependency }: ProjectOptions,
): ProjectFiles {
  try {
    const names: KindNames = kindNames(kind, group, plural);
    return scaffold(files, names, dependency);
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message);
    throw error;
  }
}

async function template(): Promise<ProjectFiles> {
  return new Map(
    await Promise.all(
      TEMPLATE_PATHS.map(
        async (path) => [path, await readFile(new URL(path, TEMPLATE), 'utf8')] as const,
      ),
    ),
  );
}

/**
 * Returns the version range by which the project depends on this package. If this package was installed from
 * a file, returns the path of that file.
 */
export async function dependency(root: URL = packageRoot()): Promise<string> {
  const lock = new URL('../.package-lock.json', root);
  if (existsSync(lock)) {
    const { packages } = asRecord(JSON.parse(await readFile(lock, 'utf8')), lock.pathname);
    const own = asRecord(packages ?? {}, 'packages')['node_modules/crd-controller'];
    const { resolved } = asRecord(own ?? {}, 'node_modules/crd-controller');
    if (typeof resolved === 'string' && resolved.startsWith('file:')) {
      const file = resolve(fileURLToPath(new URL('../../', root)), resolved.slice('file:'.length));
      if (existsSync(file)) return `file:${file}`;
    }
  }
  return `^${manifest(root).version}`;
}

async function present(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    try {
      await lstat(path);
      found.push(path);
    } catch (error) {
      if (!hasErrorCode(error, 'ENOENT')) throw error;
    }
  }
  return found;
}

function nextSteps(dir: string): string {
  const folder = relative('.', dir);
  return [
    '\nNext:\n',
    ...(folder ? [`  cd ${folder}`] : []),
    '  npm install',
    '  npm test     # runs on an embedded API server, in virtual time',
    '  npm start    # runs an embedded cluster with the controller and the sample',
  ].join('\n');
}
