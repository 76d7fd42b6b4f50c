import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { ROLES } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import type { ProgramOptions } from '../../../../src/cli/program/program.ts';
import { Webhooks } from '../../../../src/webhook/webhooks.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { normaliseArguments } from '../../../../src/cli/flags/arguments.ts';
import { manifests } from '../../../../src/cli/commands/manifests.ts';
import { flagForms, parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { MANIFESTS_OPTIONS } from '../../../../src/cli/flags/options.ts';
import { applyManifests } from '../../../../src/client/apply/apply.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { parseManifests } from '../../../../src/client/apply/manifest.ts';
import { rulesOf } from '../../../support/roles.ts';
import type { Manifest } from '../../../support/roles.ts';
import { PROGRAM, RUN_OPTIONS, environmentOf } from '../../../support/own-program.ts';

const DEPLOY = join(import.meta.dirname, '../../../../hack/deploy');

const known = new Map<string, string>();

async function printed(...argv: readonly string[]): Promise<string> {
  const before = known.get(argv.join(' '));
  if (before !== undefined) return before;
  const { flags } = normaliseArguments(argv, flagForms(MANIFESTS_OPTIONS));
  const { values } = parseFlags(MANIFESTS_OPTIONS, flags, environmentOf());
  let text = '';
  assert.ok(PROGRAM.deploy);
  await manifests(PROGRAM, PROGRAM.deploy, values, { print: (line) => (text += `${line}\n`) });
  known.set(argv.join(' '), text);
  return text;
}

interface Document extends Manifest {
  readonly metadata: Manifest['metadata'] & { readonly labels?: Record<string, string> };
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly namespace?: string }[];
  readonly spec?: {
    readonly template?: {
      readonly spec: { readonly containers: readonly { image: string; args: readonly string[] }[] };
    };
  };
}

async function documents(...argv: readonly string[]): Promise<Document[]> {
  const all = parseAllDocuments(await printed(...argv));
  return all.map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS() as Document;
  });
}

/** Returns the manifests without CRDs. */
const SMALL = '--only=namespace,rbac,manager';

const named = (all: readonly Document[], ...kinds: readonly string[]) =>
  all
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ kind, metadata: { namespace, name } }) =>
      [kind, namespace, name].filter(Boolean).join(' '),
    );

const container = (all: readonly Document[]) =>
  all.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec.containers[0];

