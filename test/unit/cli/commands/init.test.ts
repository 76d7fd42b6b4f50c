import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { dependency, init } from '../../../../src/cli/commands/init.ts';
import { UsageError } from '../../../../src/cli/errors.ts';
import { manifest } from '../../../../src/cli/package.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/06-library/static-site');

function newProject(context: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'init-'));
  context.after(() => rmSync(dir, { recursive: true, force: true }));
  const lines: string[] = [];
  return {
    dir,
    lines,
    run: (operands: readonly string[], group = 'example.com', into = dir, plural = '') =>
      init(operands, { group, plural, dir: into } as Parameters<typeof init>[1], {
        print: (line) => lines.push(line),
      }),
    files: () =>
      readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
        .toSorted(),
    read: (path: string) => readFileSync(join(dir, path), 'utf8'),
  };
}

test('creates the example for the kind of the example', async (context) => {
  const { files, read, run } = newProject(context);
  assert.equal(await run(['StaticSite']), 0);
  const own = files().filter((path) => path !== '.gitignore');
  assert.deepEqual(
    own.map((path) => [path, read(path)]),
    own.map((path) => [path, readFileSync(join(EXAMPLE, path), 'utf8')]),
  );
  assert.equal(own.length, 10);
  assert.match(read('.gitignore'), /^node_modules\/$/m);
});

test('replaces all names of the example for another kind', async (context) => {
  const { files, lines, read, run } = newProject(context);
  assert.equal(await run(['HTTPPolicy'], 'net.acme.org'), 0);
  assert.deepEqual(files(), [
    '.gitignore',
    'README.md',
    'crds/httppolicies.net.acme.org.yaml',
    'package.json',
    'samples/http-policy.yaml',
    'src/controller.ts',
    'src/dev.ts',
    'src/generated/http-policy.ts',
    'src/main.ts',
    'test/controller.test.ts',
    'tsconfig.json',
  ]);
  for (const path of files()) assert.doesNotMatch(read(path), /static.?site|example\.com/i, path);
  assert.match(read('src/controller.ts'), /import \{ HTTP_POLICIES \} from/);
  assert.match(read('src/generated/http-policy.ts'), /HTTP_POLICIES: Resource<HTTPPolicy>/);
  assert.match(read('samples/http-policy.yaml'), /^apiVersion: net\.acme\.org\/v1alpha1$/m);
  const { name, dependencies } = JSON.parse(read('package.json'));
  assert.equal(name, 'http-policy-controller');
  assert.equal(dependencies['crd-controller'], `^${manifest().version}`);
  assert.match(lines.at(-1) ?? '', /npm install\n {2}npm test/);
});

test('uses the plural of --plural', async (context) => {
  const { dir, files, read, run } = newProject(context);
  assert.equal(await run(['Person'], 'example.com', dir, 'people'), 0);
  assert.ok(files().includes('crds/people.example.com.yaml'));
  assert.match(read('crds/people.example.com.yaml'), /plural: people\n/);
  assert.match(read('src/controller.ts'), /import \{ PEOPLE \} from/);
});

test('writes nothing if one file exists', async (context) => {
  const { dir, files, run } = newProject(context);
  writeFileSync(join(dir, 'tsconfig.json'), 'mine');
  await assert.rejects(
    run(['StaticSite']),
    /^UsageError: Existing files are not overwritten.*tsconfig\.json/,
  );
  assert.deepEqual(files(), ['tsconfig.json']);
});

test('completes a package.json that npm install wrote', async (context) => {
  const { dir, read, run } = newProject(context);
  const installed = { 'crd-controller': 'file:../packed.tgz', left: '^1.0.0' };
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ dependencies: installed }));
  assert.equal(await run(['StaticSite']), 0);
  const { dependencies, ...rest } = JSON.parse(read('package.json'));
  const example = JSON.parse(readFileSync(join(EXAMPLE, 'package.json'), 'utf8'));
  assert.deepEqual({ ...rest, dependencies: example.dependencies }, example);
  assert.deepEqual(dependencies, { ...example.dependencies, ...installed });
});

test('does not change any other package.json', async (context) => {
  const { dir, files, read, run } = newProject(context);
  for (const text of ['{"dependencies":{},"type":"commonjs"}', '{"dependencies":[]}', '{', '[]']) {
    writeFileSync(join(dir, 'package.json'), text);
    await assert.rejects(
      run(['StaticSite']),
      /^UsageError: Existing files are not overwritten.*package\.json/,
    );
    assert.equal(read('package.json'), text);
  }
  assert.deepEqual(files(), ['package.json']);
});

test('depends on the file if the package was installed from a file', async (context) => {
  const { dir } = newProject(context);
  const modules = join(dir, 'node_modules');
  mkdirSync(join(modules, 'crd-controller'), { recursive: true });
  writeFileSync(join(modules, 'crd-controller/package.json'), '{"version":"1.2.3"}');
  const root = pathToFileURL(join(modules, 'crd-controller/'));
  const lock = (resolved?: string) =>
    writeFileSync(
      join(modules, '.package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/crd-controller': { resolved } } }),
    );
  assert.equal(await dependency(root), '^1.2.3');
  lock('https://example.com/crd-controller-1.2.3.tgz');
  assert.equal(await dependency(root), '^1.2.3');
  lock('file:packed.tgz');
  assert.equal(await dependency(root), '^1.2.3', 'the file is no longer there');
  writeFileSync(join(dir, 'packed.tgz'), '');
  assert.equal(await dependency(root), `file:${join(dir, 'packed.tgz')}`);
});

test('rejects invalid names, with the valid form', async (context) => {
  const { dir, run } = newProject(context);
  const into = join(dir, 'new');
  const refusals: [operands: string[], group: string, message: RegExp][] = [
    [[], 'example.com', /requires a KIND/],
    [['A', 'B'], 'example.com', /one KIND/],
    [['staticSite'], 'example.com', /PascalCase/],
    [['Static-Site'], 'example.com', /PascalCase/],
    [["X';evil()"], 'example.com', /PascalCase/],
    [['../Up'], 'example.com', /PascalCase/],
    [['A'.repeat(63)], 'example.com', /too long/],
    [['No'], 'example.com', /YAML does not parse/],
    [
      ['Deployment'],
      'example.com',
      /the generated code uses the name Deployment for something else/,
    ],
    [['Pod'], 'example.com', /the generated code uses the name PODS for something else/],
    [['Site'], 'Example.com', /DNS name/],
    [['Site'], 'example', /DNS name/],
    [['Site'], '-a.example.com', /DNS name/],
    [['Site'], `${'a'.repeat(64)}.com`, /DNS name/],
    [['Site'], 'apps.k8s.io', /belongs to the Kubernetes project/],
    [['Site'], 'kubernetes.io', /belongs to the Kubernetes project/],
  ];
  for (const [operands, group, message] of refusals) {
    await assert.rejects(run(operands, group, into), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, message);
      return true;
    });
  }
  assert.equal(existsSync(into), false);
});
