import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
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
import { basename, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import { generate } from '../../../../src/cli/commands/generate.ts';
import { generateManifests } from '../../../../src/cli/commands/generate-manifests.ts';
import { generateRbac } from '../../../../src/cli/commands/generate-rbac.ts';
import { UsageError } from '../../../../src/cli/common/errors.ts';

function crd(kind: string, versions: readonly string[] = ['v1'], group = 'example.com'): string {
  const plural = `${kind.toLowerCase()}s`;
  return JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: { type: 'object' } },
      })),
    },
  });
}

function newProject(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'generate-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  const out = join(folder, 'out');
  return {
    folder,
    out,
    lines,
    write: (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    },
    run: (paths: readonly string[], check = false, to = out) =>
      generate(paths, { out: to, check } as Parameters<typeof generate>[1], {
        print: (line) => lines.push(line),
      }),
  };
}

test('writes a module for each kind and served version, from files and folders', async (context) => {
  const { folder, out, lines, write, run } = newProject(context);
  mkdirSync(join(folder, 'crds'));
  write('crds/b.yaml', `${crd('Backup', ['v1', 'v1beta1'])}\n---\n${crd('Restore')}`);
  write('crds/notes.txt', 'not a manifest');
  const single = write('c.yml', crd('WebApp'));
  assert.equal(await run([join(folder, 'crds'), single]), 0);
  const names = ['backup.ts', 'backup-v1beta1.ts', 'restore.ts', 'web-app.ts'];
  assert.deepEqual(readdirSync(out).toSorted(), names.toSorted());
  assert.deepEqual(
    lines,
    names.map((name) => join(out, name)),
  );
  const text = readFileSync(join(out, 'backup-v1beta1.ts'), 'utf8');
  assert.match(text, /^\/\/ Generated from b\.yaml by `crd-controller generate`\. Do not edit\.\n/);
  assert.match(text, /import type \{ KubernetesObject, Resource \} from 'crd-controller';/);
  assert.match(text, /version: 'v1beta1',/);
  lines.length = 0;
  assert.equal(await run([join(folder, 'crds'), single]), 0);
  assert.deepEqual(lines, [`${out} is up to date`]);
});

test('skips files of a folder that contain no CRD', async (context) => {
  const { folder, out, write, run } = newProject(context);
  mkdirSync(join(folder, 'crds'));
  write('crds/a.yaml', crd('Backup'));
  write('crds/kustomization.yaml', 'resources: [a.yaml]');
  assert.equal(await run([join(folder, 'crds')]), 0);
  assert.deepEqual(readdirSync(out), ['backup.ts']);
});

test('names the files of kinds with the same name after their groups', async (context) => {
  const { out, write, run } = newProject(context);
  const ours = write('x.yaml', `${crd('Policy')}\n---\n${crd('Rule')}`);
  const theirs = write('y.yaml', crd('Policy', ['v1'], 'acme.org'));
  assert.equal(await run([ours, theirs]), 0);
  const names = ['policy-acme-org.ts', 'policy-example-com.ts', 'rule.ts'];
  assert.deepEqual(readdirSync(out).toSorted(), names);
  assert.match(readFileSync(join(out, names[0]!), 'utf8'), /group: 'acme\.org',/);
});

test('--check writes nothing, and fails if files are not up to date', async (context) => {
  const { out, lines, write, run } = newProject(context);
  const file = write('a.yaml', crd('Backup'));
  assert.equal(await run([file], true), 1);
  assert.throws(() => readdirSync(out), { code: 'ENOENT' });
  await run([file]);
  assert.equal(await run([file], true), 0);
  writeFileSync(join(out, 'backup.ts'), '// Generated from a.yaml, and then edited.\n');
  lines.length = 0;
  assert.equal(await run([file], true), 1);
  assert.deepEqual(lines, [`${join(out, 'backup.ts')} is stale: run crd-controller generate`]);
});

