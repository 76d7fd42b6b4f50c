import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { test } from 'node:test';

const src = join(import.meta.dirname, '..', 'src');

/** Folders that each folder and public entry point may import besides itself. */
const mayImport: Record<string, readonly string[]> = {
  util: [],
  metrics: ['util'],
  api: ['util'],
  workqueue: ['util', 'metrics'],
  client: ['util', 'metrics', 'api'],
  cache: ['util', 'metrics', 'api', 'client'],
  record: ['util', 'metrics', 'api', 'client'],
  leaderelection: ['util', 'metrics', 'api', 'client'],
  sharding: ['util', 'metrics', 'api', 'client', 'leaderelection'],
  serving: ['util', 'metrics', 'api', 'workqueue', 'client', 'cache'],
  webhook: ['util', 'metrics', 'api', 'client', 'cache', 'serving'],
  manager: [
    'util',
    'metrics',
    'api',
    'workqueue',
    'client',
    'cache',
    'record',
    'leaderelection',
    'sharding',
    'serving',
    'webhook',
  ],
  cel: ['util', 'api'],
  apiserver: ['util', 'api', 'metrics', 'cel'],
  property: ['util', 'api', 'cel', 'apiserver', 'webhook'],
  codegen: ['util', 'api'],
  crd: ['util', 'api'],
};
mayImport['replay'] = [...mayImport['manager']!, 'manager'];
mayImport['index.ts'] = [...mayImport['replay'], 'replay'];
mayImport['controllers'] = mayImport['replay'];
mayImport['cluster'] = mayImport['replay'];
mayImport['explore'] = [...mayImport['replay'], 'apiserver', 'cluster', 'replay'];
mayImport['testing.ts'] = [
  'util',
  'api',
  'apiserver',
  'cluster',
  'client',
  'codegen',
  'explore',
  'property',
  'replay',
  'webhook',
];
mayImport['controllers.ts'] = ['api', 'controllers'];
mayImport['program.ts'] = ['cli'];
mayImport['schema.ts'] = ['crd'];
/** Topic entry points re-export parts of the library. */
for (const name of globSync('*.ts', { cwd: src })) {
  mayImport[name] ??= mayImport['index.ts'];
}
mayImport['cli'] = [
  ...mayImport['index.ts'],
  'controllers',
  'cluster',
  'apiserver',
  'codegen',
  'crd',
];

/** Packages with the folder or file that may import them. */
const packageImporters: Record<string, readonly string[]> = {
  'p-queue': ['workqueue/worker-pool.ts'],
  'prom-client': ['metrics/'],
  preact: ['serving/page/browser/'],
  esbuild: ['serving/page/assets.ts'],
  '@opentelemetry/api': ['cli/commands/run.ts'],
  yargs: ['cli/'],
  pino: ['cli/logs/logging.ts'],
  yaml: ['client/', 'codegen/', 'cli/'],
  'js-yaml': [
    'apiserver/discovery/openapi-protobuf.ts',
    'apiserver/http/yaml-pieces.ts',
    'apiserver/json/yaml-text.ts',
    'apiserver/request/request-body.ts',
    'util/go-yaml.ts',
  ],
  '@kubernetes/client-node': ['client/kube-config/'],
  re2js: ['cel/values/pattern.ts'],
  '@marcbachmann/cel-js': ['cel/'],
};

const imports =
  /(?:^|\n)\s*(?:import|export)\s[^'"`;]*?from\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s+['"]([^'"]+)['"]/g;

interface Import {
  readonly file: string;
  readonly specifier: string;
}

function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(imports)].map((match) => ({
    file,
    specifier: match[1] ?? match[2] ?? match[3]!,
  }));
}

