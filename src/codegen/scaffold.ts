import { parse } from 'yaml';
import { definitionText } from './crd-parser.ts';
import { generateModules, LIBRARY_MODULES } from './generate-modules.ts';
import type { KindNames } from './kind-names.ts';
import { withImports } from './module-text.ts';
import { permissionOf, withPermissions } from './role-rules.ts';
import {
  CRD_PATH,
  KIND_PATH,
  KIND_PATHS,
  KUSTOMIZATION,
  PROGRAM,
  ROLE_PATH,
  SCAFFOLD_ACCOUNT,
  TEMPLATE_NAMES,
  TEST_CLUSTER,
  VITEST_CONFIG,
  WEBHOOK_PATHS,
} from './template.ts';
import type { ProgramNames, ProjectFiles, ProjectNames } from './template.ts';

/** Manifests that do not depend on the kinds of the program. */
const MANIFEST_PATHS: readonly string[] = [
  'deploy/manager/deployment.yaml',
  'deploy/manager/disruption-budget.yaml',
  'deploy/manager/metrics-service.yaml',
  'deploy/namespace/namespace.yaml',
  'deploy/network-policy/kustomization.yaml',
  'deploy/network-policy/network-policy.yaml',
  'deploy/rbac/events/events.yaml',
  'deploy/rbac/identity/leader-election.yaml',
  SCAFFOLD_ACCOUNT,
  'deploy/rbac/metrics/auth-role.yaml',
  'deploy/rbac/metrics/reader.yaml',
];

/** Files of the template. */
export const TEMPLATE_PATHS: readonly string[] = [
  '.dockerignore',
  '.editorconfig',
  '.github/workflows/ci.yaml',
  'AGENTS.md',
  'Dockerfile',
  'README.md',
  ...MANIFEST_PATHS,
  KUSTOMIZATION,
  ...KIND_PATHS,
  'package.json',
  'src/dev.ts',
  'src/main.ts',
  PROGRAM,
  TEST_CLUSTER,
  'tsconfig.json',
];

/** Not part of the template, because npm packages cannot contain a file with this name. */
const GIT_IGNORE = 'node_modules/\ndist/\n.cluster/\ndev.kubeconfig\n';

/** Maximum length of the name of a namespace. */
const LONGEST_NAMESPACE = 63;

/**
 * Returns the names of a program with a namespace of its own.
 *
 * @throws {RangeError} if the name is malformed or too long
 */
export function programNames(program: string): ProgramNames {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(program)) {
    throw new RangeError(
      `--name must consist of lower-case letters, digits and single "-" between them: got ${JSON.stringify(program)}`,
    );
  }
  const namespace = `${program}-system`;
  if (namespace.length > LONGEST_NAMESPACE) {
    throw new RangeError(
      `the namespace ${namespace} exceeds ${LONGEST_NAMESPACE} characters: choose a shorter --name`,
    );
  }
  return { program, namespace };
}

/**
 * Creates the project for a new kind from the template, which is a tested example, by replacing its names.
 *
 * @param template the files at `TEMPLATE_PATHS`
 * @param dependency the version of this package: `^0.1.0`, `file:package.tgz`
 * @throws {RangeError} if the kind has the name of another identifier in the project
 */