test('writes nothing if a file exists that was not generated', async (context) => {
  const { out, write, run } = newProject(context);
  const file = write('a.yaml', `${crd('Archive')}\n---\n${crd('Backup')}`);
  mkdirSync(out);
  writeFileSync(join(out, 'backup.ts'), 'mine');
  await assert.rejects(
    run([file]),
    /backup\.ts exists and was not generated: move it, or choose another/,
  );
  assert.deepEqual(readdirSync(out), ['backup.ts']);
});

test('writes the CRDs of the kinds that a module defines', async (context) => {
  const { out, lines, write, run } = newProject(context);
  const schema = JSON.stringify(new URL('../../../../src/schema.ts', import.meta.url).href);
  const file = write(
    'kinds.ts',
    `import { customResource, object } from ${schema};
    const names = { group: 'example.com', kind: 'Widget', plural: 'widgets', spec: object({}) };
    export const OLD_WIDGETS = customResource({ ...names, version: 'v1beta1' });
    export const WIDGETS = customResource({ ...names, version: 'v1', otherVersions: [OLD_WIDGETS] });
    export const again: unknown = WIDGETS;
    export const other = 1;`,
  );
  assert.equal(await run([file]), 0);
  const path = join(out, 'widgets.example.com.yaml');
  assert.deepEqual(lines, [path]);
  const text = readFileSync(path, 'utf8');
  assert.match(text, /^# Generated from kinds\.ts by `crd-controller generate`\. Do not edit\.\n/);
  const { spec } = parse(text) as { spec: { versions: { name: string }[] } };
  assert.deepEqual(
    spec.versions.map(({ name }) => name),
    ['v1', 'v1beta1'],
  );
  assert.equal(await run([file], true), 0);
  lines.length = 0;
  assert.equal(await run([file, file], false, '-'), 0);
  assert.equal(`${lines.join()}\n`, `${text}---\n${text}`);
  writeFileSync(path, text.replace('v1beta1', 'v1beta2'));
  assert.equal(await run([file], true), 1);
  assert.equal(await run([file]), 0);
  assert.equal(readFileSync(path, 'utf8'), text);
});

test('names the file of an invalid CRD', async (context) => {
  const { folder, write, run } = newProject(context);
  mkdirSync(join(folder, 'empty'));
  mkdirSync(join(folder, 'other'));
  write('other/kustomization.yaml', 'resources: []');
  const refusals: [paths: string[], message: RegExp][] = [
    [[], /^generate requires the path of a CRD/],
    [[join(folder, 'none.yaml')], /^File or folder ".*none\.yaml" does not exist$/],
    [[join(folder, 'empty')], /^No YAML or JSON file in/],
    [[write('pod.yaml', 'kind: Pod')], /^pod\.yaml contains no CustomResourceDefinition$/],
    [[write('bad.yaml', 'a: [')], /^bad\.yaml: /],
    [[write('old.yaml', crd('Old').replace('/v1', '/v1beta1'))], /^old\.yaml: apiVersion must be/],
    [
      [write('x.yaml', crd('Same')), write('y.yaml', crd('SAME'))],
      /^y\.yaml: sames\.example\.com and sames\.example\.com have the same file name same\.ts/,
    ],
    [[write('none.ts', 'export {};')], /none\.ts exports no kind that customResource defines$/],
    [
      [write('bad.ts', 'throw new Error("no");')],
      /^cannot import .*bad\.ts: no \(at .*bad\.ts:1:7\)$/,
    ],
    [[join(folder, 'other')], /^No CustomResourceDefinition in ".*other"$/],
  ];
  await assert.rejects(run([write('a.yaml', crd('A'))], false, '-'), /^UsageError: --out=- prints/);
  for (const [paths, message] of refusals) {
    await assert.rejects(run(paths), (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, message);
      return true;
    });
  }
});

const ROLE = `# Mine.
kind: ClusterRole
metadata: { name: a }
rules: []
---
kind: ClusterRoleBinding
metadata: { name: a }
`;