/** Returns the package of an import: `@scope/name` of `@scope/name/lib/file.js`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function violations(all: readonly Import[]): string[] {
  return all.flatMap(({ file, specifier }) => {
    const from = folderOf(file);
    if (specifier.startsWith('.')) {
      const target = normalize(join(dirname(file), specifier));
      const to = folderOf(target);
      if (to === from) {
        const [, controller] = file.split('/');
        const [, other] = target.split('/');
        const isForbidden =
          from === 'controllers' &&
          file.split('/').length > 2 &&
          target.split('/').length > 2 &&
          controller !== other;
        return isForbidden ? [`${file}: controller ${controller} may not import ${other}`] : [];
      }
      return mayImport[from]?.includes(to) ? [] : [`${file}: ${from} may not import ${to}`];
    }
    if (specifier.startsWith('node:')) return [];
    const name = packageOf(specifier);
    return packageImporters[name]?.some((importer) => file.startsWith(importer))
      ? []
      : [`${file}: ${name} may not be imported here`];
  });
}

function folderOf(file: string): string {
  return file.split('/')[0]!;
}

const importsOfSource: readonly Import[] = globSync('**/*.{ts,tsx}', { cwd: src }).flatMap((file) =>
  importsOf(relative('.', file), readFileSync(join(src, file), 'utf8')),
);

test('imports in src follow the layering rule', () => {
  const all = importsOfSource;
  assert.ok(all.length > 20, 'the imports were found');
  assert.deepEqual(violations(all), []);
});

/** Packages that the import of each entry point loads; none for the others. */
const loadedPackages: Record<string, readonly string[]> = {
  'apply.ts': ['yaml'],
  'controllers.ts': ['p-queue'],
  'program.ts': ['pino', 'yargs'],
  'index.ts': ['p-queue', 'prom-client'],
  'metrics.ts': ['prom-client'],
  'testing.ts': ['@marcbachmann/cel-js', 'js-yaml', 'p-queue', 'prom-client', 're2js', 'yaml'],
  'workqueue.ts': ['p-queue'],
};

/** Imports of types, and imports that are evaluated later. */
const notLoaded = /(?:^|\n)\s*(?:import|export) type\s[^;]*;|\bimport\([^)]*\)/g;

/** Returns the packages that the import of a file of the source loads, directly or through other files. */
function packagesOf(entry: string): string[] {
  const files = new Set([entry]);
  const packages = new Set<string>();
  for (const file of files) {
    const text = readFileSync(join(src, file), 'utf8').replaceAll(notLoaded, '');
    for (const { specifier } of importsOf(file, text)) {
      if (specifier.startsWith('.')) files.add(normalize(join(dirname(file), specifier)));
      else if (!specifier.startsWith('node:')) packages.add(packageOf(specifier));
    }
  }
  return [...packages].toSorted();
}

test('an entry point loads only the packages that its users need', () => {
  const entries = globSync('*.ts', { cwd: src }).toSorted();
  const loaded = entries.map((entry) => [entry, packagesOf(entry)] as const);
  const wanted = entries.map((entry) => [entry, loadedPackages[entry] ?? []] as const);
  assert.deepEqual(Object.fromEntries(loaded), Object.fromEntries(wanted));
});

test('no file imports the HTTP modules of Node.js, which are loaded on first use', () => {
  const files = globSync('**/*.ts', { cwd: src }).filter((file) =>
    /\bfrom 'node:http(s|2)?'/.test(
      readFileSync(join(src, file), 'utf8').replaceAll(notLoaded, ''),
    ),
  );
  assert.deepEqual(files, [], 'import util/node-http.ts');
});

/** Returns the groups of files that import each other, directly or through others; types count too. */
function circles(all: readonly Import[]): string[] {
  const targets = new Map<string, Set<string>>();
  for (const { file, specifier } of all) {
    if (!specifier.startsWith('.')) continue;
    const target = normalize(join(dirname(file), specifier));
    targets.set(file, (targets.get(file) ?? new Set()).add(target));
  }
  const reach = new Map<string, Set<string>>();
  for (const file of targets.keys()) {
    const reached = new Set(targets.get(file));
    // Files that are added during the iteration are visited, too.
    for (const from of reached) for (const target of targets.get(from) ?? []) reached.add(target);
    reach.set(file, reached);
  }
  const groups = [...reach]
    .filter(([file, reached]) => reached.has(file))
    .map(([file, reached]) =>
      [...reached]
        .filter((other) => reach.get(other)?.has(file))
        .toSorted()
        .join(' '),
    );
  return [...new Set(groups)].toSorted();
}

