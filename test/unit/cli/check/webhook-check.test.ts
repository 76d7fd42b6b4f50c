import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  ENDPOINT_SLICES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  SECRETS,
  SERVICES,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import type { CheckResult } from '../../../../src/cli/check/check-result.ts';
import { checkWebhooks } from '../../../../src/cli/check/webhook-check.ts';
import type { Client } from '../../../../src/client/client.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { completeDefinition, webhookObjects } from '../../../../src/webhook/install.ts';
import { webhookNames } from '../../../../src/webhook/manifests.ts';
import { RestMapper } from '../../../../src/client/rest-mapper.ts';
import { Webhooks } from '../../../../src/webhook/webhooks.ts';
import { certificateChains } from '../../../support/certificate-chains.ts';
import { crdOf } from '../../../support/test-cluster.ts';

const NAMES = webhookNames('prog', 'prog-system');
const V2 = { ...COUNTS, version: 'v2' };
const declared = () =>
  new Webhooks()
    .defaults(COUNTS, () => undefined)
    .validates(COUNTS, () => [])
    .converts(COUNTS, V2, { up: ({ spec }) => ({ spec }), down: ({ spec }) => ({ spec }) })
    .rules(COUNTS, [{ rule: 'self.spec.count != 5' }]);

const SERVICE = 'webhook Service prog-system/prog-webhook';
const MUTATING = 'MutatingWebhookConfiguration prog';
const VALIDATING = 'ValidatingWebhookConfiguration prog';
const CONVERSION = 'conversion of counts.demo.mark8s.io';
const POLICY = 'ValidatingAdmissionPolicy prog.v1.counts.demo.mark8s.io';

