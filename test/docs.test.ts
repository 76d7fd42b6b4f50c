import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';
import '../hack/import-from-source.ts';
import { KUBERNETES_VERSIONS } from '../hack/envtest/binaries.ts';
import { NEWEST_MINOR, OLDEST_MINOR } from '../src/api/supported-versions.ts';
import { CHAPTERS } from './support/book.ts';
import { optionsTable } from './support/options-table.ts';
import { CONFIG_MAPS, NAMESPACES } from '../src/api/builtin.ts';
import { COMPILE_CACHE } from './support/compile-cache.ts';
import { startControlPlane } from './support/control-plane.ts';
import { page, PAGES, tableRows } from './support/docs.ts';
import { killAll, Program } from './support/program.ts';
import { RUN_OPTIONS } from './support/own-program.ts';

const ROOT = join(import.meta.dirname, '..');

await import('./docs/greeting-controller.test.ts');

/** Maximum number of words in the README, including code. */
const README_WORDS = 1200;

test('the README has at most 1,200 words', () => {
  const words = page('README.md').split(/\s+/).length;
  assert.ok(words <= README_WORDS, `it has ${words}; move text to docs/`);
});

test('the table of options is generated from the flags', () => {
  assert.ok(
    page('docs/running.md').includes(optionsTable(RUN_OPTIONS).trim()),
    'copy it from optionsTable() in test/support/options-table.ts into docs/running.md',
  );
});

test('the compatibility page and `check` have the tested Kubernetes releases', () => {
  const listed = tableRows(page('docs/compatibility.md'), '# Compatibility').flatMap(
    (row) => /^\| (1\.\d+\.\d+) /.exec(row)?.[1] ?? [],
  );
  assert.deepEqual(listed, [...KUBERNETES_VERSIONS]);
  const minors = KUBERNETES_VERSIONS.map((version) => Number(version.split('.')[1]));
  assert.deepEqual([Math.max(...minors), Math.min(...minors)], [NEWEST_MINOR, OLDEST_MINOR]);
});

/** The examples of the doc comments, generated. */
const API_EXAMPLES = 'api-examples.ts';

test('every TypeScript block of the pages is compiled as a file of test/docs', () => {
  const folder = join(import.meta.dirname, 'docs');
  const files = new Map(
    readdirSync(folder).map((name) => [readFileSync(join(folder, name), 'utf8'), name]),
  );
  const used = new Set<string>();
  for (const path of PAGES) {
    for (const [, block = ''] of page(path).matchAll(/^```ts\n(.*?)^```$/gms)) {
      const file = files.get(block);
      assert.ok(file, `${path}: no file of test/docs has this code:\n${block}`);
      used.add(file);
    }
  }
  used.add(API_EXAMPLES);
  assert.deepEqual([...used].toSorted(), [...files.values()].toSorted());
});

/** Ends its process. */
const ENDS_PROCESS = new Set(['library-program.ts']);

describe('An example of the guides prints what its comments say', () => {
  const folder = join(import.meta.dirname, 'docs');
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    const lines = readFileSync(file, 'utf8').matchAll(/; \/\/ prints: (.*)$/gm);
    const expected = Array.from(lines, ([, line = '']) => line);
    if (expected.length === 0) continue;
    test(name, async (t) => {
      if (ENDS_PROCESS.has(name)) {
        const { code, stdout, stderr } = await runScript(file);
        assert.deepEqual([code, stdout.trimEnd().split('\n'), stderr], [0, expected, '']);
        return;
      }
      const printed: string[] = [];
      t.mock.method(console, 'log', (...values: unknown[]) => printed.push(format(...values)));
      const { mock } = t.mock.method(process.stderr, 'write', () => true);
      await import(pathToFileURL(file).href);
      assert.deepEqual([printed.join('\n').split('\n'), mock.calls], [expected, []]);
    });
  }
});

/** Runs a script that imports the package by its name. */
async function runScript(...args: readonly string[]) {
  return new Program(
    process.execPath,
    ['--import', join(ROOT, 'hack/import-from-source.ts'), ...args],
    { NODE_COMPILE_CACHE: COMPILE_CACHE },
  ).ended();
}