/** Folders of the API server, each of which may import those before it. Its root may import all. */
const API_SERVER_LAYERS =
  'generated json schema objects storage protobuf patch table request managedfields strategy auth builtin crd admission operations controllers discovery audit http';

/** Returns a file's folder at a level, from 1. */
function folderAt(file: string, level: number): string {
  return dirname(file).split('/').slice(0, level).join('/');
}

/**
 * Returns the subfolder of a file in its folder at a level, '(root)' if it has none. Each folder with generated files
 * counts alone.
 */
function subfolderOf(file: string, level: number): string {
  const [name, ...rest] = dirname(file).split('/').slice(level);
  return name === 'generated' ? [name, ...rest].join('/') : (name ?? '(root)');
}

/** Returns the imports between subfolders, as imports of `FOLDER/SUBFOLDER` from `FOLDER/SUBFOLDER`. */
function importsOfSubfolders(all: readonly Import[], level: number): Import[] {
  const found = all
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ file, specifier }) => ({ file, target: normalize(join(dirname(file), specifier)) }))
    .filter(
      ({ file, target }) =>
        target.includes('/') && folderAt(file, level) === folderAt(target, level),
    )
    .map(
      ({ file, target }) =>
        [subfolderOf(file, level), subfolderOf(target, level), folderAt(file, level)] as const,
    )
    .filter(([from, to]) => from !== to)
    .map(([from, to, folder]) => ({ file: `${folder}/${from}`, specifier: `./${to}` }));
  return [...new Map(found.map((each) => [`${each.file} ${each.specifier}`, each])).values()];
}

test('no subfolders of a folder import each other', () => {
  const all = importsOfSource;
  assert.deepEqual(circles(importsOfSubfolders(all, 1)), []);
  const ofKinds = all.filter(({ file }) => file.startsWith('apiserver/builtin/'));
  assert.deepEqual(circles(importsOfSubfolders(ofKinds, 2)), []);
  const planted = [
    ...importsOf('cache/a.ts', `import { b } from './b/b.ts';`),
    ...importsOf('cache/b/b.ts', `import type { C } from '../c/c.ts';`),
    ...importsOf('cache/c/c.ts', `import { a } from '../a.ts';`),
  ];
  assert.deepEqual(circles(importsOfSubfolders(planted, 1)), ['cache/(root) cache/b cache/c']);
  const deeper = [
    ...importsOf('cache/b/c/c.ts', `import { d } from '../d/d.ts';`),
    ...importsOf('cache/b/d/d.ts', `import { c } from '../c/c.ts';`),
  ];
  assert.deepEqual(circles(importsOfSubfolders(deeper, 2)), ['cache/b/c cache/b/d']);
});

/** Folders of the cluster controllers, likewise. */
const CLUSTER_LAYERS = 'support nodes shell kubelet workloads services volumes lifecycle';

for (const [top, layers] of [
  ['apiserver', API_SERVER_LAYERS],
  ['cluster', CLUSTER_LAYERS],
] as const) {
  test(`the layers of ${top} import only those below them`, () => {
    const order = layers.split(' ');
    const files = globSync('*/**/*.ts', { cwd: join(src, top) });
    const folders = [...new Set(files.map((file) => folderOf(file)))];
    assert.deepEqual(folders.toSorted(), order.toSorted());
    const upward = importsOfSource
      .filter(({ file, specifier }) => file.startsWith(`${top}/`) && specifier.startsWith('.'))
      .filter(({ file, specifier }) => {
        const [folder, to = ''] = normalize(join(dirname(file), specifier)).split('/');
        const from = file.split('/')[1] ?? '';
        return folder === top && order.includes(from) && order.indexOf(to) > order.indexOf(from);
      })
      .map(({ file, specifier }) => `${file}: ${specifier}`);
    assert.deepEqual(upward, []);
  });
}

