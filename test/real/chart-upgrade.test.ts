import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { STATIC_SITES } from '../../examples/06-library/static-site/src/generated/static-site.ts';
import { Helm, whyNoHelm } from '../../hack/helm/helm.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES } from '../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import { chartFiles } from '../../src/cli/chart/chart.ts';
import { monitoringOf } from '../../src/cli/chart/monitoring.ts';
import { commandLine } from '../../src/cli/command-line.ts';
import { ownManifests } from '../../src/cli/commands/generate-helm.ts';
import { readerOf } from '../../src/cli/program/installation.ts';
import { applyManifests } from '../../src/client/apply/apply.ts';
import { parseManifests } from '../../src/client/apply/manifest.ts';
import { writeChart } from '../support/charts.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { PROGRAM } from '../support/own-program.ts';
import { needsReal } from '../support/skip.ts';

const DEPLOY = join(import.meta.dirname, '../../examples/06-library/static-site/deploy');
const CRD = 'crds/staticsites.example.com.yaml';
const NAME = 'static-site-controller';
const SITE = { namespace: 'default', name: 'kept' };

const why = await whyNoHelm();
const skip = needsReal('a kube-apiserver') || (why !== undefined && `SKIPPED: ${why}`);

describe('An installation by a Helm chart', { skip, timeout: 240_000 }, () => {
  let helm: Helm;
  let plane: ControlPlane;

  before(async () => {
    helm = await Helm.build();
    plane = await startControlPlane();
    const metadata = { name: `${NAME}-system` };
    await plane.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  });
  after(async () => {
    await plane.close();
    await helm.remove();
  });

  /** Applies the chart of a program whose kind has these versions, of which the last one is stored. */
  async function upgradeTo(...versions: readonly string[]): Promise<readonly string[]> {
    const definition = parse(
      readFileSync(join(DEPLOY, CRD), 'utf8'),
    ) as Required<CustomResourceDefinition>;
    const [version] = definition.spec.versions;
    const all = versions.map((name, index) =>
      Object.assign({}, version, { name, storage: index === versions.length - 1 }),
    );
    const crd = stringify({ ...definition, spec: { ...definition.spec, versions: all } });
    const read = readerOf(new URL(`file://${DEPLOY}/`));
    const chart = writeChart(
      chartFiles({
        program: NAME,
        version: `0.${versions.length}.0`,
        read: (path) => (path === CRD ? crd : read(path)),
        isNamespaced: true,
        monitoring: monitoringOf(NAME, [], ownManifests()),
      }),
    );
    try {
      const [release] = await helm.render(chart, { name: NAME, namespace: `${NAME}-system` });
      assert.equal(release?.error ?? '', '');
      const templates = Object.entries(release?.files ?? {}).filter(
        ([path]) => !path.endsWith('.txt'),
      );
      const manifests = parseManifests(templates.map(([source, text]) => ({ source, text })));
      const rejections: string[] = [];
      for await (const result of applyManifests(plane.client, manifests)) {
        if (result.kind === 'rejected') rejections.push(result.rejection.message);
      }
      return rejections;
    } finally {
      rmSync(chart, { recursive: true });
    }
  }

  it('keeps the objects when the stored version changes, and drops the old version after migrate', async () => {
    assert.deepEqual(await upgradeTo('v1alpha1'), []);
    const created = await plane.client.create(STATIC_SITES, {
      apiVersion: 'example.com/v1alpha1',
      kind: 'StaticSite',
      metadata: SITE,
      spec: { image: 'nginx', replicas: 1 },
    });

    assert.deepEqual(await upgradeTo('v1alpha1', 'v1'), []);
    const storedVersions = async () => {
      const at = { name: 'staticsites.example.com' };
      return (await plane.client.get(CUSTOM_RESOURCE_DEFINITIONS, at)).status?.storedVersions;
    };
    assert.deepEqual(await storedVersions(), ['v1alpha1', 'v1']);
    const [rejection = '', ...others] = await upgradeTo('v1');
    assert.match(
      rejection,
      /status.storedVersions\[0\].*must remain in spec.versions|missing from spec.versions/,
    );
    assert.deepEqual(others, []);

    const args = ['migrate', 'staticsites.example.com', `--kubeconfig=${plane.kubeconfigPath}`];
    const print = () => undefined;
    assert.equal(await commandLine(PROGRAM, args, {}, { print, warn: print, colour: false }), 0);
    assert.deepEqual(await storedVersions(), ['v1']);
    assert.deepEqual(await upgradeTo('v1'), []);
    const kept = await plane.client.get({ ...STATIC_SITES, version: 'v1' }, SITE);
    assert.equal(kept.metadata.uid, created.metadata.uid);
  });
});
