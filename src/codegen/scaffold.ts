import { parse } from 'yaml';
import { definitionText } from './crd-parser.ts';
import { generateModules, LIBRARY_MODULES } from './generate-modules.ts';
import type { KindNames } from './kind-names.ts';
import { permissionOf, withPermissions } from './role-rules.ts';

/** The files of a project by their paths. */
export type ProjectFiles = ReadonlyMap<string, string>;

/** The names of a program and of its ServiceAccount. */
export interface ProgramNames {
  /** `static-site-controller`: the program, its image and its ServiceAccount. */
  readonly program: string;
  /** `static-site-controller-system`: the namespace of the installation. */
  readonly namespace: string;
}

/** The names of a kind, its API version, and the names of its program. */
export interface ProjectNames extends KindNames, ProgramNames {
  /** `v1alpha1` */
  readonly version: string;
}

/** The names in the template. They are all different, so that each can be replaced separately. */
const TEMPLATE_NAMES: ProjectNames = {
  kind: 'StaticSite',
  camel: 'staticSite',
  kebab: 'static-site',
  constant: 'STATIC_SITES',
  singular: 'staticsite',
  plural: 'staticsites',
  group: 'example.com',
  version: 'v1alpha1',
  program: 'static-site-controller',
  namespace: 'static-site-controller-system',
};

/** Module of a kind that is defined in TypeScript. Templates with CRDs in YAML do not have it. */
const KIND_PATH = 'src/kinds/static-site.ts';
/** Folder of the modules of kinds that are defined in TypeScript. */
export const KINDS = 'src/kinds';

const CRD_PATH = 'deploy/crds/staticsites.example.com.yaml';
const ROLE_PATH = 'deploy/rbac/controllers/static-site.yaml';

/** Files of the template for each kind, without the types, which are generated. */
const KIND_PATHS: readonly string[] = [
  CRD_PATH,
  ROLE_PATH,
  'samples/static-site.yaml',
  'src/controllers/static-site.ts',
  'test/static-site.test.ts',
];

/** File that lists the manifests. */
export const KUSTOMIZATION = 'deploy/kustomization.yaml';
/** File that lists the controllers. */
export const PROGRAM = 'src/program.ts';
/** File with the names of the ServiceAccount. */
export const SCAFFOLD_ACCOUNT = 'deploy/rbac/identity/service-account.yaml';
/** File with the functions that the tests of all controllers use. */
export const TEST_CLUSTER = 'test/cluster.ts';

/** Files that differ if kinds are defined in TypeScript. */
export const TYPESCRIPT_PATHS: readonly string[] = [KIND_PATH];

/** A text in a file of the template, and its replacement. */
type TextChange = readonly [path: string, from: string, to: string];

/** Texts of the template that differ if kinds are defined in TypeScript. */
const TYPESCRIPT_TEXTS: readonly TextChange[] = [
  ['src/controllers/static-site.ts', '../generated/', '../kinds/'],
  ['test/static-site.test.ts', '../src/generated/', '../src/kinds/'],
  [PROGRAM, './generated/', './kinds/'],
  ['package.json', 'deploy/crds --out=src/generated', 'src/kinds/*.ts --out=deploy/crds'],
  ['AGENTS.md', '`src/generated/` from `deploy/crds/`', '`deploy/crds/` from `src/kinds/`'],
  [
    'README.md',
    '`src/generated/`           | types of the CRDs: `npm run generate`                                                             |',
    '`src/kinds/`               | the kinds: their schemas and types                                                                |',
  ],
  [
    'README.md',
    '| the definitions                                                                                   |',
    '| the CRDs of the kinds: `npm run generate`                                                         |',
  ],
  [
    'README.md',
    'in `deploy/crds/`, run `npm run generate`, and then `npm run types` to find code that no longer compiles.',
    'in `src/kinds/`, run `npm run generate`, and `npm run types` to find code that no longer compiles.',
  ],
];

/**
 * Returns the template for kinds that are defined in TypeScript.
 *
 * @param files the files at `TYPESCRIPT_PATHS`
 */
export function inTypeScript(template: ProjectFiles, files: ProjectFiles): ProjectFiles {
  return changedTexts(new Map([...template, ...files]), TYPESCRIPT_TEXTS);
}

