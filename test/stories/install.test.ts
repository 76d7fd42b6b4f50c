import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { DEPLOYMENTS, PODS } from '../../src/api/builtin.ts';
import type { Deployment } from '../../src/api/builtin.ts';
import type { Resource } from '../../src/api/resource.ts';
import { commandLine } from '../../src/cli/command-line.ts';
import { manifest as ourPackage } from '../../src/cli/program/package.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { findKubectl, Kubectl } from '../support/kubectl.ts';
import type { Manifest } from '../support/roles.ts';
import { manifestsOf } from '../support/roles.ts';
import { PROGRAM } from '../support/own-program.ts';

const PLURALS: Readonly<Record<string, string>> = {
  NetworkPolicy: 'networkpolicies',
  PriorityClass: 'priorityclasses',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
};
const CLUSTER_SCOPED = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'Namespace',
  'PriorityClass',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
]);

const FOLDER = join(import.meta.dirname, '../../hack/deploy');
const kubectlProgram = findKubectl();

function resourceOf({ apiVersion, kind }: Manifest): Resource {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`;
  return {
    group: group ?? '',
    version: version ?? '',
    plural,
    kind,
    namespaced: !CLUSTER_SCOPED.has(kind),
  };
}

/** Maps `kind/namespace/name` to documents, independent of their order. */
function byName(manifests: readonly Manifest[]): Map<string, Manifest> {
  const named = manifests.map((each): [string, Manifest] => {
    const { kind, metadata } = each;
    return [`${kind}/${metadata.namespace ?? ''}/${metadata.name}`, each];
  });
  return new Map(named.toSorted(byFirst));
}

function byFirst([left]: [string, unknown], [right]: [string, unknown]): number {
  return left < right ? -1 : 1;
}

/** The installation is not removed, so it is not tested in a cluster that the user provides. */
const isOurs = [undefined, 'embedded', 'real', 'cluster'].includes(process.env['CONTROL_PLANE']);

describe('hack/deploy/install.yaml on an empty cluster', { skip: !isOurs }, () => {
  let plane: ControlPlane;
  let kubectl: Kubectl | undefined;
  const manifests = manifestsOf('install.yaml');

  before(async () => {
    plane = await startControlPlane();
    if (kubectlProgram === undefined) return;
    kubectl = new Kubectl({
      program: kubectlProgram,
      kubeconfig: plane.kubeconfigPath,
      namespace: 'default',
    });
  });
  after(async () => {
    kubectl?.close();
    await plane.close();
  });

  const apply = (manifest: Manifest, dryRun = false) =>
    plane.client.patch(
      resourceOf(manifest),
      manifest.metadata,
      // Fields that kubectl has applied belong to kubectl.
      { type: 'apply', body: manifest, force: dryRun },
      { fieldManager: 'admin', fieldValidation: 'Strict', dryRun },
    );

  it('can be applied in order, and again', async () => {
    for (const all of [manifests, manifests]) for (const manifest of all) await apply(manifest);
  });

  it('its Pods are admitted by the restricted Pod Security level', async () => {
    const at = { namespace: 'crd-controller-system', name: 'crd-controller' };
    const { spec } = await plane.client.get(DEPLOYMENTS, at);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...at, labels: spec?.template.metadata?.labels ?? {} },
      spec: spec?.template.spec ?? { containers: [] },
    };
    await plane.client.create(PODS, pod, { dryRun: true });
    const careless = { ...pod, spec: { containers: [{ name: 'app', image: 'nginx' }] } };
    const creates = plane.client.create(PODS, careless, { dryRun: true });
    await assert.rejects(creates, /violates PodSecurity "restricted/);
  });

  it('its Deployment runs this version, with existing flags and a sufficient grace period', async () => {
    const at = { namespace: 'crd-controller-system', name: 'crd-controller' };
    const { spec } = await plane.client.get(DEPLOYMENTS, at);
    const { containers = [], terminationGracePeriodSeconds = 0 } = spec?.template.spec ?? {};
    const [container] = containers;
    assert.equal(container?.image, `crd-controller:${ourPackage().version}`);
    assert.equal(await commandLine(PROGRAM, [...(container.args ?? []), '--version'], {}), 0);
    assert.ok(terminationGracePeriodSeconds > 30);
    const ports = new Set(container.ports?.map(({ name }) => name));
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
      assert.ok(ports.has(String(container[probe]?.httpGet?.port)), probe);
    }
  });

  describe('with kubectl', { skip: kubectlProgram === undefined && 'there is no kubectl' }, () => {
    const built = async (folder: string) => {
      assert.ok(kubectl);
      const text = await kubectl.run('kustomize', join(FOLDER, folder));
      return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
    };

    it('can be applied by kubectl', async () => {
      const flags = ['--server-side', '--force-conflicts', '--namespace=crd-controller-system'];
      const output = await kubectl!.run('apply', ...flags, '-f', join(FOLDER, 'install.yaml'));
      assert.equal(output.trim().split('\n').length, manifests.length, output);
    });

    it('equals the output of the kustomization', async () => {
      assert.deepEqual(byName(await built('.')), byName(manifests));
    });

    it('the variant for single namespaces has no ClusterRole, and the same rules otherwise', async () => {
      const roles = (all: readonly Manifest[]) =>
        new Map(
          all
            .filter(({ rules }) => rules)
            .map(({ metadata, rules }): [string, unknown] => [metadata.name, rules]),
        );
      const namespaced = await built('namespaced');
      assert.deepEqual(
        namespaced.filter(({ kind }) => kind.startsWith('ClusterRole')),
        [],
      );
      // A user with rights in some namespaces only cannot grant access to reviews.
      const everywhere = manifests.filter(({ metadata }) => !/-metrics-/.test(metadata.name));
      assert.deepEqual(
        [...roles(namespaced)].toSorted(byFirst),
        [...roles(everywhere)].toSorted(byFirst),
      );
      if (plane.kind !== 'embedded') for (const each of namespaced) await apply(each, true);
    });

    it('its components can be added', async () => {
      const all = await built('everything');
      const found = byName(all);
      assert.ok([...byName(manifests).keys()].every((name) => found.has(name)));
      assert.ok(found.has('NetworkPolicy/crd-controller-system/crd-controller'));
      assert.ok(found.has('ClusterRole//crd-controller-pod-count'));
      assert.ok(found.has('ValidatingAdmissionPolicy//crd-controller-pods'));
      assert.ok(found.has('ValidatingWebhookConfiguration//crd-controller'));
      assert.ok(found.has('PrometheusRule/crd-controller-system/crd-controller'));
      assert.ok(found.has('ServiceMonitor/crd-controller-system/crd-controller'));
      assert.equal(
        found.get('ConfigMap/crd-controller-system/crd-controller-dashboard')?.metadata.labels?.[
          'grafana_dashboard'
        ],
        '1',
      );
      // A replica, and the permission to hold a Lease, for each shard.
      const deployment = found.get('Deployment/crd-controller-system/crd-controller');
      const { replicas, template } = (deployment as Manifest & Deployment).spec ?? {};
      const shards = (template?.spec?.containers ?? [])
        .flatMap(({ args = [] }) => args)
        .find((arg) => arg.startsWith('--shards='));
      assert.equal(shards, `--shards=${replicas}`);
      assert.deepEqual(
        found.get('Role/crd-controller-system/crd-controller-leader-election')?.rules?.[0]
          ?.resourceNames,
        Array.from({ length: replicas ?? 0 }, (_, shard) => `crd-controller-${shard}`),
      );
      // The Prometheus operator is not installed there.
      const known = all.filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.'));
      if (plane.kind !== 'embedded') for (const each of known) await apply(each, true);
    });
  });
});
