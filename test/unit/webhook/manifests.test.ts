import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ValidatingAdmissionPolicy } from '../../../src/api/builtin.ts';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { isApiError } from '../../../src/api/api-error.ts';
import type { Draft } from '../../../src/api/object.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { invalid } from '../../../src/webhook/field-errors.ts';
import { installWebhooks, webhookObjects } from '../../../src/webhook/install.ts';
import {
  isBuiltin,
  webhookConfigurations,
  webhookNames,
  webhookRoles,
  webhookService,
} from '../../../src/webhook/manifests.ts';
import type { WebhookNames } from '../../../src/webhook/manifests.ts';
import { admissionPolicies, withSchemaRules } from '../../../src/webhook/policies.ts';
import { Webhooks } from '../../../src/webhook/webhooks.ts';
import { countDraft, crdOf } from '../../support/test-cluster.ts';

const NAMES = webhookNames('my-program', 'my-system');

/** A server with the manifests, which calls the functions in this process. */
async function install(webhooks: Webhooks, names: WebhookNames = NAMES) {
  const server = new ApiServer();
  const client = new HttpClient({ handler: server.handler, server: 'in-process' });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: names.namespace } };
  await client.create(NAMESPACES, namespace);
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(COUNTS));
  const earlier = new Webhooks().defaults(COUNTS, (draft) => void (draft.spec.count = 0));
  for (const each of [earlier, webhooks]) await installWebhooks(server, client, each, { names });
  const stop = () => {
    const paths = webhooks.entries().admission.map(({ path }) => path);
    const failing = () => Promise.reject(new Error('connection refused'));
    const urls = paths.map((path) => [`https://${names.dnsName}${path}`, failing] as const);
    server.registerWebhooks(Object.fromEntries(urls));
  };
  return Object.assign(client, { stop });
}