/** Texts of the template that differ for a cluster-scoped kind. */
const CLUSTER_TEXTS: readonly TextChange[] = [
  [CRD_PATH, 'scope: Namespaced', 'scope: Cluster'],
  [KIND_PATH, "plural: 'staticsites',", "plural: 'staticsites',\n  scope: 'Cluster',"],
  ['samples/static-site.yaml', '  namespace: default\n', ''],
  [
    'src/controllers/static-site.ts',
    'metadata: { name: metadata.name, labels }',
    'metadata: { namespace: NAMESPACE, name: metadata.name, labels }',
  ],
  [
    'src/controllers/static-site.ts',
    '`OwnedObjects` sets its namespace and its owner reference.',
    '`OwnedObjects` sets its owner reference.',
  ],
  [
    'src/controllers/static-site.ts',
    "const COMPONENT = 'static-site-controller';\n",
    "const COMPONENT = 'static-site-controller';\n\n/** Namespace of the Deployments: a cluster-scoped object has none. */\nconst NAMESPACE = 'default';\n",
  ],
];

/**
 * Returns the template for a cluster-scoped kind.
 *
 * @param template of `inTypeScript` and `withWebhooks`, if the project has these
 */
export function inCluster(template: ProjectFiles): ProjectFiles {
  return changedTexts(
    template,
    CLUSTER_TEXTS.filter(([path]) => template.has(path)),
  );
}

/** @throws {Error} if the template does not contain a text */
function changedTexts(template: ProjectFiles, changes: readonly TextChange[]): ProjectFiles {
  const changed = new Map(template);
  for (const [path, from, to] of changes) {
    const text = changed.get(path) ?? '';
    if (!text.includes(from)) throw new Error(`${path} of the template does not contain ${from}`);
    changed.set(path, text.replaceAll(from, to));
  }
  return changed;
}

/** File that declares the webhooks. */
export const WEBHOOKS = 'src/webhooks.ts';
/** Files of a project with webhooks. */
export const WEBHOOK_PATHS: readonly string[] = [WEBHOOKS, 'test/webhooks.test.ts'];

/** Texts of the template that differ if the program has webhooks. */
const WEBHOOK_TEXTS: readonly TextChange[] = [
  ['src/webhooks.ts', '../../static-site/src/', './'],
  ['test/webhooks.test.ts', '../../static-site/test/', './'],
  ['test/webhooks.test.ts', '../../static-site/src/', '../src/'],
  [
    PROGRAM,
    "static-site.ts';\n\n",
    "static-site.ts';\nimport { webhooks } from './webhooks.ts';\n\n",
  ],
  [PROGRAM, '  controllers: {', '  webhooks,\n  controllers: {'],
  [
    'README.md',
    '| `src/main.ts`              |',
    '| `src/webhooks.ts`          | defaults and validation, which the API server calls: the webhooks                                 |\n| `src/main.ts`              |',
  ],
  ['src/dev.ts', 'ApiServer, Cluster }', 'ApiServer, Cluster, installWebhooks }'],
  ['src/dev.ts', "'./program.ts';", "'./program.ts';\nimport { webhooks } from './webhooks.ts';"],
  [
    'src/dev.ts',
    "await apply('samples');",
    "// The server calls the functions in this process, without a connection.\nawait installWebhooks(server, client, webhooks);\nawait apply('samples');",
  ],
  [
    'src/dev.ts',
    '[`--kubeconfig=${kubeconfig}`, ...process.argv.slice(2)]',
    "[\n    `--kubeconfig=${kubeconfig}`,\n    '--webhook-bind-address=0',\n    ...process.argv.slice(2),\n  ]",
  ],
  [
    'deploy/manager/deployment.yaml',
    '              containerPort: 8081\n',
    '              containerPort: 8081\n            - name: webhook\n              containerPort: 9443\n',
  ],
  [
    KUSTOMIZATION,
    '# The installation: `kubectl apply -k deploy`, or `npm run manifests` for one with another image or namespace.',
    '# The files of the installation. `npm run manifests` prints them with the webhooks, which src/webhooks.ts declares.',
  ],
];

/**
 * Returns the template for a program with webhooks.
 *
 * @param template of `inTypeScript`, if kinds are defined in TypeScript
 * @param files the files at `WEBHOOK_PATHS`
 */
