import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, test } from 'node:test';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CUSTOM_RESOURCE_DEFINITIONS,
  ROLE_BINDINGS,
  ROLES,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../../src/api/builtin.ts';
import type { Draft } from '../../../src/api/object.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { CaBundleKeeper, caBundleRules } from '../../../src/webhook/ca-bundle.ts';
import { certificateRules } from '../../../src/webhook/certificates.ts';
import { countCrd } from '../../support/test-cluster.ts';
import {
  AT,
  CertificateReplicas,
  CONFIGURATION,
  CONFIGURATION_TYPE,
  MINUTE_MS,
  webhookOf,
} from './certificate-replicas.ts';

const HOUR_MS = 60 * MINUTE_MS;
const CRD = 'counts.demo.mark8s.io';
const TARGETS = {
  validatingWebhookConfigurations: [CONFIGURATION],
  customResourceDefinitions: [CRD],
};
/** Certificates that are not renewed during a test. */
const OPTIONS = { validityMs: 1000 * HOUR_MS, authorityValidityMs: 10_000 * HOUR_MS };
const PATCH = 'PATCH validatingwebhookconfigurations';

let cluster: CertificateReplicas;

describe('CaBundleKeeper', () => {
  beforeEach(() => {
    cluster = new CertificateReplicas();
  });

  afterEach(() => cluster.end());

  const start = () => cluster.start({ targets: TARGETS, options: OPTIONS });

  async function assertInjected() {
    assert.deepEqual(await cluster.bundles(), [await cluster.text('ca.crt')]);
  }

  it('updates objects that are created later, and those that are created again', async () => {
    const replica = await start();
    await cluster.pass(MINUTE_MS);
    assert.ok(replica.isTrusted, 'objects that do not exist have no CA bundle');
    await cluster.configure();
    await cluster.pass(1000);
    await assertInjected();
    await cluster.client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: CONFIGURATION });
    await cluster.configure();
    await cluster.pass(1000);
    await assertInjected();
    assert.deepEqual(replica.errors(), []);
  });

  it('writes nothing while nothing changes', async () => {
    await cluster.configure();
    const replica = await start();
    await cluster.pass(MINUTE_MS);
    const { length } = replica.writes;
    await cluster.pass(90 * MINUTE_MS, HOUR_MS);
    assert.deepEqual(replica.writes.slice(length), []);
  });

  it('updates only webhooks whose host is a name of the certificate', async () => {
    await cluster.configure();
    const at = { name: CONFIGURATION };
    const { webhooks = [], ...object } = await cluster.client.get(
      VALIDATING_WEBHOOK_CONFIGURATIONS,
      at,
    );
    const [own, other] = webhooks;
    assert.ok(own && other);
    const url = { ...other, clientConfig: { url: 'https://webhook.default.svc/x' } };
    const service = { namespace: 'default', name: 'other' };
    await cluster.client.update(VALIDATING_WEBHOOK_CONFIGURATIONS, {
      ...object,
      webhooks: [{ ...other, name: 'c.example.com', clientConfig: { service } }, own, url],
    });
    await start();
    await cluster.pass(1000);
    const stored = await cluster.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, at);
    const has = stored.webhooks?.map(({ clientConfig }) => clientConfig.caBundle !== undefined);
    assert.deepEqual(has, [false, true, true]);
  });

  it('updates the conversion webhook of a CustomResourceDefinition', async () => {
    const crd = countCrd();
    await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd);
    const replica = await start();
    await cluster.pass(1000);
    const read = () => cluster.client.get(CUSTOM_RESOURCE_DEFINITIONS, { name: CRD });
    assert.deepEqual((await read()).spec.conversion, { strategy: 'None' });
    assert.ok(replica.isTrusted);
    await cluster.client.patch(
      CUSTOM_RESOURCE_DEFINITIONS,
      { name: CRD },
      {
        type: 'merge',
        body: { spec: { conversion: conversion() } },
      },
    );
    await cluster.pass(1000);
    const { caBundle = '' } = (await read()).spec.conversion?.webhook?.clientConfig ?? {};
    assert.equal(Buffer.from(caBundle, 'base64').toString(), await cluster.text('ca.crt'));
  });

  it('does not change a CustomResourceDefinition whose conversion was removed, and reports that once', async () => {
    await cluster.configure();
    const spec = { ...countCrd().spec, conversion: conversion() };
    await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, { ...countCrd(), spec });
    const replica = await start();
    await cluster.pass(1000);
    const set = (value: object) =>
      cluster.client.patch(
        CUSTOM_RESOURCE_DEFINITIONS,
        { name: CRD },
        { type: 'merge', body: { spec: { conversion: value } } },
      );
    const reports = () =>
      replica.lines.lines.filter(({ message }) => /does not call the webhooks/.test(message));
    const { length } = replica.writes;
    assert.deepEqual(reports(), []);
    await set({ strategy: 'None', webhook: null });
    await cluster.client.patch(
      CUSTOM_RESOURCE_DEFINITIONS,
      { name: CRD },
      { type: 'merge', body: { metadata: { labels: { changed: 'true' } } } },
    );
    await cluster.pass(MINUTE_MS);
    assert.equal(reports().length, 1);
    assert.deepEqual([replica.writes.slice(length), replica.errors()], [[], []]);
    assert.ok(replica.isTrusted, 'a missing conversion does not prevent admission');
    const restored = await set(conversion());
    assert.equal(restored.spec.conversion?.webhook?.clientConfig?.caBundle, undefined);
    await cluster.pass(1000);
    assert.deepEqual(replica.writes.slice(length), ['PATCH customresourcedefinitions']);
  });

  it('lets another manager remove a webhook by server-side apply', async () => {
    await apply(['a', 'b']);
    await start();
    await cluster.pass(1000);
    await assertInjected();
    await apply(['b']);
    await cluster.pass(1000);
    const { webhooks: left = [] } = await cluster.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, {
      name: CONFIGURATION,
    });
    assert.deepEqual(
      left.map(({ name }) => name),
      ['b.example.com'],
    );
    await assertInjected();
  });

  it('restores a CA bundle that another writer removed, and limits the writes against one that repeats it', async () => {
    await cluster.configure();
    const replica = await start();
    await cluster.pass(MINUTE_MS);
    const remove = () =>
      cluster.client.patch(
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        { name: CONFIGURATION },
        {
          type: 'json',
          body: [{ op: 'replace', path: '/webhooks/0/clientConfig/caBundle', value: 'eA==' }],
        },
        { fieldManager: 'other' },
      );
    await remove();
    await cluster.pass(1000, 100);
    await assertInjected();
    const { length } = replica.writes;
    for (let times = 0; times < 200; times++) {
      if ((await cluster.bundles()).length === 1) await remove();
      await cluster.pass(1000, 1000);
    }
    const patches = replica.writes.slice(length);
    assert.ok(patches.length > 4 && patches.length < 12, `${patches.length} writes`);
    const line = replica.lines.lines.find(({ message }) => message.startsWith('Another writer'));
    assert.match(String(line?.fields['see']), /^kubectl get validatingwebhookconf\S+ checks/);
    await cluster.pass(20 * MINUTE_MS);
    await assertInjected();
    // Twice, because the first write needs no backoff after this time.
    for (let times = 0; times < 2; times++) {
      await remove();
      await cluster.pass(1000, 100);
      await assertInjected();
    }
  });

  it('writes a changed bundle at once, also during a backoff', async () => {
    await cluster.configure();
    await start();
    await cluster.pass(MINUTE_MS);
    const body = [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }] as const;
    const at = { name: CONFIGURATION };
    for (let times = 0; times < 12; times++) {
      if ((await cluster.bundles()).length > 1) break;
      await cluster.client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, at, { type: 'json', body });
      await cluster.pass(1000, 500);
    }
    assert.equal((await cluster.bundles()).length, 2, 'no backoff');
    await cluster.client.delete(SECRETS, AT);
    await cluster.pass(1000, 100);
    await assertInjected();
  });

  it('retries a write after an error, logs it once, and is not ready meanwhile', async () => {
    await cluster.configure();
    await cluster.configure('second');
    let isFailing = true;
    const handler: HttpHandler = (request) =>
      isFailing && request.method === 'PATCH' && request.path.includes('/second')
        ? Promise.reject(new Error('connection refused'))
        : cluster.server.handler(request);
    const targets = { validatingWebhookConfigurations: [CONFIGURATION, 'second'] };
    const replica = await cluster.start({ handler, targets, options: OPTIONS });
    await cluster.pass(30_000, 1000);
    await assertInjected();
    assert.ok(!replica.isTrusted);
    assert.equal(replica.errors().filter((one) => one.startsWith('Unable to update')).length, 1);
    isFailing = false;
    await cluster.pass(MINUTE_MS);
    assert.ok(replica.isTrusted);
    assert.deepEqual(await cluster.bundles('second'), await cluster.bundles());
  });

  it('logs no error for a write that a lost lease interrupts', async () => {
    await cluster.configure();
    const handler: HttpHandler = async (request) => {
      if (request.method !== 'PATCH') return cluster.server.handler(request);
      await untilAborted(request.signal ?? AbortSignal.abort());
      throw new Error('interrupted');
    };
    const replica = await cluster.start({ handler, options: OPTIONS });
    await cluster.pass(1000);
    assert.deepEqual(replica.writes.at(-1), PATCH);
    await replica.resign();
    assert.deepEqual(replica.errors(), []);
  });

  it('changes the current version of an object only', async () => {
    await cluster.configure();
    const other = { namespace: 'default', name: 'other' };
    let isRacing = true;
    const handler: HttpHandler = async (request) => {
      if (isRacing && request.method === 'PATCH') {
        isRacing = false;
        const at = { name: CONFIGURATION };
        const { webhooks = [], ...object } = await cluster.client.get(
          VALIDATING_WEBHOOK_CONFIGURATIONS,
          at,
        );
        for (const { clientConfig } of webhooks) clientConfig.service = other;
        await cluster.client.update(VALIDATING_WEBHOOK_CONFIGURATIONS, { ...object, webhooks });
      }
      return cluster.server.handler(request);
    };
    const replica = await cluster.start({ handler, options: OPTIONS });
    await cluster.pass(10_000, 1000);
    assert.deepEqual(await cluster.bundles(), ['']);
    assert.deepEqual(
      replica.writes.filter((one) => one === PATCH),
      [PATCH],
    );
    assert.deepEqual(replica.errors(), []);
  });

  it('works with the permissions of its rules, and of those of the certificate', async () => {
    await cluster.configure();
    await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, {
      ...countCrd(),
      spec: { ...countCrd().spec, conversion: conversion() },
    });
    const metadata = { name: 'webhook', namespace: 'default' };
    const apiGroup = 'rbac.authorization.k8s.io';
    const apiVersion = `${apiGroup}/v1`;
    const subjects = [{ kind: 'User', apiGroup, name: 'webhook' }];
    await cluster.client.create(ROLES, {
      apiVersion,
      kind: 'Role',
      metadata,
      rules: [...certificateRules(AT.name)],
    });
    await cluster.client.create(ROLE_BINDINGS, {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      subjects,
      roleRef: { apiGroup, kind: 'Role', name: 'webhook' },
    });
    await cluster.client.create(CLUSTER_ROLES, {
      apiVersion,
      kind: 'ClusterRole',
      metadata: { name: 'webhook' },
      rules: [...caBundleRules(TARGETS)],
    });
    await cluster.client.create(CLUSTER_ROLE_BINDINGS, {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'webhook' },
      subjects,
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'webhook' },
    });
    const refused: string[] = [];
    const handler: HttpHandler = async (request) => {
      const headers = { ...request.headers, 'impersonate-user': 'webhook' };
      const response = await cluster.server.handler({ ...request, headers });
      if (response.status === 403) refused.push(`${request.method} ${request.path}`);
      return response;
    };
    const replica = await cluster.start({ handler, targets: TARGETS });
    await cluster.pass(25 * MINUTE_MS);
    await assertInjected();
    assert.ok(replica.isTrusted);
    assert.deepEqual([refused, replica.errors()], [[], []]);
    assert.deepEqual(
      new Set(replica.writes),
      new Set(['POST secrets', PATCH, 'PATCH customresourcedefinitions', 'PUT secrets']),
    );
  });

  /** Applies the webhooks as `kubectl apply --server-side` does. */
  async function apply(names: readonly string[]) {
    const webhooks = names.map(webhookOf);
    const metadata = { name: CONFIGURATION };
    await cluster.client.patch(
      VALIDATING_WEBHOOK_CONFIGURATIONS,
      { name: CONFIGURATION },
      { type: 'apply', body: { ...CONFIGURATION_TYPE, metadata, webhooks } },
      { fieldManager: 'kubectl' },
    );
  }
});