function newRoles(context: TestContext) {
  const { folder, write } = newProject(context);
  const lines: string[] = [];
  const print = (line: string) => lines.push(line);
  const stop = new AbortController();
  return {
    lines,
    stop,
    file: write('role.yaml', ROLE),
    /** Runs the command with a script as the tests. */
    run: (script: string, check = false, limitMs = 60_000) =>
      generateRbac(
        [],
        { check, 'test-timeout': limitMs },
        {
          print,
          warn: (line) => {
            print(line);
            if (line === 'aborts') stop.abort(new Error('stopped'));
          },
          environment: { ...process.env, FORCE_COLOR: '1' },
          signal: stop.signal,
        },
        [process.execPath, '--input-type=module', '-e', script],
      ),
    /** Returns a script that records permissions as the tests of one process do. */
    observing: (name: string, permissions: readonly string[]) =>
      `process.getBuiltinModule('fs').writeFileSync(process.env.CRD_CONTROLLER_OBSERVED_ROLES + '/${name}.json', ${JSON.stringify(
        JSON.stringify({ file: join(folder, 'role.yaml'), permissions }),
      )});`,
  };
}

test('generate rbac writes the permissions that all tests needed', async (context) => {
  const { file, lines, observing, run } = newRoles(context);
  const script = observing('a', ['get pods']) + observing('b', ['list pods', 'get pods']);
  assert.equal(await run(script, true), 1);
  assert.match(lines.join(), /role\.yaml is stale: run crd-controller generate rbac/);
  assert.equal(readFileSync(file, 'utf8'), ROLE);
  assert.equal(await run(script), 0);
  assert.match(readFileSync(file, 'utf8'), /^# Mine\.[^]* {4}verbs: \[get, list\]\n---\n/);
  assert.equal(await run(script, true), 0);
});

test('generate rbac runs the tests with all permissions', async (context) => {
  const { file, run } = newRoles(context);
  writeFileSync(file, `${ROLE}subjects: [{ kind: ServiceAccount, namespace: a, name: b }]\n`);
  // The server of the test answers every request with 201, and prints it.
  const script = `
    import { TestedRole } from ${JSON.stringify(new URL('../../../../src/codegen/tested-role.ts', import.meta.url).href)};
    const bodies = [];
    const role = new TestedRole(${JSON.stringify(file)});
    const handler = async ({ body }) => (bodies.push(JSON.parse(body)), { status: 201, headers: {}, body: [] });
    await role.handler({
      handler,
      handlerFor: () => handler,
      observedRole: (user) => ({ rules: [{ apiGroups: [''], resources: ['pods'], verbs: [user] }] }),
    });
    await role.verify();
    const [{ rules }, { subjects }] = bodies;
    if (rules[0].verbs[0] !== '*' || !subjects[0].name.startsWith('system:serviceaccount:a:b:')) process.exit(1);`;
  assert.equal(await run(script), 0);
  assert.match(
    readFileSync(file, 'utf8'),
    /resources: \[pods\]\n {4}verbs: \[system:serviceaccount:a:b:\w+\]/,
  );
});

test('generate rbac writes nothing if a test fails, or no test verifies a role', async (context) => {
  const { file, lines, observing, run, stop } = newRoles(context);
  const variables = ['NO_COLOR', 'FORCE_COLOR', 'CRD_CONTROLLER_OBSERVED_ROLES'];
  const why = `console.log(${variables.map((name) => `process.env.${name}`).join()});`;
  assert.equal(await run(`${observing('a', ['get pods'])} ${why} process.exit(1)`), 1);
  const [, folder = ''] = /^1 undefined (.*)\nThe tests failed/.exec(lines.join('\n')) ?? [];
  assert.match(basename(folder), /^observed-roles/);
  assert.deepEqual([existsSync(folder), getEventListeners(stop.signal, 'abort')], [false, []]);
  /** Prints in a process below that of the tests, which runs without end. */
  const endless = (line: string) =>
    `process.getBuiltinModule('child_process').spawnSync(process.execPath, ['-e', "console.log('${line}'); setInterval(() => 0, 1000)"], { stdio: 'inherit' })`;
  assert.equal(await run(endless('starts'), false, 1500), 1);
  assert.match(lines.join('\n'), /\nThe tests took longer than 1\.5s/);
  const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
  const before = timers();
  await assert.rejects(run(endless('aborts')), /stopped/);
  assert.ok(timers() <= before);
  assert.equal(readFileSync(file, 'utf8'), ROLE);
  await assert.rejects(newRoles(context).run(''), /^UsageError: No test called verify\(\)/);
});

test('generate manifests prints or writes the kustomization of a program', async (context) => {
  const { folder, write, lines } = newProject(context);
  const deploy = join(folder, 'deploy');
  const run = (paths: readonly string[], flags: object = {}) =>
    generateManifests(
      paths,
      { name: 'network-operator', deploy: '', check: false, ...flags },
      { print: (line) => lines.push(line) },
    );
  const crds = [
    write('a.yaml', crd('Gateway')),
    write('b.yaml', `${crd('Route')}\n---\n${crd('Zone')}`),
  ];
  assert.equal(await run(crds), 0);
  const [printed = ''] = lines;
  assert.match(printed, /^# Installation of network-operator/);
  const kinds = Array.from(printed.matchAll(/^kind: (\w+)$/gm), ([, kind]) => kind);
  assert.equal(kinds[0], 'Namespace');
  assert.equal(kinds.filter((kind) => kind === 'ClusterRole').length, 6);
  assert.doesNotMatch(printed, /static.?site/i);

  assert.equal(await run(crds.slice(0, 1), { deploy }), 0);
  const read = (path: string) => readFileSync(join(deploy, path), 'utf8');
  assert.match(
    read('rbac/controllers/gateway.yaml'),
    /resources: \[gateways\]\n {4}verbs: \[get, list, watch\]\n[^]*gateways\/status\]\n {4}verbs: \[patch\]\n/,
  );
  const mine = read('manager/deployment.yaml').replace('replicas: 2', 'replicas: 3');
  writeFileSync(join(deploy, 'manager/deployment.yaml'), mine);
  lines.length = 0;
  assert.equal(await run(crds, { deploy }), 0);
  assert.equal(read('manager/deployment.yaml'), mine);
  assert.deepEqual(
    lines.map((line) => line.slice(deploy.length + 1)),
    [
      'kustomization.yaml',
      'manager/deployment.yaml exists and is kept',
      'crds/routes.example.com.yaml',
      'rbac/controllers/route.yaml',
      'crds/zones.example.com.yaml',
      'rbac/controllers/zone.yaml',
    ],
  );
  assert.match(read('kustomization.yaml'), /crds\/gateways.*\n.*crds\/routes.*\n.*crds\/zones/);

  const library = new URL('../../../../src/webhook/webhooks.ts', import.meta.url).href;
  const resource =
    "{ group: 'example.com', version: 'v1', plural: 'gateways', kind: 'Gateway', namespaced: true }";
  const module = write(
    'webhooks.mjs',
    `import { Webhooks } from '${library}';
     export const webhooks = new Webhooks().validates(${resource}, () => []);`,
  );
  lines.length = 0;
  assert.equal(await run([...crds, module]), 0);
  assert.match(lines.join(''), /path: \/validate-example-com-v1-gateway/);
  assert.match(lines.join(''), /name: webhook\n +containerPort: 9443/);
  for (const [paths, message] of [
    [[module, module], /takes one module with webhooks/],
    [[crds[0] ?? '', write('empty.mjs', '')], /empty\.mjs exports no Webhooks/],
  ] as const) {
    await assert.rejects(run(paths), message);
  }
  await assert.rejects(run([module], { deploy }), /--deploy cannot be combined with a module/);

  await assert.rejects(run([]), /^UsageError: generate manifests requires the path of a CRD/);
  await assert.rejects(run(crds, { name: 'A' }), /^UsageError: --name must consist of/);
  await assert.rejects(run([write('c.yaml', 'kind: Pod')]), /^UsageError: There is no CustomRes/);
});
