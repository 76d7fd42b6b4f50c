import { generateModules, LIBRARY_MODULES } from './generate-modules.ts';
import type { KindNames } from './kind-names.ts';

/** The files of a project by their paths. */
export type ProjectFiles = ReadonlyMap<string, string>;

/** The names in the template. They are all different, so that each can be replaced separately. */
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

/** Files of the template, without the types, which are generated. */
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

/** Not part of the template, because npm packages cannot contain a file with this name. */
const GIT_IGNORE = 'node_modules/\ndev.kubeconfig\n';

/**
 * Creates the project for a new kind from the template, which is a tested example, by replacing its names.
 *
 * @param template the files at `TEMPLATE_PATHS`
 * @param dependency the version of this package: `^0.1.0`, `file:/tmp/package.tgz`
 * @throws {RangeError} if the kind has the name of another identifier in the project
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
    if (text === undefined) throw new Error(`The template does not contain ${path}`);
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
  const replacements = new Map<string, string>(
    FORMS.map((form) => [TEMPLATE_NAMES[form], names[form]] as const),
  );
  return text.replaceAll(
    /StaticSite|staticSite|static-site|STATIC_SITES|staticsites|staticsite|example\.com/g,
    (name) => replacements.get(name) ?? name,
  );
}

function withDependency(manifest: string, dependency: string): string {
  const line = `"crd-controller": ${JSON.stringify(dependency)}`;
  return manifest.replace(/"crd-controller": "[^"]*"/, () => line);
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