function conversion(): NonNullable<Draft<CustomResourceDefinition>['spec']['conversion']> {
  const service = { namespace: 'default', name: 'webhook', path: '/convert' };
  return {
    strategy: 'Webhook',
    webhook: { clientConfig: { service }, conversionReviewVersions: ['v1'] },
  };
}

test('a keeper listens to changes of the bundle until it stops', async () => {
  const listeners = new Set<() => void>();
  const confirmed: string[] = [];
  const certificate = {
    dnsNames: ['webhook.default.svc'],
    bundle: { pem: 'a', authorities: [] },
    assertCurrent: () => Promise.resolve(),
    confirm: ({ pem }: { readonly pem: string }) => void confirmed.push(pem),
    onChange: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const stop = new AbortController();
  const targets = { validatingWebhookConfigurations: ['none'] };
  const running = new CaBundleKeeper({ client, clock, certificate }, targets).run(stop.signal);
  await clock.advance(1000);
  assert.deepEqual([listeners.size, new Set(confirmed)], [1, new Set(['a'])]);
  const { length } = confirmed;
  for (const listener of listeners) listener();
  assert.equal(confirmed.length, length, 'the bundle is the same');
  certificate.bundle.pem = 'b';
  for (const listener of listeners) listener();
  await clock.advance(1000);
  assert.equal(confirmed.at(-1), 'b');
  stop.abort();
  await clock.advance(1000);
  await running;
  assert.equal(listeners.size, 0);
});
