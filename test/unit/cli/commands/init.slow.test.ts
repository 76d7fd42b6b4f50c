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
import { parse } from 'yaml';
import { generate } from '../../../../src/cli/commands/generate.ts';
import { dependency, init } from '../../../../src/cli/commands/init.ts';
import { UsageError } from '../../../../src/cli/common/errors.ts';
import { manifest } from '../../../../src/cli/program/package.ts';
import {
  PROJECT_RECORD,
  readRecord,
  recordText,
} from '../../../../src/cli/project/project-record.ts';
import { kindNames } from '../../../../src/codegen/kind-names.ts';
import { programNames, scaffold, TEMPLATE_PATHS } from '../../../../src/codegen/scaffold.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/06-library/static-site');

function newProject(context: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'init-'));
  context.after(() => rmSync(dir, { recursive: true, force: true }));
  const lines: string[] = [];
  return {
    dir,
    lines,
    run: (
      operands: readonly string[],
      flags: {
        group?: string;
        plural?: string;
        'api-version'?: string;
        dir?: string;
        name?: string;
        schema?: 'yaml' | 'ts';
        add?: boolean;
        update?: boolean;
        'dry-run'?: boolean;
        webhooks?: boolean;
        'test-runner'?: 'node' | 'vitest';
        scope?: 'Namespaced' | 'Cluster';
      } = {},
    ) =>
      init(
        operands,
        {
          group: '',
          plural: '',
          'api-version': 'v1alpha1',
          name: '',
          schema: 'yaml',
          scope: 'Namespaced',
          add: false,
          dir,
          ...flags,
        } as Parameters<typeof init>[1],
        { print: (line) => lines.push(line) },
      ),
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
  const own = files().filter((path) => !['.gitignore', PROJECT_RECORD].includes(path));
  assert.deepEqual(
    own.map((path) => [path, read(path)]),
    own.map((path) => [path, readFileSync(join(EXAMPLE, path), 'utf8')]),
  );
  assert.equal(own.length, 30);
  assert.match(read('.gitignore'), /^node_modules\/$/m);
});

