import { existsSync } from 'node:fs';
import { copyFile, lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { kindNames } from '../../codegen/kind-names.ts';
import type { KindNames } from '../../codegen/kind-names.ts';
import { compareVersions } from '../../apiserver/objects/registry.ts';
import { goQuote } from '../../util/go-quote.ts';
import { jsonIfValid } from '../../util/json-value.ts';
import { hasErrorCode, isRecord } from '../../util/values.ts';
import { asRecord } from '../../codegen/schema.ts';
import { changesOf, withStep } from '../../codegen/project-steps.ts';
import type { ProjectStep, TemplateForm } from '../../codegen/project-steps.ts';
import { programNames, scaffold } from '../../codegen/scaffold.ts';
import {
  KINDS,
  KUSTOMIZATION,
  PROGRAM,
  SCAFFOLD_ACCOUNT,
  TEST_CLUSTER,
} from '../../codegen/template.ts';
import type { ProgramNames, ProjectFiles } from '../../codegen/template.ts';
import { versionChanges } from '../../codegen/version-addition.ts';
import { WEBHOOK_CHANGES } from '../../codegen/webhook-addition.ts';
import type { CommandContext } from '../program/program.ts';
import { EXIT_OK, onPath, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { INIT_OPTIONS } from '../flags/options.ts';
import { manifest, packageRoot } from '../program/package.ts';
import { PROJECT_RECORD, readRecord, recordText } from '../project/project-record.ts';
import { readTemplate } from '../project/template-files.ts';
import { updateProject } from './init-update.ts';

const PACKAGE = 'package.json';

const DEFAULT_GROUP = 'example.com';

type InitFlags = OptionValues<typeof INIT_OPTIONS>;

/**
 * Creates the project of a controller for a new kind, adds a kind to such a project, or updates it. No existing file is
 * overwritten by the first two, and nothing is written if a file exists. A `package.json` with dependencies only, as
 * `npm install` writes it, is completed.
 *
 * @throws {UsageError} if a name is invalid, a file exists, or the project has no place for a further kind
 */
export async function init(
  operands: readonly string[],
  flags: InitFlags,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  const [kind, stray] = operands;
  if (flags.update) {
    if (kind !== undefined || flags.add)
      throw new UsageError('--update takes neither a KIND nor --add: it updates the whole project');
    return updateProject({ ...flags, print, dependency: (await dependency()).range });
  }
  if (flags['dry-run']) throw new UsageError('--dry-run requires --update');
  if (kind === undefined) throw new UsageError('init requires a KIND, as in: init StaticSite');
  if (stray !== undefined)
    throw new UsageError(`init takes one KIND: unexpected argument ${goQuote(stray)}`);
  return flags.add ? add(kind, flags, print) : create(kind, flags, print);
}

async function create(
  kind: string,
  flags: InitFlags,
  print: (text: string) => void,
): Promise<number> {
  const { group, plural, 'api-version': version, dir, name } = flags;
  const { range, file } = await dependency();
  // Copied, so that the project can be built elsewhere.
  const isCopied = file !== undefined && resolve(file) !== resolve(dir, basename(file));
  const { schema, scope, webhooks } = flags;
  const form = { schema, scope, webhooks, 'test-runner': flags['test-runner'] };
  const template = await readTemplate(form);
  const names = asUsageError(() => {
    const kinds = kindNames(kind, group || DEFAULT_GROUP, plural || undefined);
    return { ...kinds, ...programNames(name || `${kinds.kebab}-controller`), version };
  });
  const written = asUsageError(() => scaffold(template, names, range));
  const steps: ProjectStep[] = [{ adds: 'project', names, form }];
  const record = recordText({ version: manifest().version, steps, files: written });
  const files = new Map([...written, [PROJECT_RECORD, record]]);
  const writing = writingTo(dir);
  const installed = await writing(() => installedIn(join(dir, PACKAGE)));
  if (installed)
    files.set(
      PACKAGE,
      withDependencies(files.get(PACKAGE) ?? '', installed, file ? range : undefined),
    );
  const own = [...files.keys()].filter((path) => path !== PACKAGE || !installed);
  if (isCopied) own.push(basename(file));
  await requireAbsent(dir, own);
  await writeFiles(dir, files, installed ? new Set([PACKAGE]) : new Set(), print);
  if (isCopied) {
    await writing(() => copyFile(file, join(dir, basename(file))));
    print(join(dir, basename(file)));
  }
  print(nextSteps(dir));
  return EXIT_OK;
}

async function add(
  kind: string,
  { group, plural, 'api-version': version, dir, name, webhooks, schema: given, scope }: InitFlags,
  print: (text: string) => void,
): Promise<number> {
  if (name) throw new UsageError('--name cannot be combined with --add: the program has a name');
  const present = new Map<string, string>();
  const required = [KUSTOMIZATION, PROGRAM, SCAFFOLD_ACCOUNT, TEST_CLUSTER];
  const missing = required.filter((path) => !existsSync(join(dir, path)));
  if (missing.length > 0) {
    throw new UsageError(
      `--add requires a project that init created: ${missing.map((path) => join(dir, path)).join(', ')} does not exist`,
    );
  }
  for (const path of required)
    present.set(path, await writingTo(dir)(() => readFile(join(dir, path), 'utf8')));
  const program = serviceAccountIn(
    join(dir, SCAFFOLD_ACCOUNT),
    present.get(SCAFFOLD_ACCOUNT) ?? '',
  );
  const schema = existsSync(join(dir, KINDS)) ? 'ts' : 'yaml';
  if (given === 'ts' && schema !== given) {
    throw new UsageError(`--schema=ts cannot be combined with --add: the project has no ${KINDS}`);
  }
  const groupOfKind = group || (await groupIn(join(dir, 'deploy/crds')));
  const kinds = asUsageError(() => kindNames(kind, groupOfKind, plural || undefined));
  const existing = await definitionIn(dir, kinds);
  const isVersion = existing !== undefined && compareVersions(version, existing.stored) < 0;
  if (existing && !isVersion && !webhooks) {
    throw new UsageError(
      `${kind} exists, in version ${existing.stored}. To add a version, set --api-version to a newer one; to add webhooks, set --webhooks`,
    );
  }
  const names = {
    ...kinds,
    ...program,
    version: isVersion ? version : (existing?.stored ?? version),
  };
  const form: TemplateForm = {
    schema,
    scope: existing?.scope ?? scope,
    webhooks: webhooks || isVersion,
    'test-runner': present.get(TEST_CLUSTER)?.includes("from 'vitest'") ? 'vitest' : 'node',
  };
  const template = await readTemplate(form);
  const record = await readRecord(dir);
  const steps: ProjectStep[] = [];
  let recorded = record?.files ?? new Map<string, string>();
  const created = new Map<string, string>();
  const changed = new Map<string, string>();
  const apply = (step: ProjectStep) => {
    const current = new Map([...present, ...created, ...changed]);
    const made = asUsageError(() => changesOf(template, current, step));
    steps.push(step);
    recorded = withStep(recorded, template, step, made);
    for (const [path, text] of made.created) created.set(path, text);
    for (const [path, text] of made.changed)
      if (created.has(path)) created.set(path, text);
      else if (present.get(path) !== text) changed.set(path, text);
  };
  const read = async (paths: readonly string[]) => {
    for (const path of paths.filter((each) => existsSync(join(dir, each))))
      present.set(path, await writingTo(dir)(() => readFile(join(dir, path), 'utf8')));
  };
  if (isVersion) {
    await read(versionChanges(names));
    apply({ adds: 'version', names, form, former: existing.stored });
  } else if (!existing) apply({ adds: 'kind', names, form });
  if (webhooks) {
    await read(WEBHOOK_CHANGES);
    apply({ adds: 'webhooks', names, form });
  }
  await requireAbsent(dir, [...created.keys()]);
  if (record) {
    const all = { version: record.version, steps: [...record.steps, ...steps], files: recorded };
    changed.set(PROJECT_RECORD, recordText(all));
  }
  await writeFiles(dir, new Map([...created, ...changed]), new Set(changed.keys()), print);
  const isGenerated = isVersion && schema === 'ts';
  print(`\nNext:\n\n${isGenerated ? '  npm run generate\n' : ''}  npm test`);
  return EXIT_OK;
}

/** Returns the scope and the versions of a kind of a project, or undefined if it has no CRD there. */
async function definitionIn(
  dir: string,
  { plural, group }: KindNames,
): Promise<
  | {
      readonly scope: InitFlags['scope'];
      readonly versions: readonly string[];
      readonly stored: string;
    }
  | undefined
> {
  const path = join(dir, 'deploy/crds', `${plural}.${group}.yaml`);
  if (!existsSync(path)) return undefined;
  const definition: unknown = parse(await writingTo(dir)(() => readFile(path, 'utf8')));
  const spec = isRecord(definition) && isRecord(definition['spec']) ? definition['spec'] : {};
  const versions: readonly unknown[] = Array.isArray(spec['versions']) ? spec['versions'] : [];
  const stored = versions.find((each) => isRecord(each) && each['storage'] === true);
  return {
    scope: spec['scope'] === 'Cluster' ? 'Cluster' : 'Namespaced',
    versions: versions.map((each) => (isRecord(each) ? String(each['name']) : '')),
    stored: isRecord(stored) ? String(stored['name']) : '',
  };
}

function asUsageError<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message);
    throw error;
  }
}