describe('manifests', () => {
  test('are identical to install.yaml', async () => {
    assert.equal(await printed(), readFileSync(join(DEPLOY, 'install.yaml'), 'utf8'));
    assert.equal(await printed('--controllers=*'), await printed());
    assert.equal(await printed('--only=rbac,crds,namespace,manager'), await printed());
  });

  test('can be applied, and applied again without a change', async () => {
    const server = new ApiServer();
    const client = new HttpClient({
      handler: server.handler,
      server: 'in-process',
      keepManagedFields: true,
    });
    const wanted = parseManifests([{ source: 'manifests', text: await printed() }]);
    const outcomes = async () => {
      const options = {
        fieldManager: 'admin',
        fieldValidation: 'Strict',
        namespace: 'default',
      } as const;
      const results: string[] = [];
      for await (const result of applyManifests(client, wanted, options)) {
        const { kind } = result.manifest.object;
        if (result.kind === 'rejected') assert.fail(`${kind}: ${result.rejection.message}`);
        results.push(`${kind} ${result.change}`);
      }
      return [...new Set(results)];
    };
    const first = await outcomes();
    for (const kind of ['Namespace', 'CustomResourceDefinition', 'Deployment', 'ServiceAccount']) {
      assert.ok(first.includes(`${kind} created`), first.join(', '));
    }
    assert.ok((await outcomes()).every((outcome) => outcome.endsWith(' unchanged')));
  });

  test('--namespace changes the namespace of all objects and bindings', async () => {
    const text = await printed('--namespace=ops');
    assert.ok(!text.includes('crd-controller-system'));
    const all = await documents('--namespace=ops');
    assert.deepEqual(named(all, 'Namespace', 'Deployment', 'ServiceAccount'), [
      'Namespace ops',
      'ServiceAccount ops crd-controller',
      'Deployment ops crd-controller',
    ]);
    for (const { subjects = [] } of all) {
      for (const { namespace } of subjects) assert.equal(namespace, 'ops');
    }
    const namespace = all.find(({ kind }) => kind === 'Namespace');
    assert.equal(namespace?.metadata.labels?.['pod-security.kubernetes.io/enforce'], 'restricted');
  });

  test('--image changes the image only', async () => {
    const before = (await printed(SMALL)).split('\n');
    const after = (await printed('--image=registry.example.com:5000/team/x:2', SMALL)).split('\n');
    const differing = after.filter((line, at) => line !== before[at]);
    assert.deepEqual(differing, ['          image: registry.example.com:5000/team/x:2']);
    assert.equal(after.length, before.length);
  });

  test('--controllers selects CRDs, roles and flags', async () => {
    const all = await documents('--controllers=count,foo');
    assert.deepEqual(named(all, 'CustomResourceDefinition'), [
      'CustomResourceDefinition counts.demo.mark8s.io',
      'CustomResourceDefinition foos.samplecontroller.k8s.io',
    ]);
    const roles = named(all, 'ClusterRole').filter((role) => !role.includes('metrics'));
    assert.deepEqual(roles, [
      'ClusterRole crd-controller-count',
      'ClusterRole crd-controller-foo',
      'ClusterRole crd-controller-events',
    ]);
    assert.ok(container(all)?.args.includes('--controllers=count,foo'));
    const { flags } = normaliseArguments(container(all)?.args ?? [], flagForms(RUN_OPTIONS));
    assert.deepEqual(parseFlags(RUN_OPTIONS, flags, environmentOf()).values.controllers, [
      'count',
      'foo',
    ]);
  });

  test('--controllers adds a controller that is off by default, with its roles and policy', async () => {
    const all = await documents('--controllers=*,pod-count');
    assert.ok(named(all, 'ClusterRole').includes('ClusterRole crd-controller-pod-count'));
    assert.ok(
      named(all, 'ClusterRoleBinding').includes('ClusterRoleBinding crd-controller-pod-count'),
    );
    // The policy limits the permission to patch Nodes.
    assert.deepEqual(
      named(all, 'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'),
      ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map(
        (kind) => `${kind} crd-controller-pod-count`,
      ),
    );
    assert.equal(named(all, 'CustomResourceDefinition').length, 4);
    assert.ok(container(all)?.args.includes('--controllers=count,webapp,at,foo,pod-count'));
  });

  test('--namespaces grants the same permissions in each namespace, and no others', async () => {
    const everywhere = await documents(SMALL);
    const all = await documents('--namespaces=dev,test', SMALL);
    const ofControllers = (manifest: Document) => !manifest.metadata.name.includes('metrics');
    assert.deepEqual(named(all.filter(ofControllers), 'ClusterRole', 'ClusterRoleBinding'), []);
    const within = (namespace: string) =>
      all.filter(({ kind, metadata }) => kind === 'Role' && metadata.namespace === namespace);
    const clusterRules = rulesOf(
      everywhere.filter(({ kind }) => kind === 'ClusterRole').filter(ofControllers),
    );
    for (const namespace of ['dev', 'test']) {
      assert.deepEqual(rulesOf(within(namespace)), clusterRules);
    }
    assert.deepEqual(named(within('crd-controller-system'), 'Role'), [
      'Role crd-controller-system crd-controller-leader-election',
      'Role crd-controller-system crd-controller-events',
    ]);
    for (const { kind, metadata, roleRef } of all.filter(ofControllers)) {
      if (kind !== 'RoleBinding') continue;
      assert.equal(roleRef?.kind, 'Role');
      assert.ok(named(all, 'Role').includes(`Role ${metadata.namespace} ${roleRef.name}`));
    }
    assert.ok(container(all)?.args.includes('--namespaces=dev,test'));
  });

  test('--only prints some parts', async () => {
    const crds = await documents('--only=crds');
    assert.deepEqual(new Set(crds.map(({ kind }) => kind)), new Set(['CustomResourceDefinition']));
    const parts = await documents('--only=namespace,rbac', '--namespaces=dev', '--controllers=at');
    assert.ok(parts.length > 5);
    assert.ok(
      parts.every(({ kind }) => kind !== 'Deployment' && kind !== 'CustomResourceDefinition'),
    );
  });
});