test('src/README.md lists the folders, and the layers in their order', () => {
  const text = readFileSync(join(src, 'README.md'), 'utf8');
  const tables = text.split(/^#+ /m).map((section) => ({
    title: section.split('\n')[0],
    folders: [...section.matchAll(/^\| `(\w+)\/` /gm)].map(([, folder]) => folder),
  }));
  const foldersOf = (title: string) => tables.find((table) => table.title === title)?.folders;
  const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual(foldersOf('Source map')?.toSorted(), folders.map(({ name }) => name).toSorted());
  assert.deepEqual(foldersOf('Layers of the API server'), API_SERVER_LAYERS.split(' '));
  assert.deepEqual(foldersOf('Layers of the cluster controllers'), CLUSTER_LAYERS.split(' '));
});

test('no files import each other', () => {
  assert.deepEqual(circles(importsOfSource), []);
});

test('a circle of imports is detected, over several files and for types', () => {
  const planted = [
    ...importsOf('cache/a.ts', `import { b } from './b.ts';`),
    ...importsOf('cache/b.ts', `import type { C } from '../client/c.ts';`),
    ...importsOf('client/c.ts', `export { a } from '../cache/a.ts';`),
    ...importsOf('client/d.ts', `import { a } from '../cache/a.ts';`),
  ];
  assert.deepEqual(circles(planted), ['cache/a.ts cache/b.ts client/c.ts']);
});

const declarations =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|class|interface|type|const|enum) (\w+)/gm;

test('exported names are unique', () => {
  const files = globSync('**/*.{ts,tsx}', { cwd: src }).filter(
    (file) => !file.includes('generated'),
  );
  const declared = files.flatMap((file) =>
    [...readFileSync(join(src, file), 'utf8').matchAll(declarations)].map(
      ([, name = '']) => [name, file] as const,
    ),
  );
  const several = [...Map.groupBy(declared, ([name]) => name)].filter(
    ([, all]) => new Set(all.map(([, file]) => file)).size > 1,
  );
  assert.deepEqual(several, []);
});

test('violations of each kind are detected', () => {
  const planted = [
    ...importsOf('util/clock.ts', `import { keyOf } from '../api/object-key.ts';`),
    ...importsOf('cache/indexer.ts', `import pino from 'pino';`),
    ...importsOf('controllers/foo/sync.ts', `export { x } from '../count/sync.ts';`),
    ...importsOf('apiserver/router.ts', `const c = await import('../client/client.ts');`),
  ];
  assert.deepEqual(violations(planted), [
    'util/clock.ts: util may not import api',
    'cache/indexer.ts: pino may not be imported here',
    'controllers/foo/sync.ts: controller foo may not import count',
    'apiserver/router.ts: apiserver may not import client',
  ]);
});

/** Folders that run on every platform with the globals of the web. */
const platformNeutral = [
  'api',
  'apiserver',
  'cache',
  'cel',
  'cluster',
  'controllers',
  'manager',
  'record',
  'workqueue',
];

/** Their outermost layers, which need Node.js: the network, the disk, certificates and the names of hosts. */
const needsNode = [
  'apiserver/api-server.ts',
  'apiserver/auth/client-certificates.ts',
  'apiserver/builtin/certificates/certificate-signing-request.ts',
  'apiserver/http/',
  'apiserver/storage/folder-lock.ts',
  'apiserver/storage/log-file.ts',
  'apiserver/storage/store-log.ts',
  'cluster/certificate-signer.ts',
  'manager/leader-election-defaults.ts',
];

