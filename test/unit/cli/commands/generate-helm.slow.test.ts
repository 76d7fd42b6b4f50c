import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { parse } from 'yaml';
import { generateDashboard } from '../../../../src/cli/commands/generate-dashboard.ts';
import { generateHelm } from '../../../../src/cli/commands/generate-helm.ts';
import { PROGRAM } from '../../../support/own-program.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const EXAMPLE = join(ROOT, 'examples/06-library/static-site');
const CRDS = join(EXAMPLE, 'deploy/crds');

function newProject(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'chart-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  const chart = join(folder, 'chart');
  const run = { program: PROGRAM, print: (line: string) => lines.push(line) };
  cpSync(join(EXAMPLE, 'deploy'), join(folder, 'deploy'), { recursive: true });
  return {
    folder,
    chart,
    lines,
    write: (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    },
    read: (path: string) => readFileSync(join(folder, path), 'utf8'),
    helm: (operands: readonly string[], { name = '', image = '', check = false } = {}) =>
      generateHelm(operands, { name, image, check, chart }, run),
    dashboard: (operands: readonly string[], check = false) =>
      generateDashboard(operands, { deploy: join(folder, 'deploy'), check }, run),
  };
}

/** A module with a program of one controller, with custom metrics and webhooks. */
const MODULE = `
import { Controller } from '${pathToFileURL(join(ROOT, 'src/index.ts')).href}';
import { Webhooks } from '${pathToFileURL(join(ROOT, 'src/webhook.ts')).href}';
import { STATIC_SITES } from '${pathToFileURL(join(EXAMPLE, 'src/generated/static-site.ts')).href}';
export const program = {
  name: 'static-site-controller',
  version: '1.2.3',
  deploy: new URL('./deploy/', import.meta.url),
  webhooks: new Webhooks().validates(STATIC_SITES, () => []),
  controllers: {
    sites: {
      resource: STATIC_SITES,
      build: (kit) => {
        kit.customMetrics.counter({ name: 'site_builds_total', help: 'Builds' });
        return new Controller(kit, { name: 'sites', kind: 'StaticSite', sync: async () => ({}) });
      },
    },
    zones: {
      resource: { ...STATIC_SITES, namespaced: false },
      isOnByDefault: false,
      build: (kit) => new Controller(kit, { name: 'zones', kind: 'Zone', sync: async () => ({}) }),
    },
  },
};`;

test('generate helm writes the chart of a program, and replaces what it wrote', async (context) => {
  const { chart, lines, write, read, helm } = newProject(context);
  const module = write('program.mjs', MODULE);
  assert.equal(await helm([module]), 0);
  assert.equal(parse(read('chart/Chart.yaml')).appVersion, '1.2.3');
  const { image, webhooks, namespaces } = parse(read('chart/values.yaml'));
  // As in the Deployment and by default.
  assert.deepEqual([image.tag, webhooks.enabled, namespaces], ['0.1.0', true, []]);
  assert.match(read('chart/files/dashboard.json'), /site_builds_total/);
  assert.match(
    read('chart/templates/webhook/webhooks.yaml'),
    /kind: ValidatingWebhookConfiguration/,
  );
  assert.equal(await helm([module], { check: true }), 0);

  write(
    'deploy/manager/deployment.yaml',
    read('deploy/manager/deployment.yaml').replace('replicas: 2', 'replicas: 3'),
  );
  write('chart/templates/crds/old.yaml', '# of an earlier version');
  write('chart/README.md', 'mine');
  lines.length = 0;
  assert.equal(await helm([module], { check: true }), 1);
  assert.deepEqual(
    lines.map((line) => line.slice(chart.length + 1).split(' ')[0]),
    ['values.yaml', 'templates/crds/old.yaml'],
  );
  assert.equal(await helm([module]), 0);
  assert.equal(parse(read('chart/values.yaml')).replicas, 3);
  assert.ok(!existsSync(join(chart, 'templates/crds/old.yaml')));
  lines.length = 0;
  assert.equal(await helm([module]), 0);
  assert.deepEqual(lines, [`${chart} is up to date`]);

  write('chart/Chart.yaml', 'name: mine');
  await assert.rejects(helm([module]), /has files that were not generated: move them, or choose/);
});

test('generate helm writes the chart of CRDs, and of this program', async (context) => {
  const { read, helm, write } = newProject(context);
  assert.equal(await helm([CRDS], { name: 'site-operator' }), 0);
  assert.equal(parse(read('chart/Chart.yaml')).name, 'site-operator');
  assert.match(
    read('chart/templates/crds/staticsites.example.com.yaml'),
    /helm.sh\/resource-policy: keep/,
  );
  assert.ok(read('chart/templates/network-policy/network-policy.yaml'));
  assert.equal(await helm([], { name: 'crd-controller', image: 'example.com:1/a:0.2' }), 0);
  const { repository, tag } = parse(read('chart/values.yaml')).image;
  assert.deepEqual([repository, tag], ['example.com:1/a', '0.2']);
  await assert.rejects(helm([], { name: 'crd-controller', image: 'a b' }), /for --image: must be/);
  assert.ok(read('chart/templates/crds/counts.demo.mark8s.io.yaml'));

  const module = write('program.mjs', MODULE);
  await assert.rejects(
    helm([module], { name: 'a' }),
    /--name cannot be combined with .*program\.mjs/,
  );
  await assert.rejects(
    helm([write('a.mjs', 'export const p = { name: "A", controllers: {} };')]),
    /a\.mjs: runProgram: name: "A" must consist of/,
  );
  await assert.rejects(
    helm([write('b.mjs', MODULE.replace(/deploy: .*\n/, ''))]),
    /The program static-site-controller has no option deploy/,
  );
});

test('generate dashboard writes a component with the metrics of a program', async (context) => {
  const { read, dashboard, write, lines } = newProject(context);
  const module = write('program.mjs', MODULE);
  assert.equal(await dashboard([module]), 0);
  const { resources, configMapGenerator } = parse(read('deploy/monitoring/kustomization.yaml'));
  for (const file of [...resources, ...configMapGenerator[0].files])
    assert.match(read(`deploy/monitoring/${file}`), /static-site-controller/);
  assert.equal(configMapGenerator[0].namespace, 'static-site-controller-system');
  assert.match(read('deploy/monitoring/static-site-controller.json'), /site_builds_total/);
  assert.equal(await dashboard([module], true), 0);
  lines.length = 0;
  assert.equal(
    await dashboard(
      [write('other.mjs', MODULE.replace('site_builds_total', 'site_runs_total'))],
      true,
    ),
    1,
  );
  assert.match(lines.join(), /static-site-controller\.json is stale/);
  write('deploy/monitoring/kustomization.yaml', 'resources: []');
  await assert.rejects(dashboard([module]), /has files that were not generated/);
  await assert.rejects(dashboard([CRDS]), /requires a module that exports a program/);
});