describe('Manifests of webhooks', () => {
  test('let an API server call the declared functions', async () => {
    const client = await install(
      new Webhooks()
        .defaults(COUNTS, (draft) => {
          draft.spec.count ??= 4;
          draft.metadata.labels = { ...draft.metadata.labels, defaulted: 'yes' };
        })
        .validates(COUNTS, ({ spec }) =>
          spec.count === 5 ? [invalid('spec.count', 'must not be 5')] : [],
        )
        .validates(COUNTS, ({ spec }) => (spec.count === 6 ? [invalid('spec.count', 'no')] : []), {
          name: 'another',
        }),
    );
    const created = await client.create(COUNTS, countDraft('default', { count: 3 }, 'a'));
    assert.deepEqual(created.metadata.labels, { defaulted: 'yes' });
    for (const count of [5, 6]) {
      await assert.rejects(client.create(COUNTS, countDraft('default', { count }, 'b')), (error) =>
        isApiError(error, 'invalid'),
      );
    }
  });

  test('let finalizers be removed while the program does not run', async () => {
    const client = await install(new Webhooks().validates(COUNTS, () => []));
    const at = { namespace: 'default', name: 'a' };
    const draft = countDraft('default', {}, 'a');
    const metadata = { ...draft.metadata, finalizers: ['example.com/test'] };
    await client.create(COUNTS, { ...draft, metadata });
    client.stop();
    await assert.rejects(
      client.patch(COUNTS, at, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } }),
    );
    await client.delete(COUNTS, at);
    await client.patch(COUNTS, at, { type: 'merge', body: { metadata: { finalizers: null } } });
    assert.deepEqual((await client.list(COUNTS)).items, []);
  });

  test('do not select built-in kinds in the namespace of the program and in kube-system', async () => {
    const client = await install(
      new Webhooks().validates(CONFIG_MAPS, () => [invalid('data', 'never')], {
        namespaceSelector: { matchLabels: { reviewed: 'yes' } },
      }),
    );
    const create = (namespace: string) =>
      client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name: 'a' },
      });
    const labels = { reviewed: 'yes' };
    for (const name of ['other', 'unlabelled']) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      await client.create(NAMESPACES, namespace);
    }
    const body = { metadata: { labels } };
    for (const name of ['my-system', 'kube-system', 'other'])
      await client.patch(NAMESPACES, { name }, { type: 'merge', body });
    for (const namespace of ['my-system', 'kube-system', 'unlabelled']) await create(namespace);
    await assert.rejects(create('other'), (error) => isApiError(error, 'invalid'));
  });

  test('know the groups of Kubernetes by their names', () => {
    const groups = ['', 'apps', 'rbac.authorization.k8s.io', 'example.com', 'k8s.io.example.com'];
    assert.deepEqual(
      groups.filter((group) => isBuiltin({ group })),
      groups.slice(0, 3),
    );
  });

  test('have the options of the functions', () => {
    const options = {
      name: 'check',
      operations: ['UPDATE', 'DELETE'] as const,
      subresources: ['', 'status'],
      whileDeleting: true,
      failurePolicy: 'Ignore' as const,
      timeoutSeconds: 3,
      sideEffects: 'NoneOnDryRun' as const,
      matchConditions: [{ name: 'own', expression: 'true' }],
      namespaceSelector: { matchLabels: { c: 'd' } },
      objectSelector: { matchLabels: { a: 'b' } },
    };
    const webhooks = new Webhooks().validates(COUNTS, () => [], options);
    const [mutating, validating] = webhookConfigurations(webhooks.entries(), NAMES);
    assert.equal(mutating, undefined);
    assert.deepEqual(validating?.webhooks, [
      {
        name: 'check.validating.v1.counts.demo.mark8s.io',
        clientConfig: {
          service: {
            name: 'my-program-webhook',
            namespace: 'my-system',
            path: '/validate-demo-mark8s-io-v1-count-check',
            port: 443,
          },
        },
        rules: [
          {
            apiGroups: ['demo.mark8s.io'],
            apiVersions: ['v1'],
            resources: ['counts', 'counts/status'],
            operations: ['UPDATE', 'DELETE'],
            scope: 'Namespaced',
          },
        ],
        matchPolicy: 'Equivalent',
        failurePolicy: 'Ignore',
        timeoutSeconds: 3,
        sideEffects: 'NoneOnDryRun',
        admissionReviewVersions: ['v1'],
        matchConditions: [{ name: 'own', expression: 'true' }],
        namespaceSelector: { matchLabels: { c: 'd' } },
        objectSelector: { matchLabels: { a: 'b' } },
      },
    ]);
    const cluster = new Webhooks().validates(NAMESPACES, () => []);
    const [, { webhooks: [namespaces] = [] } = {}] = webhookConfigurations(
      cluster.entries(),
      NAMES,
    );
    assert.equal(namespaces?.rules?.[0]?.scope, 'Cluster');
    const { namespaceSelector, objectSelector } = options;
    const rules = new Webhooks().rules(COUNTS, [{ rule: 'true' }], {
      name: 'more',
      failurePolicy: 'Ignore',
      namespaceSelector,
      objectSelector,
      matchConditions: [{ name: 'own', expression: 'true' }],
    });
    const [policy, binding] = admissionPolicies(rules.entries(), NAMES);
    const { metadata, spec } = policy as Draft<ValidatingAdmissionPolicy>;
    assert.equal(metadata.name, 'my-program.more.v1.counts.demo.mark8s.io');
    assert.equal(spec?.failurePolicy, 'Ignore');
    assert.deepEqual(spec.matchConstraints, {
      matchPolicy: 'Equivalent',
      resourceRules: spec.matchConstraints?.resourceRules,
      namespaceSelector,
      objectSelector,
    });
    assert.deepEqual(
      spec.matchConditions?.map(({ name }) => name),
      ['not-being-deleted', 'own'],
    );
    assert.deepEqual(binding?.spec, {
      policyName: metadata.name,
      validationActions: ['Deny'],
    });
  });

  test('let an API server convert objects', async () => {
    const V2 = { ...COUNTS, version: 'v2' };
    const webhooks = new Webhooks().converts(COUNTS, V2, {
      up: ({ spec }) => ({ spec: { ...spec, count: (spec?.count ?? 0) + 1 } }),
      down: ({ spec }) => ({ spec: { ...spec, count: (spec?.count ?? 0) - 1 } }),
    });
    assert.deepEqual(
      webhookObjects(webhooks.entries(), NAMES).map(({ kind }) => kind),
      ['Service'],
    );
    const client = await install(webhooks);
    const { name = '' } = crdOf(COUNTS).metadata;
    const [v1] = crdOf(COUNTS).spec?.versions ?? [];
    assert.ok(v1);
    const versions = [v1, { ...v1, name: 'v2', storage: false }];
    const patch = { type: 'merge', body: { spec: { versions } } } as const;
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, { name }, patch);
    await client.create(COUNTS, countDraft('default', { count: 3 }, 'a'));
    const read = await client.get(V2, { namespace: 'default', name: 'a' });
    assert.equal(read.spec.count, 4);
  });

  test('restrict webhooks and policies to the namespaces that the program watches', async () => {
    const webhooks = new Webhooks()
      .validates(COUNTS, ({ spec }) => (spec.count === 5 ? [invalid('spec.count', 'no')] : []))
      .rules(COUNTS, [{ rule: 'self.spec.count != 6' }]);
    const client = await install(
      webhooks,
      webhookNames('my-program', 'my-system', ['kube-system']),
    );
    for (const count of [5, 6]) {
      await client.create(COUNTS, countDraft('default', { count }, `a${count}`));
      await assert.rejects(client.create(COUNTS, countDraft('kube-system', { count }, 'a')));
    }
  });

  describe('with rules in CEL', () => {
    const rules = [
      {
        rule: "self.spec.count != 5 && self.spec.name != 'self'",
        message: 'must not be 5',
        fieldPath: '.spec.count',
      },
      {
        rule: 'self.spec.count >= oldSelf.spec.count',
        messageExpression: "'must not shrink ' + self.spec.name",
      },
    ];

    for (const as of ['policy', 'schema'] as const) {
      test(`reject objects by a ${as}`, async () => {
        const client = await install(new Webhooks().rules(COUNTS, rules, { as }));
        const change = (count: number) =>
          client.patch(
            COUNTS,
            { namespace: 'default', name: 'a' },
            { type: 'merge', body: { spec: { count } } },
          );
        await client.create(COUNTS, countDraft('default', { count: 3 }, 'a'));
        await assert.rejects(
          client.create(COUNTS, countDraft('default', { count: 5 }, 'b')),
          /spec\.count: .*must not be 5/,
        );
        await assert.rejects(client.create(COUNTS, countDraft('default', { name: 'self' }, 'b')));
        await change(4);
        await assert.rejects(change(3), /must not shrink nginx/);
      });
    }

    test('review deletions and the kinds of Kubernetes', async () => {
      const client = await install(
        new Webhooks()
          .rules(
            CONFIG_MAPS,
            [{ rule: "self.metadata.name != 'protected'", reason: 'FieldValueForbidden' }],
            {
              operations: ['DELETE'],
            },
          )
          .rules(
            CONFIG_MAPS,
            [{ rule: "request.userInfo.username != 'jane' && !has(self.metadata.labels.self)" }],
            { name: 'user', operations: ['CREATE'] },
          ),
      );
      const labelled = { namespace: 'my-system', name: 'labelled', labels: { self: 'yes' } };
      await assert.rejects(
        client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: labelled }),
        (error) => isApiError(error, 'invalid'),
      );
      for (const name of ['protected', 'other']) {
        const metadata = { namespace: 'my-system', name, labels: { other: 'yes' } };
        await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
      }
      await client.delete(CONFIG_MAPS, { namespace: 'my-system', name: 'other' });
      await assert.rejects(
        client.delete(CONFIG_MAPS, { namespace: 'my-system', name: 'protected' }),
        (error) => isApiError(error, 'forbidden'),
      );
    });

    test('are added to the schema of their version and kind only, after those in the CRD', () => {
      const crd = crdOf(COUNTS);
      const [v1] = crd.spec?.versions ?? [];
      assert.ok(crd.spec && v1);
      const versions = [v1, { ...v1, name: 'v2', storage: false }];
      const declared = new Webhooks()
        .rules({ ...COUNTS, version: 'v2' }, [{ rule: 'true' }], { as: 'schema' })
        .rules(CONFIG_MAPS, [{ rule: 'false' }], { as: 'schema' })
        .rules({ ...COUNTS, version: 'v2' }, [{ rule: '1 == 1' }]);
      const whole = { ...crd, spec: { ...crd.spec, versions } };
      const changed = withSchemaRules(whole, declared.entries()).spec?.versions ?? [];
      assert.deepEqual(changed[0], v1);
      const { 'x-kubernetes-validations': before = [] } = v1.schema?.openAPIV3Schema ?? {};
      assert.deepEqual(changed[1]?.schema?.openAPIV3Schema?.['x-kubernetes-validations'], [
        ...before,
        { rule: 'true' },
      ]);
    });

    test('are declared once for each kind and name, with options of their place', () => {
      const declare = () => new Webhooks().rules(COUNTS, rules);
      assert.throws(() => declare().rules(COUNTS, rules), /set the option name/);
      declare().rules(COUNTS, rules, { name: 'more' }).rules(COUNTS, rules, { as: 'schema' });
      assert.throws(
        () => new Webhooks().rules(COUNTS, rules, { as: 'schema', failurePolicy: 'Ignore' }),
        /^RangeError: .*the option failurePolicy is for rules in a policy/,
      );
      assert.throws(
        () => new Webhooks().rules(COUNTS, rules, { operations: ['CREATE', 'DELETE'] }),
        /declare the rules for DELETE separately/,
      );
    });
  });

  test('send requests to the webhook port of the Pods, with the permissions of the ServiceAccount', () => {
    const { metadata, spec } = webhookService(NAMES);
    assert.deepEqual(
      [metadata.name, metadata.namespace, spec?.selector, spec?.ports?.[0]?.targetPort],
      ['my-program-webhook', 'my-system', { 'app.kubernetes.io/name': 'my-program' }, 'webhook'],
    );
    const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
    const roles = webhookRoles({ namespace: [rule], cluster: [] }, NAMES);
    for (const { metadata: each } of roles) assert.deepEqual(each.labels, metadata.labels);
    assert.ok(metadata.labels);
    const subjects = roles.flatMap((role) => ('subjects' in role ? (role.subjects ?? []) : []));
    assert.deepEqual(
      new Set(subjects.map(({ name, namespace }) => `${namespace}/${name}`)),
      new Set(['my-system/my-program']),
    );
    assert.deepEqual(
      roles.flatMap((role) =>
        'roleRef' in role ? [[role.kind, role.roleRef.kind, role.roleRef.name]] : [],
      ),
      [
        ['RoleBinding', 'Role', 'my-program-webhook'],
        ['ClusterRoleBinding', 'ClusterRole', 'my-program-webhook'],
      ],
    );
  });
});