/** Lines of comments, and comments at the end of a line. */
const comments = /^\s*(?:\/?\*|\/\/).*$|\s\/\/ .*$/gm;
const nodeModules = /['"]node:[\w/]+['"]/g;
const nodeGlobals =
  /(?<![\w.#$])(?:(?:Buffer|NodeJS|__dirname|__filename|setImmediate|clearImmediate)\b|process(?=[.?[]))/g;

function usesOfNode(file: string, text: string): string[] {
  const code = text.replaceAll(comments, '');
  const found = [...code.matchAll(nodeModules), ...code.matchAll(nodeGlobals)];
  return found.map(([use]) => `${file}: ${use}`);
}

test('only the outermost layers need Node.js', () => {
  const uses = platformNeutral.flatMap((folder) =>
    // Generated modules of the API server contain data, with text of all kinds.
    globSync(`${folder}/**/*.ts`, { cwd: src, exclude: ['apiserver/generated/**'] }).flatMap(
      (file) => usesOfNode(file, readFileSync(join(src, file), 'utf8')),
    ),
  );
  const isOutermost = (use: string) => needsNode.some((file) => use.startsWith(file));
  assert.deepEqual(
    uses.filter((use) => !isOutermost(use)),
    [],
  );
  const unused = needsNode.filter((file) => uses.every((use) => !use.startsWith(file)));
  assert.deepEqual(unused, [], 'files that no longer need Node.js: remove them from the list');
  const planted = `
import type { Socket } from 'node:net'; // of the process
/** The process, and its Buffer. */
const bytes = Buffer.from(process.env['A'] ?? '');
setImmediate(() => this.#process.stop(clearImmediate));`;
  assert.deepEqual(
    usesOfNode('a.ts', planted),
    ["'node:net'", 'Buffer', 'process', 'setImmediate', 'clearImmediate'].map(
      (use) => `a.ts: ${use}`,
    ),
  );
});

/**
 * Folders that handle lists of unbounded length. More than about 120,000 arguments of one call exceed the
 * stack.
 */
const unboundedLists = ['apiserver', 'cache', 'client', 'cluster'];

const spreads =
  /(?:\.(?:push|unshift|splice|toSpliced)|\bMath\.(?:max|min)|\.fromCharCode)\((?:[^()[\]{}.]|\.(?!\.\.)|\([^()]*\)|\[[^[\]]*\]|\{[^{}]*\})*\.\.\./g;

function spreadsIn(file: string, text: string): string[] {
  return [...text.matchAll(spreads)].map(([call]) => `${file}: ${call.replaceAll(/\s+/g, ' ')}`);
}

test('no list of unbounded length is spread into the arguments of a call', () => {
  const found = unboundedLists.flatMap((folder) =>
    globSync(`${folder}/**/*.ts`, { cwd: src }).flatMap((file) =>
      spreadsIn(file, readFileSync(join(src, file), 'utf8')),
    ),
  );
  assert.deepEqual(found, []);
  const planted = 'a.push(...b); c.splice(at(0), 1, ...d); Math.max(0, ...e.map(f)); g(...h)';
  assert.equal(spreadsIn('cache/planted.ts', planted).length, 3);
});

/** Unit tests of several files of their folder, or of files outside `src`. */
const OF_NO_FILE = new Set([
  'api/api',
  'api/patch-types',
  'api/text',
  'cli/klog-vectors',
  'cli/serving/every-page',
  'cli/user-roles',
  'client/kube-config/kubectl-forms',
  'client/kube-config/loaded-modules',
  'image/dockerfile',
  'image/sbom',
  'serving/page/browser/views',
  'table',
]);

test('a unit test has the path of the file that it tests, with words for a part of it', () => {
  const unit = join(import.meta.dirname, 'unit');
  const files = new Set(
    globSync('**/*.{ts,tsx}', { cwd: src }).map((file) => file.replace(/\.tsx?$/, '')),
  );
  const tests = globSync('**/*.test.ts', { cwd: unit }).map((file) =>
    file.replace(/(?:\.property)?(?:\.slow|\.memory)?\.test\.ts$/, ''),
  );
  const hasFile = (path: string): boolean =>
    files.has(path) || (/-[^/]*$/.test(path) && hasFile(path.replace(/-[^-/]*$/, '')));
  assert.deepEqual(
    tests.filter((path) => !hasFile(path) && !OF_NO_FILE.has(path)),
    [],
    'move it to the path of the file in src/',
  );
});
