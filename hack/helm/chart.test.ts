/**
 * Lints and renders the charts of programs with Helm's own code, and compares them with the manifests. Part of
 * `npm run test:real`, because it needs Go.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { parse } from 'yaml';
import { COUNTS } from '../../src/api/generated/count.ts';
import { declaredWebhooks } from '../../src/cli/program/declared-webhooks.ts';
import { installation, readerOf } from '../../src/cli/program/installation.ts';
import type { InstallationOptions } from '../../src/cli/program/installation.ts';
import type { ProgramOptions } from '../../src/cli/program/program.ts';
import { Webhooks } from '../../src/webhook/webhooks.ts';
import { chartOf, objectsOf, writeChart } from '../../test/support/charts.ts';
import { dashboardText, ruleGroups } from '../../test/support/observability.ts';
import { PROGRAM } from '../../test/support/own-program.ts';
import type { Manifest } from '../../test/support/roles.ts';
import { Helm, whyNoHelm } from './helm.ts';

const why = await whyNoHelm();
if (why !== undefined) console.log(`helm: SKIPPED, no chart was rendered: ${why}`);

const V2 = { ...COUNTS, version: 'v2' };

/** Webhooks of all kinds, and rules as a policy and in the schema. */
const WITH_WEBHOOKS: ProgramOptions = {
  ...PROGRAM,
  webhooksOnByDefault: true,
  webhooks: new Webhooks()
    .validates(COUNTS, () => [], { namespaceSelector: { matchLabels: { team: 'a' } } })
    .defaults(COUNTS, () => undefined)
    .converts(COUNTS, V2, { up: ({ spec }) => ({ spec }), down: ({ spec }) => ({ spec }) })
    .rules(COUNTS, [{ rule: 'self.spec.count > 0' }])
    .rules(COUNTS, [{ rule: 'self.spec.count < 9' }], { as: 'schema' }),
};

/** A program whose user has changed the manifests in ways that are unusual. */
function changedProgram(): ProgramOptions {
  const folder = mkdtempSync(join(tmpdir(), 'deploy-'));
  cpSync(join(import.meta.dirname, '../deploy'), folder, { recursive: true });
  const edit = (path: string, change: (text: string) => string) =>
    writeFileSync(join(folder, path), change(readFileSync(join(folder, path), 'utf8')));
  edit('manager/deployment.yaml', (text) => {
    const object = parse(text);
    const [container] = object.spec.template.spec.containers;
    for (const field of ['args', 'env', 'volumeMounts', 'resources']) delete container[field];
    for (const field of ['volumes', 'nodeSelector', 'priorityClassName'])
      delete object.spec.template.spec[field];
    delete object.spec.template.metadata.annotations;
    container.image = `example.com/a@sha256:${'b'.repeat(64)}`;
    container.imagePullPolicy = 'Never';
    object.spec.template.spec.tolerations = [{ operator: 'Exists' }];
    return JSON.stringify(object);
  });
  edit('rbac/identity/service-account.yaml', (text) =>
    text.replace('metadata:', "metadata:\n  annotations: {a: '{{ .b }}'}"),
  );
  edit('crds/foos.samplecontroller.k8s.io.yaml', (text) =>
    text.replace(
      '\nspec:',
      '\nspec:\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: https://a.example.com}}}',
    ),
  );
  edit(
    'namespace/namespace.yaml',
    (text) =>
      `---\n# Two Namespaces\n---\n${text}---\n${text.replace('name: crd-controller-system', 'name: tenants')}`,
  );
  edit('manager/disruption-budget.yaml', () => '# None.\n');
  edit('manager/metrics-service.yaml', (text) =>
    text.replaceAll('crd-controller-system', 'elsewhere'),
  );
  return { ...PROGRAM, deploy: pathToFileURL(`${folder}/`) };
}

/** A field with null is an absent field. A list to which values can add items has null without them. */
function withoutNulls(object: unknown): unknown {
  return JSON.parse(JSON.stringify(object), (_, value: unknown) => value ?? undefined);
}

/** Values of a chart, and the flags of `manifests` with the same meaning. */
const EQUAL: readonly (readonly [values: object, options: InstallationOptions])[] = [
  [{}, {}],
  [{}, { namespace: 'ops' }],
  [{ namespaces: ['dev', 'test'] }, { namespaces: ['dev', 'test'] }],
  [{ namespaces: ['ops'] }, { namespaces: ['ops'], namespace: 'ops' }],
  [
    { image: { repository: 'example.com:5000/a/b', tag: '2' } },
    { image: 'example.com:5000/a/b:2' },
  ],
];

const REJECTED: readonly (readonly [values: object, message: RegExp])[] = [
  [{ replicas: 'two' }, /replicas.*got string, want integer/s],
  [{ replica: 2 }, /additional properties 'replica' not allowed/],
  [{ image: { tag: 1.2 } }, /image\/tag.*got number, want string/s],
  [{ image: { pullPolicy: 'always' } }, /pullPolicy.*must be one of/s],
  [{ namespaces: 'dev' }, /namespaces.*got string, want array/s],
  [{ namespaces: ['Dev'] }, /namespaces\/0.*does not match pattern/s],
  [{ extraArgs: ['v=2'] }, /extraArgs\/0.*does not match pattern/s],
  [{ webhooks: { enabled: 'yes' } }, /webhooks\/enabled.*got string, want boolean/s],
];

