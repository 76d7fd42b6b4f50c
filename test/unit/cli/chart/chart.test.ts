import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { chartFiles } from '../../../../src/cli/chart/chart.ts';
import type { ChartSource } from '../../../../src/cli/chart/chart.ts';
import { readerOf } from '../../../../src/cli/program/installation.ts';
import { Webhooks } from '../../../../src/webhook/webhooks.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly type?: string;
  readonly description?: string;
}

/** Returns the paths of the values that a schema allows. */
function pathsOf({ properties = {} }: Schema, prefix = ''): string[] {
  return Object.entries(properties).flatMap(([name, schema]) =>
    schema.properties ? pathsOf(schema, `${prefix}${name}.`) : [`${prefix}${name}`],
  );
}

function valueAt(values: unknown, path: string): unknown {
  let value = values;
  for (const key of path.split('.')) value = Object(value)[key];
  return value;
}

const example = readerOf(
  new URL('../../../../examples/06-library/static-site/deploy/', import.meta.url),
);

/** The project that `init` creates, with a CRD that is parsed in less time. */
const SOURCE: ChartSource = {
  program: 'static-site-controller',
  version: '0.1.0',
  read: (path) =>
    path.startsWith('crds/')
      ? 'kind: CustomResourceDefinition\nmetadata: { name: staticsites.example.com }\nspec: {}\n'
      : example(path),
  isNamespaced: true,
  monitoring: {
    dashboard: '{}',
    alerts: 'metadata: { labels: {} }\n',
    serviceMonitor: 'metadata: { labels: {} }\n',
  },
};

const SOURCES: Readonly<Record<string, ChartSource>> = {
  'a new project': SOURCE,
  'a program with webhooks': {
    ...SOURCE,
    webhooks: new Webhooks().defaults(COUNTS, () => undefined).entries(),
    hasWebhooksOn: true,
  },
  'a program with rules only': {
    ...SOURCE,
    webhooks: new Webhooks().rules(COUNTS, [{ rule: 'self.spec.count > 0' }]).entries(),
  },
  'a program with webhooks that are off': {
    ...SOURCE,
    webhooks: new Webhooks().validates(COUNTS, () => []).entries(),
    hasWebhooksOn: false,
  },
};

// hack/helm/chart.test.ts renders charts by Helm.
for (const [label, source] of Object.entries(SOURCES)) {
  test(`the chart of ${label} has the values that its templates use, and a schema of them`, () => {
    const files = chartFiles(source);
    const schema: Schema = JSON.parse(files.get('values.schema.json') ?? '');
    const values: unknown = parse(files.get('values.yaml') ?? '');
    const allowed = pathsOf(schema).filter((path) => path !== 'global');
    for (const path of allowed) assert.notEqual(valueAt(values, path), undefined, path);
    const templates = [...files].filter(([path]) => path.startsWith('templates/'));
    const used = templates.flatMap(([, text]) =>
      Array.from(text.matchAll(/\.Values\.([\w.]+)/g), ([, path = '']) => path),
    );
    assert.deepEqual(new Set(used), new Set(allowed));
    for (const [path, text] of templates) {
      assert.doesNotMatch(text, /__chart_/, path);
      const opened = text.match(/\{\{-? (?:if|with|range)\b/g)?.length ?? 0;
      assert.equal(text.match(/\{\{-? end\b/g)?.length ?? 0, opened, path);
      if (!path.endsWith('.yaml')) continue;
      // Without control structures, a template is a manifest.
      const manifest = text.replaceAll(/^ *\{\{-.*\}\}\n/gm, '').replaceAll(/\{\{.*?\}\}/g, 'x');
      for (const { errors } of parseAllDocuments(manifest)) assert.deepEqual(errors, [], path);
    }
    const { name, version, appVersion } = parse(files.get('Chart.yaml') ?? '');
    assert.deepEqual([name, version, appVersion], [source.program, '0.1.0', '0.1.0']);
  });
}

test('the chart of a program with a cluster-scoped controller has no value for namespaces', () => {
  const files = chartFiles({ ...SOURCE, isNamespaced: false });
  for (const [path, text] of files) {
    assert.doesNotMatch(text, /Values\.namespaces/, path);
  }
});

test('the notes of a program with conversions say that its objects need it', () => {
  const hub = { ...COUNTS, version: 'v2' };
  const converting = new Webhooks().converts(hub, COUNTS, {
    up: (count) => count,
    down: (count) => count,
  });
  const notes = (webhooks: Webhooks) =>
    chartFiles({ ...SOURCE, webhooks: webhooks.entries() }).get('templates/NOTES.txt') ?? '';
  assert.match(notes(converting), /uninstall/);
  assert.doesNotMatch(notes(new Webhooks().validates(COUNTS, () => [])), /uninstall/);
});

test('the namespace of the manifests is that of the release, whatever its name', () => {
  const read: ChartSource['read'] = (path) =>
    SOURCE.read(path).replaceAll('static-site-controller-system', 'default');
  const same = (files: ReadonlyMap<string, string>) =>
    [...files].filter(
      ([path]) => path.startsWith('templates/') && !path.includes('network-policy'),
    );
  assert.deepEqual(same(chartFiles({ ...SOURCE, read })), same(chartFiles(SOURCE)));
});

test('a Role of a controller is in the watched namespaces, otherwise in its own', () => {
  const file = 'rbac/controllers/static-site.yaml';
  const given = ['static-site-controller-system', 'my-static-site-controller-system'];
  const namespaces = given.map((namespace) => {
    const role = `kind: Role\nmetadata: { name: a, namespace: ${namespace} }\n`;
    const read: ChartSource['read'] = (path) => (path === file ? role : SOURCE.read(path));
    const text = chartFiles({ ...SOURCE, read }).get(`templates/${file}`) ?? '';
    return /namespace: (.*)/.exec(text)?.[1];
  });
  assert.deepEqual(namespaces, [
    '{{ $namespace | default $.Release.Namespace }}',
    '{{ $namespace | default "my-static-site-controller-system" }}',
  ]);
});

test('a chart needs the Deployment of the program', () => {
  assert.throws(
    () => chartFiles({ ...SOURCE, program: 'another' }),
    /no Deployment with the name of the program, "another"/,
  );
});