test('each chapter of the book ends with a checkpoint that has tests, and leads to the next one', () => {
  for (const [index, chapter] of CHAPTERS.entries()) {
    const [, checkpoint = ''] = page(`docs/book/${chapter}`).split('## Checkpoint');
    assert.match(checkpoint, /^\$ npm test$/m, chapter);
    const next = CHAPTERS[index + 1];
    if (next !== undefined) assert.match(checkpoint, new RegExp(`Next: .*\\(${next}\\)`));
  }
});

test('the program of the README keeps its objects, and stops at SIGTERM', async () => {
  const plane = await startControlPlane();
  const program = new Program(
    process.execPath,
    ['--import', join(ROOT, 'hack/import-from-source.ts'), join(ROOT, 'test/docs/controller.ts')],
    { NODE_COMPILE_CACHE: COMPILE_CACHE, KUBECONFIG: plane.kubeconfigPath },
  );
  try {
    const metadata = { name: 'blue', labels: { team: 'blue' } };
    await plane.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    const { client } = plane;
    const events = await client.watch(CONFIG_MAPS, { namespace: 'blue' });
    for await (const { type } of events) if (type === 'added') break;
    program.child.kill('SIGTERM');
    const { code, stderr } = await program.ended();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /"Starting controller" controller="team"/);
  } finally {
    await killAll([program]);
    await plane.close();
  }
});

test('every entry point of the package has an example that runs', () => {
  const { exports } = JSON.parse(page('package.json')) as { readonly exports: object };
  const examples = readdirSync(join(import.meta.dirname, 'docs'))
    .map((name) => readFileSync(join(import.meta.dirname, 'docs', name), 'utf8'))
    .filter((text) => text.includes('// prints: '))
    .join('\n');
  const missing = Object.keys(exports)
    .filter((path) => !path.endsWith('.json'))
    .map((path) => path.replace('.', 'crd-controller'))
    .filter((name) => !examples.includes(`from '${name}'`));
  assert.deepEqual(missing, []);
});

test('every entry point states its stability, and the doc comments have more than 20 examples', () => {
  const entries = globSync('src/*.ts', { cwd: ROOT });
  const unstated = entries.filter(
    (path) => !/^ \* @(?:public|experimental)\n \* @module$/m.test(page(path)),
  );
  assert.deepEqual(unstated, []);
  const examples = page(`test/docs/${API_EXAMPLES}`).match(/^\/\/ src/gm) ?? [];
  assert.ok(examples.length > 20, `${examples.length} examples`);
});

describe('Links', () => {
  const linked = [
    ...PAGES,
    'src/README.md',
    ...['.github', '.github/decisions'].flatMap((folder) => pagesIn(folder)),
    ...globSync('examples/**/README.md', { cwd: ROOT }),
  ];
  for (const path of linked) {
    test(`in ${path} have existing files and headings as targets`, () => {
      assert.deepEqual(brokenLinks(path), []);
    });
  }

  test('lead from the README to every guide', () => {
    const reachable = new Set(['README.md']);
    for (const path of reachable) {
      for (const { target } of linksOf(path)) {
        if (target.startsWith('docs/')) reachable.add(target);
      }
    }
    assert.deepEqual(
      PAGES.filter((path) => !reachable.has(path)),
      [],
    );
  });
});

function pagesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`);
}

interface Link {
  readonly text: string;
  /** Path in the repository. */
  readonly target: string;
  /** Anchor of a heading, or empty. */
  readonly anchor: string;
}

/** Returns the links to files of the repository; external links are not checked. */
function linksOf(path: string): Link[] {
  const prose = page(path).replaceAll(/^```.*?^```/gms, '');
  return Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), ([, text = '']) => text)
    .filter((text) => !/^[a-z]+:/.test(text))
    .map((text) => {
      const [file = '', anchor = ''] = text.split('#');
      const target = file === '' ? path : relative(ROOT, join(ROOT, dirname(path), file));
      return { text, target, anchor };
    });
}

function brokenLinks(path: string): string[] {
  return linksOf(path)
    .filter(({ target, anchor }) => {
      const file = join(ROOT, target);
      if (!existsSync(file)) return true;
      return anchor !== '' && (statSync(file).isDirectory() || !anchorsOf(target).has(anchor));
    })
    .map(({ text }) => text);
}

/** Returns the anchors of the headings of a page, in GitHub's form. */
function anchorsOf(path: string): Set<string> {
  return new Set(
    Array.from(page(path).matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}

/** Files of the source by path. */
const SOURCES = new Map(
  globSync('src/**/*.ts', { cwd: ROOT })
    .filter((path) => !/generated\/|apiserver\/builtin\//.test(path))
    .map((path) => [path, page(path)]),
);

/** Constants by name, and the initial values of variables and options by name. */
const constants = new Map<string, string>();
const initialValues = new Map<string, { readonly path: string; readonly expression: string }[]>();
for (const [path, text] of SOURCES) {
  for (const [, name = '', value = ''] of text.matchAll(
    /\bconst ([A-Z][A-Z_\d]+)(?:: \w+)? = ([^;]+);/g,
  )) {
    constants.set(`${path} ${name}`, value);
    if (!constants.has(name)) constants.set(name, value);
  }
  for (const [, name = '', expression = ''] of text.matchAll(
    /(?<![#\w])(\w+)(?:: \w+)? (?:=|\?\?) (?=([^,;})\n]+))/g,
  )) {
    const values = initialValues.get(name);
    if (values) values.push({ path, expression });
    else initialValues.set(name, [{ path, expression }]);
  }
}

/** Returns the value of a literal, a constant, or a product of them, as text. */
function valueOf(expression: string, path: string): string {
  const factors = expression.split(' * ').map((factor) => {
    const [, name] = /^([A-Z][A-Z_\d]+)$/.exec(factor) ?? [];
    if (name === undefined) return factor.replaceAll('_', '');
    const value = constants.get(`${path} ${name}`) ?? constants.get(name);
    return value === undefined ? factor : valueOf(value, path);
  });
  const product = factors.reduce((all, factor) => all * Number(factor), 1);
  return Number.isNaN(product) ? factors.join(' * ') : String(product);
}

/** Returns the documented default of an option, if it is a value: `5`, `2 days`, `'none'`. */
function documentedValue(text: string): string | undefined {
  const [, value = '', days] = /^(-?\d[\d_.]*|true|'[^']*')( days)?(?=[:,;.]|$)/.exec(text) ?? [];
  if (value === '') return undefined;
  return valueOf(days ? `${value} * 86_400_000` : value, '');
}

/** Options whose default is that of the API server, or is not an initial value. */
const OTHER_DEFAULTS = new Set([
  'failurePolicy',
  'sideEffects',
  'reason',
  'listType',
  'mapType',
  'keyType',
  'eventApiVersion',
  'deferMs',
  'keepAliveMs',
  'unconditionalUpdate',
]);

test('each option has the default of its doc comment', () => {
  const options = Array.from(SOURCES).flatMap(([path, text]) =>
    Array.from(
      text.matchAll(
        /@default ([^\n]*?)(?: \*\/\s*|\n(?:(?!\*\/)[^])*?\*\/\s*)(?:readonly )?(\w+)\?:/g,
      ),
      ([, documented = '', name = '']) => ({ path, name, value: documentedValue(documented) }),
    ).filter(({ name, value }) => value !== undefined && !OTHER_DEFAULTS.has(name)),
  );
  assert.ok(options.length > 100, `only ${options.length} defaults found`);
  const wrong = options.filter(({ path, name, value }) => {
    const folder = path.split('/').slice(0, 2).join('/');
    const used = (initialValues.get(name) ?? []).map(({ path: each, expression }) => ({
      isNear: each.startsWith(folder),
      value: valueOf(expression.split(' ?? ').at(-1)?.trim() ?? '', each),
    }));
    const near = used.filter(({ isNear }) => isNear);
    return !(near.length > 0 ? near : used).some((each) => each.value === value);
  });
  assert.deepEqual(
    wrong.map(({ path, name, value }) => `${path} ${name} ${value}`),
    [],
  );
});
