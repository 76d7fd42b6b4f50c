import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { check, getFileInfo, resolveConfig } from 'prettier';
import { parse } from 'yaml';
import { readTemplate } from '../../../src/cli/project/template-files.ts';
import { kindNames } from '../../../src/codegen/kind-names.ts';
import { projectOf } from '../../../src/codegen/project-steps.ts';
import type { ProjectStep, TemplateForm } from '../../../src/codegen/project-steps.ts';
import { programNames } from '../../../src/codegen/scaffold.ts';
import type { ProjectFiles } from '../../../src/codegen/template.ts';

const PROJECT = { name: 'Gateway', adds: 'project', version: 'v1alpha1' } as const;
/** What can be added to the project, in any order in which `Route` is added before its webhooks. */
const ADDITIONS = {
  kind: { name: 'Route', adds: 'kind', version: 'v1alpha1' },
  'webhooks of the first kind': { name: 'Gateway', adds: 'webhooks', version: 'v1alpha1' },
  'webhooks of the other kind': { name: 'Route', adds: 'webhooks', version: 'v1alpha1' },
  version: { name: 'Gateway', adds: 'version', version: 'v1', former: 'v1alpha1' },
} as const;
type AdditionName = keyof typeof ADDITIONS;

function ordersOf(names: readonly AdditionName[]): AdditionName[][] {
  if (names.length === 0) return [[]];
  const isPossible = (name: AdditionName) =>
    name !== 'webhooks of the other kind' || !names.includes('kind');
  return names
    .filter(isPossible)
    .flatMap((name) =>
      ordersOf(names.filter((other) => other !== name)).map((rest) => [name].concat(rest)),
    );
}

const ORDERS = ordersOf(Object.keys(ADDITIONS) as AdditionName[]);
const SCHEMAS = ['yaml', 'ts'] as const;

interface Step extends Pick<ProjectStep, 'adds' | 'former'> {
  readonly name: string;
  readonly version: string;
}

function stepOf({ name, version, ...step }: Step, schema: TemplateForm['schema']): ProjectStep {
  const names = {
    ...kindNames(name, 'acme.org'),
    ...programNames('gateway-controller'),
    version,
  };
  const webhooks = step.adds === 'webhooks' || step.adds === 'version';
  return { ...step, names, form: { schema, scope: 'Namespaced', 'test-runner': 'node', webhooks } };
}

/** Imported and declared names at the top level of a module, with the module that each is imported from. */
function declarationsOf(text: string): string[] {
  const imported = [...text.matchAll(/^import (?:type )?\{([^}]*)\} from '([^']*)';/gm)].flatMap(
    ([, names = '', from = '']) =>
      names
        .split(',')
        .map((name) => name.trim())
        .filter(Boolean)
        .map((name) => `${name} of ${from}`),
  );
  const declared = [
    ...text.matchAll(/^(?:export )?(?:async )?(?:const|function|type|interface) (\w+)/gm),
  ].map(([, name = '']) => name);
  return [...imported, ...declared].toSorted();
}

describe('a project that grows', () => {
  const templates = new Map<string, ProjectFiles>();
  before(async () => {
    for (const schema of SCHEMAS)
      for (const webhooks of [false, true])
        templates.set(`${schema} ${webhooks}`, await readTemplate({ schema, webhooks }));
  });

  const projectIn = (schema: TemplateForm['schema'], order: readonly AdditionName[]) => {
    const added = order.map((name) => stepOf(ADDITIONS[name], schema));
    const steps = [stepOf(PROJECT, schema), ...added];
    const forms = steps.map(
      ({ form }) => templates.get(`${schema} ${form.webhooks}`) ?? new Map<string, string>(),
    );
    return projectOf(steps, forms, '^0.1.0');
  };

  for (const schema of SCHEMAS)
    test(`has the same files and declarations in every order of additions (${schema})`, () => {
      assert.equal(ORDERS.length, 12);
      const [first = []] = ORDERS;
      const summaryOf = (order: readonly AdditionName[]) =>
        [...projectIn(schema, order)]
          // The webhooks of one of the kinds are tested in test/webhooks.test.ts.
          .map(
            ([path, text]) => [path.replace(/(gateway|route)-webhooks/, 'second'), text] as const,
          )
          .filter(([path]) => path !== 'test/webhooks.test.ts')
          .map(([path, text]) => [
            path,
            path.endsWith('second.test.ts')
              ? ''
              : path.endsWith('.ts')
                ? declarationsOf(text)
                : text.split('\n').toSorted(),
          ])
          .toSorted(([a = ''], [b = '']) => (String(a) < String(b) ? -1 : 1));
      const expected = summaryOf(first);
      for (const order of ORDERS) assert.deepEqual(summaryOf(order), expected, order.join());
    });

  test('has no duplicate import or declaration, and the format of prettier', async () => {
    const options = await resolveConfig(import.meta.filename);
    const seen = new Set<string>();
    for (const schema of SCHEMAS)
      for (const order of ORDERS)
        for (const [path, text] of projectIn(schema, order)) {
          if (seen.has(`${path} ${text}`)) continue;
          seen.add(`${path} ${text}`);
          const where = `${path} (${schema}: ${order.join()})`;
          const { inferredParser } = await getFileInfo(path);
          if (inferredParser !== null)
            assert.ok(await check(text, { ...options, filepath: path }), where);
          if (!path.endsWith('.ts')) continue;
          const sources = [...text.matchAll(/^import [^;]*?from '[^']*';/gm)].map(([line]) =>
            line.replace(/^import (type )?[^]*from/, 'import $1from'),
          );
          assert.deepEqual(sources, [...new Set(sources)], where);
          const names = declarationsOf(text).map((name) => name.replace(/ of .*/, ''));
          assert.deepEqual(names, [...new Set(names)], where);
        }
  });

  test('has webhooks for each kind, and tests of both', () => {
    for (const schema of SCHEMAS)
      for (const order of ORDERS) {
        const files = projectIn(schema, order);
        const webhooks = files.get('src/webhooks.ts') ?? '';
        for (const name of ['GATEWAYS', 'ROUTES'])
          for (const call of ['defaults', 'validates'])
            assert.match(webhooks, new RegExp(`\\.${call}\\(\\s*${name},`), order.join());
        const tests = [...files.keys()].filter((path) => path.endsWith('webhooks.test.ts'));
        assert.equal(tests.length, 2);
      }
  });

  test('a version keeps the comments of the CRD', () => {
    const crd = projectIn('yaml', ['version']).get('deploy/crds/gateways.acme.org.yaml') ?? '';
    const before = projectIn('yaml', []).get('deploy/crds/gateways.acme.org.yaml') ?? '';
    const lines = new Set(crd.split('\n'));
    assert.deepEqual(
      before.split('\n').filter((line) => !lines.has(line)),
      [],
    );
    assert.deepEqual(
      parse(crd).spec.versions.map(({ storage }: { storage: boolean }) => storage),
      [true, false],
    );
  });
});