describe('the check of webhooks', () => {
  let client: Client;

  beforeEach(async () => {
    const server = new ApiServer();
    client = new HttpClient({ handler: server.handler, server: 'in-process' });
    const metadata = { name: NAMES.namespace };
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  });

  const check = (webhooks = declared(), managesCertificate = true): Promise<CheckResult[]> =>
    checkWebhooks(
      {
        client,
        now: () => Date.now(),
        install: 'Install it',
        signal: new AbortController().signal,
      },
      { entries: webhooks.entries(), names: NAMES, managesCertificate },
    );
  const rowsOf = (results: readonly CheckResult[]) =>
    results.map(({ check, result, detail }) => `${check}: ${result}: ${detail}`);

  /** Installs the manifests as the program does, with a certificate and a ready replica. */
  async function install(webhooks = declared(), caPem?: string, servedPem?: string) {
    const entries = webhooks.entries();
    const mapper = new RestMapper(client);
    const crd = completeDefinition(crdOf(COUNTS), entries, NAMES);
    const objects = [crd, ...webhookObjects(entries, NAMES)];
    const authority = await createCertificateAuthority({ commonName: 'test' });
    const caBundle = Buffer.from(caPem ?? authority.certificatePem).toString('base64');
    for (const object of objects) {
      const complete = JSON.parse(JSON.stringify(object), (key, value) =>
        key === 'clientConfig' ? { ...value, caBundle } : value,
      );
      await client.create(await mapper.get(object.apiVersion, object.kind), complete);
    }
    const { certificatePem } = await authority.issue({
      commonName: 'webhook',
      dnsNames: [NAMES.dnsName],
      usages: 'server',
    });
    const data = { 'tls.crt': Buffer.from(servedPem ?? certificatePem).toString('base64') };
    const metadata = { namespace: NAMES.namespace, name: NAMES.secret };
    await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    await client.create(ENDPOINT_SLICES, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        namespace: NAMES.namespace,
        name: 'slice',
        labels: { 'kubernetes.io/service-name': NAMES.service },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
    });
  }

  test('passes for an installation of the program', async () => {
    await install();
    assert.deepEqual(rowsOf(await check()), [
      `${SERVICE}: ok: 1 ready endpoints`,
      `${MUTATING}: ok: has the webhooks of this release`,
      `${VALIDATING}: ok: has the webhooks of this release`,
      `${CONVERSION}: ok: is done by this program`,
      `${POLICY}: ok: installed`,
    ]);
  });

  test('fails for each part that is not installed, with the command that installs it', async () => {
    const results = await check();
    assert.deepEqual(
      results.map(({ check, result, next }) => `${check}: ${result}: ${next?.join()}`),
      [SERVICE, MUTATING, VALIDATING, CONVERSION, POLICY].map(
        (name) => `${name}: failed: Install it`,
      ),
    );
  });

  test('reports parts of another release or program', async () => {
    await install();
    const at = { name: 'prog' };
    const body = { webhooks: [] };
    await client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, at, { type: 'merge', body });
    await client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, at, {
      type: 'json',
      body: [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Ignore' }],
    });
    const crd = { name: 'counts.demo.mark8s.io' };
    const conversion = { spec: { conversion: { strategy: 'None', webhook: null } } };
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, crd, { type: 'merge', body: conversion });
    assert.deepEqual(rowsOf(await check()).slice(1, 4), [
      `${MUTATING}: failed: does not have mutating.v1.counts.demo.mark8s.io`,
      `${VALIDATING}: warning: failurePolicy of validating.v1.counts.demo.mark8s.io is not that of this release`,
      `${CONVERSION}: failed: has no webhook: other versions of stored objects are wrong`,
    ]);
  });

  test('compares the rules and the conditions of webhooks with those of this release', async () => {
    await install();
    for (const [path, value, name] of [
      ['matchConditions/0/expression', 'true', 'matchConditions'],
      ['rules/0/operations', ['CREATE'], 'rules'],
    ] as const) {
      await client.patch(
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        { name: 'prog' },
        { type: 'json', body: [{ op: 'replace', path: `/webhooks/0/${path}`, value }] },
      );
      assert.match(rowsOf(await check())[2] ?? '', new RegExp(`: warning: ${name} of `));
    }
  });

  test('rejects a CA bundle that has expired, and another authority with the same name', async () => {
    const before = { now: () => 0, monotonic: () => 0 };
    const expired = await createCertificateAuthority({
      commonName: 'test',
      clock: before,
      validityMs: 1000,
    });
    const same = await createCertificateAuthority({ commonName: 'test' });
    await install(declared(), same.certificatePem);
    assert.match(rowsOf(await check())[2] ?? '', /failed: the CA bundle of .* does not match/);
    const value = Buffer.from(expired.certificatePem).toString('base64');
    await client.patch(
      VALIDATING_WEBHOOK_CONFIGURATIONS,
      { name: 'prog' },
      { type: 'json', body: [{ op: 'replace', path: '/webhooks/0/clientConfig/caBundle', value }] },
    );
    assert.match(rowsOf(await check())[2] ?? '', /failed: .* has no valid certificate/);
  });

  for (const wanted of ['intermediate', 'root that is sent, too', 'self-signed certificate']) {
    test(`accepts a CA bundle with the end of the served chain: ${wanted}`, async () => {
      const chain = certificateChains().find(({ title }) => title === wanted);
      await install(declared(), chain?.anchors, chain?.sent);
      assert.ok((await check()).every(({ result }) => result === 'ok'));
    });
  }

  test('compares CA bundles with the served certificate', async () => {
    const other = await createCertificateAuthority({ commonName: 'other' });
    await install(declared(), other.certificatePem);
    const problems = (await check()).filter(({ result }) => result === 'failed');
    assert.deepEqual(
      problems.map(({ check }) => check),
      [MUTATING, VALIDATING, CONVERSION],
    );
    for (const { detail } of problems) assert.match(detail, /does not match the certificate/);
    // With certificates in files, the certificate is not known.
    assert.ok((await check(declared(), false)).every(({ result }) => result === 'ok'));
    await client.patch(
      VALIDATING_WEBHOOK_CONFIGURATIONS,
      { name: 'prog' },
      {
        type: 'json',
        body: [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }],
      },
    );
    const warned = (await check(declared(), false)).find(({ result }) => result === 'warning');
    assert.match(warned?.detail ?? '', /has no CA bundle yet/);
  });

  test('warns if no replica is ready', async () => {
    await install();
    const at = { namespace: NAMES.namespace, name: 'slice' };
    const endpoints = [{ addresses: ['10.0.0.1'], conditions: { ready: false } }];
    await client.patch(ENDPOINT_SLICES, at, { type: 'merge', body: { endpoints } });
    assert.equal((await check())[0]?.result, 'warning');
    await client.delete(ENDPOINT_SLICES, at);
    const [service] = await check();
    assert.equal(service?.result, 'warning');
    assert.match(service?.next?.join() ?? '', /kubectl -n prog-system get pods/);
  });

  test('warns of webhooks that can prevent a start', async () => {
    const pods = new Webhooks().validates(PODS, () => []);
    await install(pods);
    const warnings = async () =>
      (await check(pods)).filter(({ check }) => check.startsWith('webhook v'));
    assert.deepEqual(await warnings(), []);
    const change = (path: string, value: unknown) =>
      client.patch(
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        { name: 'prog' },
        {
          type: 'json',
          body: [{ op: 'replace', path: `/webhooks/0/${path}`, value }],
        },
      );
    await change('namespaceSelector', {});
    assert.deepEqual(rowsOf(await warnings()), [
      'webhook validating.v1.pods: warning: rejects pods in prog-system and kube-system while the program does not run, also what it needs to start',
    ]);
    const matchLabels = { reviewed: 'yes' };
    await change('objectSelector', { matchLabels });
    assert.deepEqual(await warnings(), []);
    await change('objectSelector', {});
    const key = 'kubernetes.io/metadata.name';
    const values = ['prog-system'];
    await change('namespaceSelector', { matchExpressions: [{ key, operator: 'NotIn', values }] });
    assert.match(rowsOf(await warnings()).join(), /rejects pods in kube-system while/);
    await change('rules/0/resources', ['*/*']);
    assert.match(rowsOf(await warnings()).join(), /rejects all kinds in/);
    await change('failurePolicy', 'Ignore');
    assert.deepEqual(await warnings(), []);
  });

  test('needs no Service for rules in CEL', async () => {
    const rules = new Webhooks().rules(COUNTS, [{ rule: 'self.spec.count != 5' }]);
    await install(rules);
    assert.deepEqual(rowsOf(await check(rules)), [`${POLICY}: ok: installed`]);
    await client.delete(VALIDATING_ADMISSION_POLICIES, { name: POLICY.split(' ')[1] ?? '' });
    assert.deepEqual(rowsOf(await check(rules)), [`${POLICY}: failed: not installed`]);
    assert.deepEqual(
      (await client.list(SERVICES)).items.filter(
        ({ metadata }) => metadata.namespace === 'prog-system',
      ),
      [],
    );
  });
});