describe('charts in Helm', { skip: why }, () => {
  let helm: Helm;
  const folders: string[] = [];
  const charts = new Map<ProgramOptions, string>();
  const changed = changedProgram();

  before(async () => {
    helm = await Helm.build();
    for (const program of [PROGRAM, WITH_WEBHOOKS, changed]) {
      const folder = writeChart(await chartOf(program));
      folders.push(folder);
      charts.set(program, folder);
    }
  });
  after(async () => {
    for (const folder of [...folders, changed.deploy ?? '']) rmSync(folder, { recursive: true });
    await helm.remove();
  });

  const folderOf = (program: ProgramOptions) => charts.get(program) ?? '';

  /** Returns the objects of a release by their names. */
  async function rendered(
    program: ProgramOptions,
    values: object,
    namespace = `${program.name}-system`,
  ) {
    const [release] = await helm.render(folderOf(program), { name: 'release', namespace, values });
    assert.equal(release?.error ?? '', '');
    const files = Object.entries(release?.files ?? {});
    const objects = objectsOf(
      files.filter(([path]) => !path.endsWith('.txt')).map(([, text]) => text),
    );
    for (const { kind, metadata } of objects.values()) {
      if (kind !== 'CustomResourceDefinition') continue;
      const { annotations } = metadata as { annotations?: Record<string, string> };
      assert.equal(annotations?.['helm.sh/resource-policy'], 'keep');
    }
    return { objects, notes: files.find(([path]) => path.endsWith('NOTES.txt'))?.[1] ?? '' };
  }

  /** Returns the objects of the manifests, as a chart has them. */
  function installed(program: ProgramOptions, options: InstallationOptions) {
    assert.ok(program.deploy);
    const { webhooksOnByDefault = true } = program;
    const webhooks = webhooksOnByDefault
      ? declaredWebhooks(program, options.namespaces)
      : undefined;
    const text = installation(program.name, readerOf(program.deploy), { webhooks, ...options });
    const objects = objectsOf([text]);
    for (const [key, { kind, metadata }] of objects) {
      // The release has a namespace before it has objects.
      if (kind === 'Namespace' && metadata.name !== 'tenants') objects.delete(key);
      if (kind !== 'CustomResourceDefinition') continue;
      const annotated = metadata as { annotations?: Record<string, string> };
      annotated.annotations = { ...annotated.annotations, 'helm.sh/resource-policy': 'keep' };
    }
    return objects;
  }

  for (const [label, program] of [
    ['the bundled program', PROGRAM],
    ['a program with webhooks', WITH_WEBHOOKS],
    ['a program with changed manifests', changed],
  ] as const) {
    describe(label, () => {
      it('has no warning of helm lint', async () => {
        assert.deepEqual(await helm.lint(folderOf(program)), []);
      });

      for (const [values, options] of EQUAL) {
        // Its image has a digest, which has precedence.
        if (program === changed && 'image' in values) continue;
        it(`with ${JSON.stringify(values)} in ${options.namespace ?? 'its namespace'} equals the manifests`, async () => {
          const { objects, notes } = await rendered(program, values, options.namespace);
          const wanted = installed(program, options);
          assert.deepEqual([...objects.keys()], [...wanted.keys()]);
          for (const [key, object] of wanted)
            assert.deepEqual(withoutNulls(objects.get(key)), object, key);
          assert.doesNotMatch(notes, /<no value>|\{\{/);
        });
      }
    });
  }

  for (const [values, message] of REJECTED) {
    it(`rejects ${JSON.stringify(values)}`, async () => {
      const [release] = await helm.render(folderOf(PROGRAM), { name: 'a', namespace: 'b', values });
      assert.match(release?.error ?? '', message);
    });
  }

  it('has the parts that are on or off by values', async () => {
    const plain = await rendered(PROGRAM, {});
    const names = async (values: object) => {
      const { objects } = await rendered(PROGRAM, values);
      return {
        objects,
        more: [...objects.keys()].filter((key) => !plain.objects.has(key)),
        less: [...plain.objects.keys()].filter((key) => !objects.has(key)),
      };
    };
    const at = 'crd-controller-system/crd-controller';
    assert.deepEqual(
      (await names({ crds: { install: false } })).less.map((key) => key.split('/')[0]),
      Array.from({ length: 4 }, () => 'CustomResourceDefinition'),
    );
    assert.deepEqual((await names({ networkPolicy: { enabled: true } })).more, [
      `NetworkPolicy/${at}`,
    ]);
    const monitored = await names({
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      alerts: { enabled: true },
      dashboard: { enabled: true },
    });
    assert.deepEqual(monitored.more, [
      `ConfigMap/${at}-dashboard`,
      `PrometheusRule/${at}`,
      `ServiceMonitor/${at}`,
    ]);
    const field = (key: string, name: string) =>
      (
        monitored.objects.get(key) as unknown as Record<string, Record<string, unknown>> | undefined
      )?.[name];
    assert.equal(
      field(`ConfigMap/${at}-dashboard`, 'data')?.['crd-controller.json'],
      dashboardText(),
    );
    assert.deepEqual(field(`PrometheusRule/${at}`, 'spec')?.['groups'], ruleGroups());
    assert.deepEqual(field(`ServiceMonitor/${at}`, 'metadata')?.['labels'], {
      'app.kubernetes.io/name': 'crd-controller',
      'app.kubernetes.io/component': 'metrics',
      release: 'prometheus',
    });
    const hooks = await names({ webhooks: { enabled: true } });
    assert.deepEqual(hooks.more, [
      'ClusterRole//crd-controller-webhook',
      'ClusterRoleBinding//crd-controller-webhook',
      'Role/crd-controller-system/crd-controller-webhook',
      'RoleBinding/crd-controller-system/crd-controller-webhook',
      'Service/crd-controller-system/crd-controller-webhook',
      'ValidatingWebhookConfiguration//crd-controller',
    ]);
  });

  it('has the values of the Pods', async () => {
    const { objects } = await rendered(WITH_WEBHOOKS, {
      replicas: 3,
      imagePullSecrets: [{ name: 'registry' }],
      image: { pullPolicy: 'Always', digest: `sha256:${'a'.repeat(64)}` },
      resources: { requests: null, limits: { memory: '1Gi' } },
      logVerbosity: 4,
      extraArgs: ['--logging-format=json'],
      extraEnv: [{ name: 'A', value: 'b' }],
      // Helm merges objects; null removes a field.
      nodeSelector: { pool: 'a', 'kubernetes.io/os': null },
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      priorityClassName: '',
      podAnnotations: { a: 'b' },
      serviceAccount: { annotations: { c: 'd' } },
      webhooks: { certificateSecret: 'tls', annotations: { e: 'f' } },
    });
    const at = 'crd-controller-system/crd-controller';
    const deployment = objects.get(`Deployment/${at}`) as unknown as DeploymentObject;
    const { replicas, template } = deployment.spec;
    const [container] = template.spec.containers;
    assert.equal(replicas, 3);
    assert.equal(template.metadata.annotations['a'], 'b');
    assert.deepEqual(template.spec['imagePullSecrets'], [{ name: 'registry' }]);
    assert.deepEqual(template.spec['nodeSelector'], { pool: 'a' });
    assert.deepEqual(template.spec['tolerations'], [{ operator: 'Exists' }]);
    assert.deepEqual(template.spec['affinity'], { nodeAffinity: {} });
    assert.equal(template.spec['priorityClassName'], null);
    assert.equal(container?.image, `crd-controller@sha256:${'a'.repeat(64)}`);
    assert.equal(container?.['imagePullPolicy'], 'Always');
    assert.deepEqual(container?.['resources'], { limits: { memory: '1Gi' } });
    assert.deepEqual(container?.args.slice(-3), [
      '-v=4',
      '--webhook-cert-path=/webhook-certificate',
      '--logging-format=json',
    ]);
    assert.deepEqual(container?.env.at(-1), { name: 'A', value: 'b' });
    assert.deepEqual(template.spec.volumes.at(-1), {
      name: 'webhook-certificate',
      secret: { secretName: 'tls' },
    });
    assert.equal(objects.has('ClusterRole//crd-controller-webhook'), false);
    const annotations = (key: string) =>
      (objects.get(key)?.metadata as { annotations?: Record<string, string> } | undefined)
        ?.annotations;
    assert.deepEqual(annotations(`ServiceAccount/${at}`), { c: 'd' });
    assert.equal(annotations('CustomResourceDefinition//counts.demo.mark8s.io')?.['e'], 'f');
    assert.equal(annotations('ValidatingWebhookConfiguration//crd-controller')?.['e'], 'f');

    const off = await rendered(WITH_WEBHOOKS, { webhooks: { enabled: false } });
    const crd = off.objects.get('CustomResourceDefinition//counts.demo.mark8s.io') as Manifest & {
      readonly spec: { readonly conversion?: unknown };
    };
    assert.equal(crd.spec.conversion, undefined);
    const kinds = new Set([...off.objects.keys()].map((key) => key.split('/')[0]));
    assert.ok(!kinds.has('ValidatingWebhookConfiguration'));
    assert.ok(kinds.has('ValidatingAdmissionPolicy'), 'rules need no server');
  });
});

interface DeploymentObject {
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly metadata: { readonly annotations: Record<string, string> };
      readonly spec: Readonly<Record<string, unknown>> & {
        readonly containers: readonly (Readonly<Record<string, unknown>> & {
          readonly image: string;
          readonly args: readonly string[];
          readonly env: readonly object[];
        })[];
        readonly volumes: readonly object[];
      };
    };
  };
}