describe('manifests of a program with webhooks', () => {
  const V2 = { ...COUNTS, version: 'v2' };
  const webhooks: ProgramOptions['webhooks'] = (kit, flags) => {
    assert.ok(kit.client);
    assert.deepEqual(flags, { 'pod-count-events': true });
    return new Webhooks()
      .validates(COUNTS, () => [])
      .defaults(COUNTS, () => undefined)
      .converts(COUNTS, V2, { up: ({ spec }) => ({ spec }), down: ({ spec }) => ({ spec }) })
      .rules(COUNTS, [{ rule: 'self.spec.count > 0' }])
      .rules(COUNTS, [{ rule: 'self.spec.count < 9' }], { as: 'schema' });
  };
  const withWebhooks = async (...argv: readonly string[]) => {
    const { values } = parseFlags(MANIFESTS_OPTIONS, argv, environmentOf());
    let text = '';
    assert.ok(PROGRAM.deploy);
    const program = { ...PROGRAM, webhooks, webhooksOnByDefault: true };
    await manifests(program, PROGRAM.deploy, values, { print: (line) => (text += line) });
    return text;
  };

  test('can be applied, and applied again without a change', async () => {
    const server = new ApiServer();
    const client = new HttpClient({ handler: server.handler, server: 'in-process' });
    const text = await withWebhooks('--only=namespace,rbac,webhook,manager', '--namespace=ops');
    const wanted = parseManifests([{ source: 'manifests', text }]);
    const apply = async () => {
      const results: string[] = [];
      for await (const result of applyManifests(client, wanted)) {
        const { kind, metadata } = result.manifest.object;
        if (result.kind === 'rejected') assert.fail(`${kind}: ${result.rejection.message}`);
        const key = [metadata.namespace, metadata.name].filter(Boolean).join('/');
        if (/webhook|Policy/i.test(kind + metadata.name))
          results.push(`${kind} ${key} ${result.change}`);
      }
      return results;
    };
    const objects = [
      'Role ops/crd-controller-webhook',
      'RoleBinding ops/crd-controller-webhook',
      'ClusterRole crd-controller-webhook',
      'ClusterRoleBinding crd-controller-webhook',
      'Service ops/crd-controller-webhook',
      'MutatingWebhookConfiguration crd-controller',
      'ValidatingWebhookConfiguration crd-controller',
      'ValidatingAdmissionPolicy crd-controller.v1.counts.demo.mark8s.io',
      'ValidatingAdmissionPolicyBinding crd-controller.v1.counts.demo.mark8s.io',
    ];
    assert.deepEqual(
      await apply(),
      objects.map((object) => `${object} created`),
    );
    assert.deepEqual(
      await apply(),
      objects.map((object) => `${object} unchanged`),
    );
    const role = await client.get(ROLES, { namespace: 'ops', name: 'crd-controller-webhook' });
    assert.deepEqual(
      role.rules?.map(({ resources, resourceNames = [] }) => [resources, resourceNames]),
      [
        [['secrets'], ['crd-controller-webhook-certificate']],
        [['secrets'], []],
      ],
    );
  });

  test('have the conversion and the rules of the CRD, and the port of the Deployment', async () => {
    const text = await withWebhooks('--only=crds,manager', '--controllers=count,foo');
    const [count, foo, ...others] = parseAllDocuments(text).map((document) => document.toJS());
    const deployment = others.find(({ kind }) => kind === 'Deployment');
    assert.deepEqual(count.spec.conversion.webhook.clientConfig.service, {
      name: 'crd-controller-webhook',
      namespace: 'crd-controller-system',
      path: '/convert',
      port: 443,
    });
    const [{ schema }] = count.spec.versions;
    assert.deepEqual(schema.openAPIV3Schema['x-kubernetes-validations'], [
      { rule: 'self.spec.count < 9' },
    ]);
    assert.equal(foo.spec.conversion, undefined);
    const { ports } = deployment.spec.template.spec.containers[0];
    assert.deepEqual(ports.at(-1), { name: 'webhook', containerPort: 9443 });
  });
});

const refused: readonly (readonly [argv: readonly string[], message: RegExp])[] = [
  [['--controllers=bar'], /^unknown controller "bar"/],
  [['--namespace=Ops'], /^invalid value "Ops" for --namespace: a namespace consists of/],
  [['--namespaces=a,B'], /^invalid value "B" for --namespaces: a namespace consists of/],
  [['--image=a b'], /^invalid value "a b" for --image: must be an image name/],
  [['--only=roles'], /^invalid value "roles" for --only: must be one of "namespace", "crds"/],
  [
    ['--controllers=pod-count', '--namespaces=dev'],
    /^--namespaces cannot be combined with the controller pod-count/,
  ],
];

for (const [argv, message] of refused) {
  test(`rejects manifests ${argv.join(' ')}`, async () => {
    await assert.rejects(printed(...argv), { name: 'UsageError', message });
  });
}