function writingTo(dir: string) {
  return <T>(action: () => Promise<T>) => onPath(`cannot use --dir=${dir}`, action);
}

async function requireAbsent(dir: string, paths: readonly string[]): Promise<void> {
  const existing = await writingTo(dir)(() => existingOf(paths.map((path) => join(dir, path))));
  if (existing.length === 0) return;
  throw new UsageError(
    `Existing files are not overwritten: ${existing.join(', ')}. Choose an empty folder with --dir`,
  );
}

async function writeFiles(
  dir: string,
  files: ProjectFiles,
  changed: ReadonlySet<string>,
  print: (text: string) => void,
): Promise<void> {
  const writing = writingTo(dir);
  for (const [path, text] of files) {
    const target = join(dir, path);
    await writing(() => mkdir(dirname(target), { recursive: true }));
    await writing(() => writeFile(target, text, { flag: changed.has(path) ? 'w' : 'wx' }));
    print(target);
  }
}

/** Returns the dependencies of a `package.json` that has nothing else, or undefined. */
async function installedIn(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (!existsSync(path)) return undefined;
  const manifest = jsonIfValid(await readFile(path, 'utf8'));
  if (!isRecord(manifest) || Object.keys(manifest).join() !== 'dependencies') return undefined;
  const { dependencies } = manifest;
  return isRecord(dependencies) ? dependencies : undefined;
}