export function scaffold(
  template: ProjectFiles,
  names: ProjectNames,
  dependency: string,
): ProjectFiles {
  requireFreeNames(template, names);
  const optional = [...WEBHOOK_PATHS, VITEST_CONFIG].filter((path) => template.has(path));
  const files = new Map(renamedFiles(template, [...TEMPLATE_PATHS, ...optional], names));
  const program = files.get(PROGRAM) ?? '';
  files.set(PROGRAM, program.replaceAll(/^( +)'([a-z0-9]+)': \{/gm, '$1$2: {'));
  for (const [path, text] of kindFiles(template, files, names)) files.set(path, text);
  files.set('package.json', withDependency(files.get('package.json') ?? '', dependency));
  files.set('.gitignore', GIT_IGNORE);
  return files;
}

/** The changes of a project for a further kind. */
export interface Addition {
  readonly created: ProjectFiles;
  /** Existing files with their new texts. */
  readonly changed: ProjectFiles;
}

/**
 * Returns the changes that add a kind and its controller to a project.
 *
 * @param present the texts of `KUSTOMIZATION` and `PROGRAM` in the project
 * @throws {RangeError} if a text has no place for the kind, or the kind has the name of another identifier
 */
export function addition(
  template: ProjectFiles,
  present: ProjectFiles,
  names: ProjectNames,
): Addition {
  requireFreeNames(template, names);
  const files = new Map(renamedFiles(template, KIND_PATHS, names));
  for (const [path, text] of kindFiles(template, files, names)) files.set(path, text);
  const manifests = [CRD_PATH, ROLE_PATH].map((path) => rename(path, names));
  return {
    created: files,
    changed: new Map([
      [KUSTOMIZATION, withManifests(present.get(KUSTOMIZATION) ?? '', manifests)],
      [PROGRAM, withController(present.get(PROGRAM) ?? '', names, folderOfKinds(template))],
    ]),
  };
}

/** A CRD, and the names of its kind. */
export interface Definition {
  readonly names: KindNames;
  readonly text: string;
}

/**
 * Returns the manifests of a program with the given kinds. The role of each controller permits to read the kind
 * and to write its status.
 *
 * @param template the files at `TEMPLATE_PATHS`
 * @throws {RangeError} if there is no definition
 */
export function manifestFiles(
  template: ProjectFiles,
  program: ProgramNames,
  definitions: readonly Definition[],
): ProjectFiles {
  const [first] = definitions;
  if (!first) throw new RangeError('There is no CustomResourceDefinition in the files');
  const files = new Map<string, string>();
  for (const { names, text } of definitions) {
    const all = { ...names, ...program };
    const [[path, role] = ['', '']] = renamedFiles(template, [ROLE_PATH], all);
    const { plural, group } = names;
    const permissions = [
      ...['get', 'list', 'watch'].map((verb) => permissionOf(verb, group, plural)),
      permissionOf('patch', group, `${plural}/status`),
    ];
    files.set(rename(CRD_PATH, all), text);
    files.set(path, withPermissions(role, new Set(permissions)));
  }
  const names = { ...first.names, ...program };
  const kustomization = rename(template.get(KUSTOMIZATION) ?? '', names);
  return new Map([
    [KUSTOMIZATION, withManifests(kustomization, [...files.keys()])],
    ...renamedFiles(template, MANIFEST_PATHS, names),
    ...files,
  ]);
}

/** Returns the files of a kind that depend on each other: its generated types, or its module and the CRD of that. */
function kindFiles(
  template: ProjectFiles,
  files: ProjectFiles,
  names: ProjectNames,
): [path: string, text: string][] {
  const source = rename(CRD_PATH, names);
  if (template.has(KIND_PATH)) {
    const [module = ['', '']] = renamedFiles(template, [KIND_PATH], names);
    // The CRD of the template is that of the module, with another comment and layout.
    return [module, [source, definitionText(parse(files.get(source) ?? ''), module[0])]];
  }
  const modules = generateModules([{ source, text: files.get(source) ?? '' }], {
    command: '`crd-controller generate`',
    modules: LIBRARY_MODULES,
  });
  return modules.map(({ fileName, text }) => [`src/generated/${fileName}`, text]);
}

export function renamedFiles(
  template: ProjectFiles,
  paths: readonly string[],
  names: KindNames & ProgramNames & Partial<ProjectNames>,
): [path: string, text: string][] {
  return paths.map((path) => {
    const text = template.get(path);
    if (text === undefined) throw new Error(`The template does not contain ${path}`);
    // The component of a controller, for events and field managers, has the name of the kind.
    const component = path.startsWith('src/controllers/') ? `${names.kebab}-controller` : undefined;
    return [rename(path, names), rename(text, { ...names, program: component ?? names.program })];
  });
}

/** Replaces the names of the template that are given. */
export function rename(text: string, names: Partial<ProjectNames>): string {
  const replacements = new Map(
    Object.entries(TEMPLATE_NAMES).map(([form, name]) => [name, names[form as keyof typeof names]]),
  );
  return text.replaceAll(
    /static-site-controller-system|static-site-controller|StaticSite|staticSite|static-site|STATIC_SITES|staticsites|staticsite|example\.com|v1alpha1/g,
    (name) => replacements.get(name) ?? name,
  );
}

function withDependency(manifest: string, dependency: string): string {
  const line = `"crd-controller": ${JSON.stringify(dependency)}`;
  return manifest.replace(/"crd-controller": "[^"]*"/, () => line);
}

/**
 * Returns a kustomization with the manifests at `paths`, each after the last one of its folder.
 *
 * @throws {RangeError} if the kustomization lists no file of a folder
 */
export function withManifests(kustomization: string, paths: readonly string[]): string {
  const lines = kustomization.split('\n');
  for (const path of paths) {
    const resource = path.replace(/^deploy\//, '');
    const folder = resource.slice(0, resource.lastIndexOf('/') + 1);
    if (!folder || lines.some((line) => line.trim() === `- ${resource}`)) continue;
    const last = lines.findLastIndex((line) => line.trimStart().startsWith(`- ${folder}`));
    if (last < 0)
      throw new RangeError(`${KUSTOMIZATION} lists no file of ${folder}: add ${resource} by hand`);
    const [indent] = /^ */.exec(lines[last] ?? '') ?? [''];
    lines.splice(last + 1, 0, `${indent}- ${resource}`);
  }
  return lines.join('\n');
}

/** Returns the folder in `src` with the modules of the kinds. */
function folderOfKinds(template: ProjectFiles): string {
  return template.has(KIND_PATH) ? 'kinds' : 'generated';
}

/** Returns the module of a program with a further controller. */
function withController(
  text: string,
  { kebab, camel, constant }: KindNames,
  folder: string,
): string {
  const { index, opening, indent } = placeOfControllers(text, 'the controller');
  const taken = [constant, `${camel}Controller`].find((name) =>
    new RegExp(`\\b${name}\\b`).test(text),
  );
  if (taken !== undefined) throw new RangeError(`${PROGRAM} uses the name ${taken} already`);
  const name = kebab.includes('-') ? `'${kebab}'` : kebab;
  const entry = `\n${indent}  ${name}: { resource: ${constant}, build: ${camel}Controller },`;
  // At the end if the object has a line for its closing brace, otherwise at the start.
  const start = index + opening.length;
  const length = text.slice(start).search(new RegExp(`\n${indent}\\}`));
  const end = start + Math.max(length, 0);
  const body = `${text.slice(0, end)}${entry}${text.slice(end)}`;
  return withImports(body, [
    { from: `./controllers/${kebab}.ts`, names: [`${camel}Controller`] },
    { from: `./${folder}/${kebab}.ts`, names: [constant] },
  ]);
}

/** @throws {RangeError} if a program does not have exactly one list of controllers */
export function placeOfControllers(text: string, what: string) {
  const places = [...text.matchAll(/^([ \t]*)controllers: \{/gm)];
  const [place] = places;
  if (!place || places.length > 1) {
    throw new RangeError(
      `${PROGRAM} has ${places.length} lines with "controllers: {" instead of one: add ${what} by hand`,
    );
  }
  const [opening, indent = ''] = place;
  return { index: place.index, opening, indent };
}

/** @throws {RangeError} if the code of the template uses a name of the kind for something else */
function requireFreeNames(template: ProjectFiles, { kind, constant }: KindNames): void {
  const taken = new Set<string>();
  for (const [path, text] of template) {
    if (!path.endsWith('.ts')) continue;
    const code = text.replaceAll(/\/\*[^]*?\*\/|\/\/.*|'[^'\n]*'/g, '');
    for (const [word] of code.matchAll(/\b[A-Z]\w*/g)) taken.add(word);
  }
  const clash = [kind, constant].find(
    (name) => taken.has(name) && !Object.values(TEMPLATE_NAMES).includes(name),
  );
  if (clash !== undefined) {
    throw new RangeError(
      `KIND must not be ${kind}: the generated code uses the name ${clash} for something else`,
    );
  }
}