export function withWebhooks(template: ProjectFiles, files: ProjectFiles): ProjectFiles {
  const changed = changedTexts(new Map([...template, ...files]), WEBHOOK_TEXTS);
  if (!template.has(KIND_PATH)) return changed;
  return changedTexts(
    changed,
    WEBHOOK_PATHS.map((path) => [path, '/generated/', '/kinds/']),
  );
}

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
  const webhooks = WEBHOOK_PATHS.filter((path) => template.has(path));
  const files = new Map(renamedFiles(template, [...TEMPLATE_PATHS, ...webhooks], names));
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
  const manifests = [CRD_PATH, ROLE_PATH].map((path) => renamed(path, names));
  return {
    created: files,
    changed: new Map([
      [KUSTOMIZATION, withManifests(present.get(KUSTOMIZATION) ?? '', manifests)],
      [PROGRAM, withController(present.get(PROGRAM) ?? '', names, folderOfKinds(template))],
    ]),
  };
}

/** Files that `webhookAddition` changes, and those of which only texts that exist are changed. */
export const WEBHOOK_CHANGES: readonly string[] = [
  PROGRAM,
  'src/dev.ts',
  'deploy/manager/deployment.yaml',
  'README.md',
  KUSTOMIZATION,
];
const OPTIONAL_CHANGES: ReadonlySet<string> = new Set(['README.md', KUSTOMIZATION]);

/**
 * Returns the changes that add webhooks for a kind to a project.
 *
 * @param template of `withWebhooks`
 * @param present the texts of `WEBHOOK_CHANGES` in the project
 * @throws {RangeError} if a text has no place for the webhooks
 */
export function webhookAddition(
  template: ProjectFiles,
  present: ProjectFiles,
  names: ProjectNames,
): Addition {
  const changed = new Map([...present].filter(([path]) => WEBHOOK_CHANGES.includes(path)));
  for (const [path, ...texts] of WEBHOOK_TEXTS) {
    const text = changed.get(path);
    if (text === undefined || path === PROGRAM) continue;
    const [from, to] = texts.map((each) => renamed(each, names)) as [string, string];
    if (text.includes(from))
      changed.set(
        path,
        text.replace(from, () => to),
      );
    else if (!OPTIONAL_CHANGES.has(path)) {
      throw new RangeError(
        `${path} does not contain ${JSON.stringify(from)}: add ${JSON.stringify(to)} by hand`,
      );
    }
  }
  const program = changed.get(PROGRAM) ?? '';
  const { index, indent } = placeOfControllers(program, 'webhooks');
  const withOption = `${program.slice(0, index)}${indent}webhooks,\n${program.slice(index)}`;
  changed.set(PROGRAM, withImports(withOption, ["import { webhooks } from './webhooks.ts';"]));
  return { created: new Map(renamedFiles(template, WEBHOOK_PATHS, names)), changed };
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
    files.set(renamed(CRD_PATH, all), text);
    files.set(path, withPermissions(role, new Set(permissions)));
  }
  const names = { ...first.names, ...program };
  const kustomization = renamed(template.get(KUSTOMIZATION) ?? '', names);
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
  const source = renamed(CRD_PATH, names);
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

function renamedFiles(
  template: ProjectFiles,
  paths: readonly string[],
  names: KindNames & ProgramNames & Partial<ProjectNames>,
): [path: string, text: string][] {
  return paths.map((path) => {
    const text = template.get(path);
    if (text === undefined) throw new Error(`The template does not contain ${path}`);
    // The component of a controller, for events and field managers, has the name of the kind.
    const component = path.startsWith('src/controllers/') ? `${names.kebab}-controller` : undefined;
    return [renamed(path, names), renamed(text, { ...names, program: component ?? names.program })];
  });
}

/** Replaces the names of the template that are given. */
function renamed(text: string, names: Partial<ProjectNames>): string {
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
    `import { ${camel}Controller } from './controllers/${kebab}.ts';`,
    `import { ${constant} } from './${folder}/${kebab}.ts';`,
  ]);
}

/** @throws {RangeError} if a program does not have exactly one list of controllers */
function placeOfControllers(text: string, what: string) {
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

/** Returns a module with further imports, after the others. */
export function withImports(text: string, lines: readonly string[]): string {
  const last = [...text.matchAll(/^import\b[^;]*;/gm)].at(-1);
  const added = lines.join('\n');
  if (!last) return `${added}\n${text}`;
  const at = last.index + last[0].length;
  return `${text.slice(0, at)}\n${added}${text.slice(at)}`;
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
