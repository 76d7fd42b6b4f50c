import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { parseCustomResources } from '../../codegen/crd-parser.ts';
import { kindNames } from '../../codegen/kind-names.ts';
import { manifestFiles, programNames, withManifests } from '../../codegen/scaffold.ts';
import type { Definition } from '../../codegen/scaffold.ts';
import { KUSTOMIZATION } from '../../codegen/template.ts';
import type { ProjectFiles } from '../../codegen/template.ts';
import type { WebhookEntries } from '../../webhook/declaration.ts';
import { Webhooks } from '../../webhook/webhooks.ts';
import { messageOf } from '../../util/values.ts';
import { EXIT_OK, onPath, UsageError } from '../common/errors.ts';
import { installation } from '../program/installation.ts';
import type { ReadManifest } from '../program/installation.ts';
import type { OptionValues } from '../flags/option.ts';
import type { GENERATE_OPTIONS } from '../flags/options.ts';
import type { CommandContext } from '../program/program.ts';
import { definitionsIn, importModule, MODULE } from './generate.ts';
import { readTemplate } from '../project/template-files.ts';

type Flags = Pick<OptionValues<typeof GENERATE_OPTIONS>, 'name' | 'deploy' | 'check'>;

/** Where a project of `init` has its CRDs. */
const CRDS = 'deploy/crds';

/**
 * Prints the manifests of a program that reconciles the kinds in files and folders, or writes them as a kustomization.
 * Existing files are kept, but the kustomization gets the lines of further kinds. Of modules, it prints the manifests of the
 * webhooks that they export.
 *
 * @throws {UsageError} if there is no CRD, or a CRD, a name or a module is invalid
 */
export async function generateManifests(
  operands: readonly string[],
  { name, deploy, check }: Flags,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  if (check) throw new UsageError('--check cannot be combined with generate manifests');
  if (deploy && operands.some((path) => MODULE.test(path))) {
    throw new UsageError(
      '--deploy cannot be combined with a module: the manifests of webhooks are printed, also by the command manifests of the program',
    );
  }
  const { program, files, webhooks } = await manifestsOfKinds(operands, name, 'generate manifests');
  if (!deploy) {
    print(installation(program, readerOfFiles(files), { webhooks }).trimEnd());
    return EXIT_OK;
  }
  const writing = <T>(action: () => Promise<T>) => onPath(`cannot use --deploy=${deploy}`, action);
  for (const [path, text] of files) {
    const target = join(deploy, relative('deploy', path));
    const present = existsSync(target) ? await writing(() => readFile(target, 'utf8')) : undefined;
    const wanted =
      present !== undefined && path === KUSTOMIZATION
        ? valid(() => withManifests(present, [...files.keys()].filter(isOfKind)))
        : text;
    if (present === wanted) continue;
    if (present !== undefined && path !== KUSTOMIZATION) {
      print(`${target} exists and is kept`);
      continue;
    }
    await writing(() => mkdir(dirname(target), { recursive: true }));
    await writing(() => writeFile(target, wanted));
    print(target);
  }
  return EXIT_OK;
}

/** The manifests of a program for CRDs. */
export interface ManifestsOfKinds {
  readonly program: string;
  readonly files: ProjectFiles;
  /** Of the module among the operands. */
  readonly webhooks: WebhookEntries | undefined;
}

/**
 * Returns the manifests of a program for the CRDs in files and folders, and its webhooks.
 *
 * @param operands CRDs, and a module that exports webhooks
 * @throws {UsageError} if there is no CRD, or a CRD, a name or a module is invalid
 */
export async function manifestsOfKinds(
  operands: readonly string[],
  name: string,
  command: string,
): Promise<ManifestsOfKinds> {
  const modules = operands.filter((path) => MODULE.test(path));
  const paths = operands.filter((path) => !MODULE.test(path));
  const [module, another] = modules;
  if (another !== undefined) {
    throw new UsageError(`${command} takes one module with webhooks: got ${modules.join(', ')}`);
  }
  if (paths.length === 0 && !existsSync(CRDS))
    throw new UsageError(`${command} requires the path of a CRD: a file or folder`);
  const texts = await definitionsIn(paths.length > 0 ? paths : [CRDS]);
  const template = await readTemplate();
  const program = name || (await packageName());
  const files = valid(() => {
    const definitions = texts.flatMap(({ source, text }) => customResourcesIn(source, text));
    return manifestFiles(template, programNames(program), definitions);
  });
  return { program, files, webhooks: module === undefined ? undefined : await webhooksIn(module) };
}

/** Returns a function that reads the files of a project. */
export function readerOfFiles(files: ProjectFiles): ReadManifest {
  return (path) => {
    const text = files.get(`deploy/${path}`);
    if (text === undefined) throw new Error(`deploy/${path} does not exist`);
    return text;
  };
}

/** Returns what the webhooks that a module exports review and convert. */
async function webhooksIn(path: string): Promise<WebhookEntries> {
  const webhooks = Object.values(await importModule(path)).find(
    (each: unknown) => each instanceof Webhooks,
  );
  if (webhooks) return webhooks.entries();
  throw new UsageError(`${path} exports no Webhooks of crd-controller/webhook`);
}

function isOfKind(path: string): boolean {
  return /^deploy\/(crds|rbac\/controllers)\//.test(path);
}

/** Returns the definitions in a text, with their comments. */
function customResourcesIn(source: string, text: string): Definition[] {
  return text.split(/^---\n/m).flatMap((document) => {
    const [resource, another] = parseCustomResources(document).filter(({ isMain }) => isMain);
    if (!resource) return [];
    if (another) throw new TypeError(`${source} has a list: write each CRD as a document`);
    const { kind, group, plural } = resource;
    return [{ names: kindNames(kind, group, plural), text: document }];
  });
}

/** Returns the name of the package in this folder, without its scope. */
async function packageName(): Promise<string> {
  if (!existsSync('package.json'))
    throw new UsageError('There is no package.json here: give the program a name by --name');
  const { name = '' } = JSON.parse(await readFile('package.json', 'utf8')) as { name?: string };
  return name.replace(/^@[^/]*\//, '');
}

/** The messages of errors in CRDs and names are complete; a cause would repeat them. */
function valid<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}