test('replaces all names of the example for another kind', async (context) => {
  const { files, lines, read, run } = newProject(context);
  assert.equal(await run(['HTTPPolicy'], { group: 'net.acme.org' }), 0);
  assert.deepEqual(
    files().filter((path) => path.includes('polic')),
    [
      'deploy/crds/httppolicies.net.acme.org.yaml',
      'deploy/network-policy/kustomization.yaml',
      'deploy/network-policy/network-policy.yaml',
      'deploy/rbac/controllers/http-policy.yaml',
      'samples/http-policy.yaml',
      'src/controllers/http-policy.ts',
      'src/generated/http-policy.ts',
      'test/http-policy.test.ts',
    ],
  );
  for (const path of files()) assert.doesNotMatch(read(path), /static.?site|example\.com/i, path);
  assert.match(read('src/controllers/http-policy.ts'), /import \{ HTTP_POLICIES \} from/);
  assert.match(
    read('src/program.ts'),
    /'http-policy': \{ resource: .*, build: httpPolicyController/,
  );
  assert.match(read('src/generated/http-policy.ts'), /HTTP_POLICIES: Resource<HTTPPolicy>/);
  assert.match(read('samples/http-policy.yaml'), /^apiVersion: net\.acme\.org\/v1alpha1$/m);
  const { name, dependencies } = JSON.parse(read('package.json'));
  assert.equal(name, 'http-policy-controller');
  assert.equal(dependencies['crd-controller'], `^${manifest().version}`);
  assert.match(lines.at(-1) ?? '', /npm install\n {2}npm test/);
});

test('uses the plural of --plural', async (context) => {
  const { read, run } = newProject(context);
  assert.equal(await run(['Person'], { plural: 'people' }), 0);
  assert.match(read('deploy/crds/people.example.com.yaml'), /plural: people\n/);
  assert.match(read('src/controllers/person.ts'), /import \{ PEOPLE \} from/);
});

test('a project has no settings of tools that it does not install', async (context) => {
  const { read, run } = newProject(context);
  assert.equal(await run(['Gateway']), 0);
  const { dependencies, devDependencies, ...settings } = JSON.parse(read('package.json'));
  const fields = ['name', 'version', 'private', 'type', 'engines', 'allowScripts', 'scripts'];
  const known = new Set([...fields, ...Object.keys({ ...dependencies, ...devDependencies })]);
  assert.deepEqual(
    Object.keys(settings).filter((key) => !known.has(key)),
    [],
  );
});

test('the README of a project does not take a registry from the API group', async (context) => {
  const { read, run } = newProject(context);
  assert.equal(await run(['Gateway'], { group: 'acme.org' }), 0);
  assert.doesNotMatch(read('README.md'), /acme\.org/);
});

test('--api-version is the version of the kind, in the CRD, the types and the sample', async (context) => {
  for (const [schema, kinds] of [
    ['yaml', 'generated'],
    ['ts', 'kinds'],
  ] as const) {
    const { files, read, run } = newProject(context);
    assert.equal(await run(['Gateway'], { schema, 'api-version': 'v1beta2' }), 0);
    for (const path of files()) assert.doesNotMatch(read(path), /v1alpha1/, path);
    assert.equal(parse(read('samples/gateway.yaml')).apiVersion, 'example.com/v1beta2');
    const [{ name }] = parse(read('deploy/crds/gateways.example.com.yaml')).spec.versions;
    assert.equal(name, 'v1beta2');
    assert.match(read(`src/${kinds}/gateway.ts`), /version: 'v1beta2'/);
    assert.equal(await run(['Route'], { add: true, 'api-version': 'v1' }), 0);
    assert.equal(parse(read('samples/route.yaml')).apiVersion, 'example.com/v1');
    assert.match(read(`src/${kinds}/route.ts`), /version: 'v1'/);
  }
});

test('--schema=ts defines the kinds in TypeScript, with CRDs that generate would write', async (context) => {
  const { dir, files, read, run } = newProject(context);
  assert.equal(await run(['Gateway'], { schema: 'ts', group: 'acme.org' }), 0);
  const kind = 'ObservedNetworkPolicyTemplate';
  assert.equal(await run([kind], { add: true }), 0);
  assert.deepEqual(
    files().filter((path) => /^src\/(generated|kinds)|^deploy\/crds/.test(path)),
    [
      'deploy/crds/gateways.acme.org.yaml',
      'deploy/crds/observednetworkpolicytemplates.acme.org.yaml',
      'src/kinds/gateway.ts',
      'src/kinds/observed-network-policy-template.ts',
    ],
  );
  for (const path of files()) {
    assert.doesNotMatch(read(path), /generated\/|static.?site|example\.com/i, path);
  }
  assert.match(read('src/program.ts'), /import \{ GATEWAYS \} from '\.\/kinds\/gateway\.ts'/);
  // The package is not installed.
  const library = new URL('../../../../src/schema.ts', import.meta.url).href;
  for (const [name, crd] of [
    ['gateway', 'gateways'],
    ['observed-network-policy-template', 'observednetworkpolicytemplates'],
  ]) {
    const path = join(dir, `src/kinds/${name}.ts`);
    writeFileSync(path, readFileSync(path, 'utf8').replace('crd-controller/schema', library));
    const lines: string[] = [];
    const flags = { out: '-', check: false } as Parameters<typeof generate>[1];
    await generate([path], flags, { print: (line) => lines.push(line) });
    const [head = '', ...expected] = read(`deploy/crds/${crd}.acme.org.yaml`).trimEnd().split('\n');
    assert.equal(
      head,
      `# Generated from src/kinds/${name}.ts by \`crd-controller generate\`. Do not edit.`,
    );
    assert.deepEqual(lines.join('').split('\n').slice(1), expected);
  }
});

test('--test-runner=vitest writes tests for Vitest, also of kinds, webhooks and versions that are added', async (context) => {
  for (const schema of ['yaml', 'ts'] as const) {
    const { files, read, run } = newProject(context);
    assert.equal(await run(['Gateway'], { schema, 'test-runner': 'vitest' }), 0);
    assert.equal(await run(['Route'], { add: true }), 0);
    assert.equal(await run(['Route'], { add: true, webhooks: true }), 0);
    assert.equal(await run(['Gateway'], { add: true, 'api-version': 'v1' }), 0);
    const tests = files().filter((path) => path.endsWith('.test.ts'));
    assert.equal(tests.length, 4);
    for (const path of tests) assert.match(read(path), /import \{ test \} from 'vitest';/);
    for (const path of files()) assert.doesNotMatch(read(path), /node:test|node --test/, path);
    const { scripts, devDependencies } = JSON.parse(read('package.json'));
    assert.deepEqual([scripts.test, 'vitest' in devDependencies], ['vitest run', true]);
  }
});

test('--webhooks adds webhooks to the program and to the Deployment', async (context) => {
  for (const schema of ['yaml', 'ts'] as const) {
    const { files, read, run } = newProject(context);
    assert.equal(await run(['Gateway'], { webhooks: true, schema, group: 'acme.org' }), 0);
    for (const path of files()) assert.doesNotMatch(read(path), /static.?site|example\.com/i, path);
    const kinds = schema === 'ts' ? 'kinds' : 'generated';
    assert.match(read('src/webhooks.ts'), new RegExp(`GATEWAYS } from './${kinds}/gateway.ts'`));
    assert.match(read('test/webhooks.test.ts'), new RegExp(`from '../src/${kinds}/gateway.ts'`));
    assert.match(read('src/program.ts'), /^ {2}webhooks,$/m);
    assert.match(read('README.md'), /^\| `src\/webhooks\.ts` /m);
    const [{ ports }] = parse(read('deploy/manager/deployment.yaml')).spec.template.spec.containers;
    assert.deepEqual(ports.at(-1), { name: 'webhook', containerPort: 9443 });
    assert.equal(await run(['Route'], { add: true }), 0);
    assert.match(read('src/program.ts'), /routeController/);
    assert.equal(await run(['Tunnel'], { add: true, webhooks: true }), 0);
    assert.match(read('src/webhooks.ts'), /\.defaults\(\s*TUNNELS,[^]*\.defaults\(\s*GATEWAYS,/);
    await assert.rejects(
      run(['Gateway'], { add: true, webhooks: true }),
      /src\/webhooks\.ts has webhooks for Gateway/,
    );
  }
});

test('--add --webhooks adds what --webhooks does, to a project that was changed', async (context) => {
  for (const [schema, scope] of [
    ['yaml', 'Namespaced'],
    ['ts', 'Cluster'],
  ] as const) {
    const whole = newProject(context);
    await whole.run(['Gateway'], { webhooks: true, schema, scope });
    const grown = newProject(context);
    await grown.run(['Gateway'], { schema, scope });
    const path = join(grown.dir, 'src/program.ts');
    writeFileSync(path, `${readFileSync(path, 'utf8')}// mine\n`);
    assert.equal(await grown.run(['Gateway'], { add: true, webhooks: true }), 0);
    assert.deepEqual(grown.files(), whole.files());
    // The record has the steps.
    const differ = new Set(['src/program.ts', PROJECT_RECORD]);
    for (const file of whole.files().filter((each) => !differ.has(each)))
      assert.equal(grown.read(file), whole.read(file), file);
    const sorted = (text: string) => text.split('\n').toSorted().join('\n').trim();
    assert.equal(
      sorted(grown.read('src/program.ts').replace('// mine\n', '')),
      sorted(whole.read('src/program.ts')),
    );
    const both = newProject(context);
    await both.run(['Gateway'], { schema });
    assert.equal(await both.run(['Route'], { add: true, webhooks: true, scope }), 0);
    assert.match(both.read('src/webhooks.ts'), /ROUTES/);
    assert.match(both.read('src/program.ts'), /^ {2}webhooks,$[^]*routeController/m);
  }
});

test('--add of a kind that exists adds a stored version with its conversion', async (context) => {
  for (const [schema, webhooks] of [
    ['yaml', true],
    ['yaml', false],
    ['ts', true],
    ['ts', false],
  ] as const) {
    const { read, run, files } = newProject(context);
    await run(['Gateway'], { schema, webhooks });
    const before = files();
    assert.equal(await run(['Gateway'], { add: true, 'api-version': 'v1' }), 0);
    if (schema === 'ts') {
      const kind = read('src/kinds/gateway.ts');
      assert.match(kind, /GATEWAYS_V1ALPHA1 = s[^]*?'v1alpha1'[^]*GATEWAYS = s[^]*?version: 'v1',/);
      assert.match(kind, /^ {2}otherVersions: \[GATEWAYS_V1ALPHA1\],\n\}\);$/m);
    } else {
      const { versions } = parse(read('deploy/crds/gateways.example.com.yaml')).spec;
      assert.deepEqual(
        versions.map(({ name, storage }: { name: string; storage: boolean }) => [name, storage]),
        [
          ['v1', true],
          ['v1alpha1', false],
        ],
      );
      assert.match(read('src/generated/gateway.ts'), /version: 'v1'/);
      assert.match(read('src/generated/gateway-v1alpha1.ts'), /version: 'v1alpha1'/);
    }
    assert.match(read('samples/gateway.yaml'), /^apiVersion: example\.com\/v1$/m);
    assert.match(read('src/webhooks.ts'), /\.converts\(GATEWAYS_V1ALPHA1, GATEWAYS, \{/);
    assert.match(read('src/program.ts'), /^ {2}webhooks,$/m);
    assert.deepEqual(
      files().filter((path) => !before.includes(path)),
      [
        ...(schema === 'yaml' ? ['src/generated/gateway-v1alpha1.ts'] : []),
        ...(webhooks ? [] : ['src/webhooks.ts']),
        'test/gateway-v1alpha1.test.ts',
      ],
    );
    if (schema === 'ts') continue;
    await run(['Gateway'], { add: true, 'api-version': 'v2' });
    const declared = read('src/webhooks.ts');
    assert.match(declared, /GATEWAYS_V1, GATEWAYS, \{[^]*GATEWAYS_V1ALPHA1, GATEWAYS, \{/);
    assert.match(read('test/gateway-v1.test.ts'), /GATEWAYS as GATEWAYS_V1 \}/);
  }
});

test('--add adds only newer versions, also together with webhooks', async (context) => {
  const { files, read, run } = newProject(context);
  await run(['Gateway'], { 'api-version': 'v1' });
  // The default of --api-version is older.
  await assert.rejects(run(['Gateway'], { add: true }), /exists, in version v1\..*newer/);
  assert.equal(await run(['Gateway'], { add: true, webhooks: true, 'api-version': 'v2' }), 0);
  assert.match(read('src/webhooks.ts'), /\.defaults\([^]*\.converts\(GATEWAYS_V1, GATEWAYS, \{/);
  assert.deepEqual(
    files().filter((path) => path.startsWith('test/')),
    ['test/cluster.ts', 'test/gateway-v1.test.ts', 'test/gateway.test.ts', 'test/webhooks.test.ts'],
  );
});

test('--scope=Cluster writes a project for a cluster-scoped kind', async (context) => {
  for (const schema of ['yaml', 'ts'] as const) {
    const { read, run } = newProject(context);
    await run(['Gateway'], { scope: 'Cluster', schema, webhooks: true });
    assert.equal(parse(read('deploy/crds/gateways.example.com.yaml')).spec.scope, 'Cluster');
    assert.equal(parse(read('samples/gateway.yaml')).metadata.namespace, undefined);
    if (schema === 'ts') assert.match(read('src/kinds/gateway.ts'), /^ {2}scope: 'Cluster',$/m);
    else assert.match(read('src/generated/gateway.ts'), /namespaced: false/);
    assert.match(read('src/controllers/gateway.ts'), /namespace: NAMESPACE/);
  }
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
  assert.deepEqual(await dependency(root), { range: '^1.2.3' });
  lock('https://example.com/crd-controller-1.2.3.tgz');
  assert.deepEqual(await dependency(root), { range: '^1.2.3' });
  lock('file:packed.tgz');
  assert.deepEqual(await dependency(root), { range: '^1.2.3' }, 'the file is no longer there');
  writeFileSync(join(dir, 'packed.tgz'), '');
  assert.deepEqual(await dependency(root), {
    range: 'file:packed.tgz',
    file: join(dir, 'packed.tgz'),
  });
});

test('a project depends on the given version or file', () => {
  const template = new Map(
    TEMPLATE_PATHS.map((path) => [path, readFileSync(join(EXAMPLE, path), 'utf8')]),
  );
  const names = {
    ...kindNames('Gateway', 'acme.org'),
    ...programNames('gateways'),
    version: 'v1',
  };
  const project = scaffold(template, names, 'file:packed.tgz');
  const { dependencies } = JSON.parse(project.get('package.json') ?? '');
  assert.deepEqual(dependencies, { 'crd-controller': 'file:packed.tgz' });
});

test('the template has the protection of the image, the installation and the checks of this package', () => {
  const root = join(EXAMPLE, '../../..');
  const own = (path: string) => readFileSync(join(root, path), 'utf8');
  const template = (path: string) =>
    readFileSync(join(EXAMPLE, path), 'utf8').replaceAll(
      'static-site-controller',
      'crd-controller',
    );
  const all = (text: string, pattern: RegExp) =>
    [...text.matchAll(pattern)].map(([found]) => found);

  const flags = /"--[^"]*"/g;
  assert.deepEqual(all(template('Dockerfile'), flags), all(own('Dockerfile'), flags));
  const digest = /node:\S+@sha256:[0-9a-f]{64}/g;
  const [image] = all(own('Dockerfile'), digest);
  assert.deepEqual(all(template('Dockerfile'), digest), [image]);
  const variables = /(?:MALLOC_ARENA_MAX|NODE_ENV|NODE_OPTIONS)=[^\n\\]*/g;
  assert.deepEqual(
    new Set(all(template('Dockerfile'), variables).map((text) => text.trim())),
    new Set(all(own('Dockerfile'), variables).map((text) => text.trim())),
  );
  const actions = /uses: .*/g;
  const pinned = new Set(all(own('.github/workflows/ci.yml'), actions));
  const used = all(template('.github/workflows/ci.yaml'), actions);
  assert.ok(used.length > 0 && used.every((action) => pinned.has(action)), used.join());
  for (const path of ['Dockerfile', '.github/workflows/ci.yaml']) {
    const installs = all(template(path), /npm ci.*/g);
    assert.ok(
      installs.every((install) => install.includes('--ignore-scripts')),
      path,
    );
  }

  const podOf = (text: string) => {
    const { priorityClassName: _, ...spec } = parse(text).spec.template.spec;
    return spec;
  };
  const deployment = 'manager/deployment.yaml';
  assert.deepEqual(
    podOf(template(`deploy/${deployment}`)),
    podOf(own(`hack/deploy/${deployment}`)),
  );
  const policy = 'network-policy/network-policy.yaml';
  assert.deepEqual(parse(template(`deploy/${policy}`)), parse(own(`hack/deploy/${policy}`)));
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
    [
      ['A'.repeat(50)],
      'example.com',
      /namespace .* exceeds 63 characters: choose a shorter --name/,
    ],
  ];
  for (const [operands, group, message] of refusals) {
    await assert.rejects(run(operands, { group, dir: into }), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, message);
      return true;
    });
  }
  assert.equal(existsSync(into), false);
});

test('names the program by --name in its manifests, and the component of a controller after its kind', async (context) => {
  const { read, run } = newProject(context);
  assert.equal(await run(['Gateway'], { name: 'network-operator' }), 0);
  assert.match(read('src/program.ts'), /name: 'network-operator'/);
  assert.match(read('src/program.ts'), /^ {4}gateway: \{ resource: GATEWAYS/m);
  assert.match(read('deploy/namespace/namespace.yaml'), /name: network-operator-system\n/);
  assert.match(read('deploy/rbac/controllers/gateway.yaml'), /name: network-operator-gateway\n/);
  assert.match(read('src/controllers/gateway.ts'), /COMPONENT = 'gateway-controller'/);
});

test('--add adds a kind, and keeps all other text that the user changed', async (context) => {
  const { dir, files, lines, read, run } = newProject(context);
  assert.equal(await run(['Gateway'], { group: 'acme.org', name: 'network-operator' }), 0);
  const edit = (path: string, change: (text: string) => string) =>
    writeFileSync(join(dir, path), change(read(path)));
  edit('src/program.ts', (text) =>
    text.replace(/^ {4}gateway: .*$/m, '$& // mine\n    // { mine }'),
  );
  edit('deploy/kustomization.yaml', (text) => `${text}  - mine.yaml # mine\n`);
  edit('deploy/rbac/identity/service-account.yaml', (text) => text.replace(/-system/, '-mine'));
  edit('src/controllers/gateway.ts', (text) => `${text}// mine\n`);
  const before = new Map(files().map((path) => [path, read(path)]));
  lines.length = 0;
  assert.equal(await run(['HTTPPolicy'], { add: true }), 0);
  const changed = files().filter((path) => before.get(path) !== read(path));
  assert.deepEqual(
    changed,
    [
      'deploy/crds/httppolicies.acme.org.yaml',
      'deploy/kustomization.yaml',
      'deploy/rbac/controllers/http-policy.yaml',
      'samples/http-policy.yaml',
      'src/controllers/http-policy.ts',
      'src/generated/http-policy.ts',
      'src/program.ts',
      'test/http-policy.test.ts',
    ].toSpliced(0, 0, PROJECT_RECORD),
  );
  assert.deepEqual(
    lines.slice(0, -1).toSorted(),
    changed.map((path) => join(dir, path)),
  );
  const added = (path: string) => {
    const old = new Set(before.get(path)?.split('\n'));
    const lines = read(path).split('\n');
    assert.deepEqual(
      lines.filter((line) => old.has(line)),
      before.get(path)?.split('\n'),
      'the lines of the user and their order',
    );
    return lines.filter((line) => !old.has(line));
  };
  assert.deepEqual(added('src/program.ts'), [
    "import { httpPolicyController } from './controllers/http-policy.ts';",
    "import { HTTP_POLICIES } from './generated/http-policy.ts';",
    "    'http-policy': { resource: HTTP_POLICIES, build: httpPolicyController },",
  ]);
  assert.deepEqual(added('deploy/kustomization.yaml'), [
    '  - crds/httppolicies.acme.org.yaml',
    '  - rbac/controllers/http-policy.yaml',
  ]);
  const role = read('deploy/rbac/controllers/http-policy.yaml');
  assert.match(role, /name: network-operator-http-policy\n/);
  assert.match(role, /name: network-operator\n {4}namespace: network-operator-mine\n/);
});

test('--add changes nothing if the project has no place for the kind', async (context) => {
  const { dir, files, read, run } = newProject(context);
  await assert.rejects(
    run(['Route'], { add: true }),
    /^UsageError: --add requires a project.*program\.ts/,
  );
  assert.deepEqual(files(), []);
  assert.equal(await run(['Gateway']), 0);
  const cases: [path: string, from: RegExp, to: string, message: RegExp][] = [
    ['src/program.ts', /controllers: \{/, 'controllers: mine({', /add the controller by hand/],
    ['src/program.ts', /^/, '// ROUTES\n', /uses the name ROUTES already/],
    [
      'deploy/kustomization.yaml',
      /- crds.*/,
      '- mine.yaml',
      /add crds\/routes.example.com.yaml by hand/,
    ],
    ['deploy/rbac/identity/service-account.yaml', /namespace: .*/, '', /no ServiceAccount with/],
  ];
  for (const [path, from, to, message] of cases) {
    const text = read(path);
    writeFileSync(join(dir, path), text.replace(from, to));
    await assert.rejects(run(['Route'], { add: true }), message);
    writeFileSync(join(dir, path), text);
  }
  await assert.rejects(run(['Gateway'], { add: true }), /Gateway exists, in version v1alpha1/);
  await assert.rejects(run(['Route'], { add: true, name: 'mine' }), /--name cannot be combined/);
  await assert.rejects(
    run(['Route'], { add: true, schema: 'ts' }),
    /--schema=ts cannot be combined/,
  );
  assert.equal(
    files().some((path) => path.includes('route')),
    false,
  );
  mkdirSync(join(dir, 'samples'), { recursive: true });
  writeFileSync(join(dir, 'samples/route.yaml'), 'mine');
  await assert.rejects(run(['Route'], { add: true }), /Existing files are not overwritten.*route/);
  assert.equal(read('src/program.ts').includes('route'), false);
});

test('--update has nothing to do in a project of this version, also after additions', async (context) => {
  for (const schema of ['yaml', 'ts'] as const) {
    const { lines, run } = newProject(context);
    const form = { schema, scope: 'Cluster', webhooks: true, 'test-runner': 'vitest' } as const;
    assert.equal(await run(['Gateway'], form), 0);
    assert.equal(await run(['Route'], { add: true }), 0);
    assert.equal(await run(['Gateway'], { add: true, 'api-version': 'v1' }), 0);
    lines.length = 0;
    assert.equal(await run([], { update: true }), 0);
    const [summary, ...others] = lines;
    assert.match(summary ?? '', /^\d+ files unchanged; from version (\S+) to \1$/);
    assert.deepEqual(others, []);
  }
});

test('--update merges the changes since the version that wrote the project', async (context) => {
  const { dir, files, lines, read, run } = newProject(context);
  assert.equal(await run(['Gateway']), 0);
  // Another kind, a version and webhooks, at different times.
  assert.equal(await run(['Route'], { add: true }), 0);
  assert.equal(await run(['Gateway'], { add: true, 'api-version': 'v1' }), 0);
  const record = await readRecord(dir);
  assert.ok(record);
  const edit = (path: string, change: (text: string) => string) =>
    writeFileSync(join(dir, path), change(read(path)));
  /** Makes a text one of a former version, in the project and in the record. */
  const base = new Map(record.files);
  const age = (path: string, change: (text: string) => string) => {
    const former = change(base.get(path) ?? '');
    assert.notEqual(former, base.get(path), path);
    base.set(path, former);
    edit(path, change);
  };
  age('src/dev.ts', (text) => text.replace('    crds,\n', ''));
  age('src/main.ts', (text) => `${text}// former\n`);
  age('package.json', (text) => text.replace(/("crd-controller": )".*?"/, '$1"^0.0.1"'));
  age('src/program.ts', (text) => `// former\n${text}`);
  age('test/cluster.ts', (text) => text.replace('new FakeClock()', 'formerClock()'));
  base.delete('AGENTS.md');
  rmSync(join(dir, 'AGENTS.md'));
  writeFileSync(
    join(dir, PROJECT_RECORD),
    recordText({ version: '0.0.1', steps: record.steps, files: base }),
  );
  edit('src/dev.ts', (text) => `${text}// mine\n`);
  edit('package.json', (text) => text.replace('^0.0.1', '^0.0.2'));
  edit('src/controllers/route.ts', (text) => `${text}// mine\n`);
  edit('test/cluster.ts', (text) => text.replace('formerClock()', 'myClock()'));
  rmSync(join(dir, 'samples/route.yaml'));
  const before = new Map(files().map((path) => [path, read(path)]));

  const expected = [
    'new       AGENTS.md',
    'deleted   samples/route.yaml (you deleted it: it stays deleted)',
    'merged    src/dev.ts',
    'updated   src/main.ts',
    'updated   src/program.ts',
    'conflict  test/cluster.ts',
  ];
  lines.length = 0;
  assert.equal(await run([], { update: true, 'dry-run': true }), 1);
  const [patch = '', ...planned] = lines;
  assert.deepEqual(planned.slice(0, -1), expected);
  for (const path of ['AGENTS.md', 'src/dev.ts', 'src/main.ts', 'src/program.ts'])
    assert.match(patch, new RegExp(`^\\+\\+\\+ b/${path}$`, 'm'));
  assert.deepEqual(new Map(files().map((path) => [path, read(path)])), before);

  lines.length = 0;
  assert.equal(await run([], { update: true }), 1);
  assert.deepEqual(lines.slice(0, expected.length), expected);
  assert.equal(read('src/dev.ts'), `${record.files.get('src/dev.ts')}// mine\n`);
  for (const path of ['AGENTS.md', 'src/main.ts', 'src/program.ts'])
    assert.equal(read(path), record.files.get(path), path);
  assert.match(read('test/cluster.ts'), /^<<<<<<< yours\n.*myClock.*\n=======\n.*FakeClock/m);
  assert.match(read('src/controllers/route.ts'), /mine/);
  const next = new Map(record.files).set('package.json', read('package.json'));
  assert.deepEqual((await readRecord(dir))?.files, next);

  await assert.rejects(
    run([], { update: true }),
    /^UsageError: Resolve the conflicts.*cluster\.ts/,
  );
  writeFileSync(join(dir, 'test/cluster.ts'), record.files.get('test/cluster.ts') ?? '');
  assert.equal(await run([], { update: true }), 0);
});

test('--update needs the record of a project, and no newer version', async (context) => {
  const { dir, run } = newProject(context);
  await assert.rejects(run([], { update: true }), /^UsageError: .*json does not exist/);
  await assert.rejects(run(['Gateway'], { update: true }), /^UsageError: --update takes neither/);
  await assert.rejects(run(['Gateway'], { 'dry-run': true }), /^UsageError: --dry-run requires/);
  assert.equal(await run(['Gateway']), 0);
  const record = await readRecord(dir);
  assert.ok(record);
  writeFileSync(join(dir, PROJECT_RECORD), recordText({ ...record, version: '999.0.0' }));
  await assert.rejects(run([], { update: true }), /^UsageError: .*written by crd-controller 999/);
  writeFileSync(join(dir, PROJECT_RECORD), '{}');
  await assert.rejects(run([], { update: true }), /^UsageError: .* is damaged/);
});