/** @param own the version of this package, if it has precedence over the installed one */
function withDependencies(
  text: string,
  installed: Readonly<Record<string, unknown>>,
  own: string | undefined,
): string {
  const manifest: { readonly dependencies: object } = JSON.parse(text);
  const dependencies = {
    ...manifest.dependencies,
    ...installed,
    ...(own !== undefined && { 'crd-controller': own }),
  };
  return `${JSON.stringify({ ...manifest, dependencies }, null, 2)}\n`;
}

/** Returns the names of a program from the manifest of its ServiceAccount. */
function serviceAccountIn(path: string, text: string): ProgramNames {
  const object: unknown = parse(text);
  const metadata = isRecord(object) ? object['metadata'] : undefined;
  const { name, namespace } = isRecord(metadata) ? metadata : {};
  if (typeof name !== 'string' || typeof namespace !== 'string') {
    throw new UsageError(`${path} has no ServiceAccount with a name and a namespace`);
  }
  return { program: name, namespace };
}

/** Returns the API group of the CRDs in a folder, from the names of the files. */
async function groupIn(folder: string): Promise<string> {
  const names = existsSync(folder) ? await readdir(folder) : [];
  const [first = ''] = names.filter((name) => /^[^.]+\..+\.yaml$/.test(name)).toSorted();
  return /^[^.]+\.(.+)\.yaml$/.exec(first)?.[1] ?? DEFAULT_GROUP;
}

/** The version of this package for a `package.json`. */
export interface Dependency {
  /** `^0.1.0`, or `file:crd-controller-0.1.0.tgz` */
  readonly range: string;
  /** Path of the file that the package was installed from, if it was. */
  readonly file?: string;
}

/** Returns how a project depends on this package. */
export async function dependency(root: URL = packageRoot()): Promise<Dependency> {
  const lock = new URL('../.package-lock.json', root);
  if (existsSync(lock)) {
    const { packages } = asRecord(JSON.parse(await readFile(lock, 'utf8')), lock.pathname);
    const own = asRecord(packages ?? {}, 'packages')['node_modules/crd-controller'];
    const { resolved } = asRecord(own ?? {}, 'node_modules/crd-controller');
    if (typeof resolved === 'string' && resolved.startsWith('file:')) {
      const file = resolve(fileURLToPath(new URL('../../', root)), resolved.slice('file:'.length));
      if (existsSync(file)) return { range: `file:${basename(file)}`, file };
    }
  }
  return { range: `^${manifest(root).version}` };
}

async function existingOf(paths: readonly string[]): Promise<string[]> {
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
