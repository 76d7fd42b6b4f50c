import { generateModules, LIBRARY_MODULES } from './generate-modules.ts';
import type { KindNames } from './kind-names.ts';

/** Text of a file by its path in its project. */
export type ProjectFiles = ReadonlyMap<string, string>;

/** What the kind of the template is called. No two of these can be taken for each other. */
const TEMPLATE_NAMES: KindNames = {
  kind: 'StaticSite',
  camel: 'staticSite',
  kebab: 'static-site',
  constant: 'STATIC_SITES',
  singular: 'staticsite',
  plural: 'staticsites',
  group: 'example.com',
};

const FORMS = ['kind', 'camel', 'kebab', 'constant', 'singular', 'plural', 'group'] as const;

const CRD_PATH = 'crds/staticsites.example.com.yaml';

/** What is taken of the template: its types are generated anew. */
export const TEMPLATE_PATHS: readonly string[] = [
  'README.md',
  CRD_PATH,
  'package.json',
  'samples/static-site.yaml',
  'src/controller.ts',
  'src/dev.ts',
  'src/main.ts',
  'test/controller.test.ts',
  'tsconfig.json',
];

/** Not part of the template: packages cannot hold a file of this name. */
const GIT_IGNORE = 'node_modules/\ndev.kubeconfig\n';

/**
 * The project for a new kind: the template, which is an example that runs and is tested, in other
 * words.
 *
 * @param template what is at `TEMPLATE_PATHS`
 * @param dependency by which the project finds this package: `^0.1.0`, `file:/tmp/package.tgz`
 * @throws {RangeError} if the kind is called like something else that the project names
 */
export function scaffold(
  template: ProjectFiles,
  names: KindNames,
  dependency: string,
): ProjectFiles {
  requireFreeNames(template, names);
  const files = new Map<string, string>();
  for (const path of TEMPLATE_PATHS) {
    const text = template.get(path);
    if (text === undefined) throw new Error(`The template has no ${path}`);
    files.set(renamed(path, names), renamed(text, names));
  }
  const source = renamed(CRD_PATH, names);
  const modules = generateModules([{ source, text: files.get(source) ?? '' }], {
    command: '`crd-controller generate`',
    modules: LIBRARY_MODULES,
  });
  for (const { fileName, text } of modules) files.set(`src/generated/${fileName}`, text);
  files.set('package.json', withDependency(files.get('package.json') ?? '', dependency));
  files.set('.gitignore', GIT_IGNORE);
  return files;
}

function renamed(text: string, names: KindNames): string {
  const wanted = new Map<string, string>(
    FORMS.map((form) => [TEMPLATE_NAMES[form], names[form]] as const),
  );
  return text.replaceAll(
    /StaticSite|staticSite|static-site|STATIC_SITES|staticsites|staticsite|example\.com/g,
    (name) => wanted.get(name) ?? name,
  );
}

function withDependency(manifest: string, dependency: string): string {
  const line = `"crd-controller": ${JSON.stringify(dependency)}`;
  return manifest.replace(/"crd-controller": "[^"]*"/, () => line);
}

/** What the code of the template names besides its kind must not be what the kind is called. */
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
    throw new RangeError(`KIND must not be ${kind}: in the code, ${clash} is something else`);
  }
}
