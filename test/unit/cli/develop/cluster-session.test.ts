import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../../../src/api/builtin.ts';
import type { CustomResourceConversion } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { ClusterSession } from '../../../../src/cli/develop/cluster-session.ts';
import * as s from '../../../../src/schema.ts';
import { FakeClock } from '../../../../src/testing.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { Webhooks } from '../../../../src/webhook/webhooks.ts';

const OLD = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Site',
  plural: 'sites',
  spec: s.object({ text: s.string() }),
});
const SITES = s.customResource({
  group: 'example.com',
  version: 'v2',
  kind: 'Site',
  plural: 'sites',
  spec: s.object({ text: s.string() }),
  otherVersions: [OLD],
});
const { spec } = SITES.definition;
/** With the stored version, which needs no conversion, behind the other one. */
const DEFINITION = {
  ...SITES.definition,
  spec: { ...spec, versions: spec.versions.toReversed() },
};
const NAME = { name: 'sites.example.com' };
const { certificatePem: AUTHORITY } = await createCertificateAuthority({ commonName: 'test' });
const URL_OF_PROGRAM = 'https://127.0.0.1:9443';
const FORMER: CustomResourceConversion = {
  strategy: 'Webhook',
  webhook: {
    clientConfig: { url: 'https://former.example.com/convert' },
    conversionReviewVersions: ['v1'],
  },
};

/** A cluster, and sessions of a program with a webhook and a conversion. */
function newCluster() {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  const lines: string[] = [];
  const webhooks = new Webhooks()
    .validates(SITES, () => undefined)
    .converts(OLD, SITES, { up: ({ spec }) => ({ spec }), down: ({ spec }) => ({ spec }) });
  const newSession = () =>
    new ClusterSession({
      client,
      program: 'site-controller',
      definitions: [DEFINITION],
      webhooks: webhooks.entries(),
      endpoint: { url: URL_OF_PROGRAM, authority: AUTHORITY },
      print: (line) => lines.push(line.trim()),
    });
  const names = async () => {
    const lists = [
      await client.list(CUSTOM_RESOURCE_DEFINITIONS),
      await client.list(MUTATING_WEBHOOK_CONFIGURATIONS),
      await client.list(VALIDATING_WEBHOOK_CONFIGURATIONS),
    ];
    return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
  };
  const createSite = async () => {
    // Until the CRD is served.
    await clock.advance(10_000);
    await client.create(SITES, {
      apiVersion: 'example.com/v2',
      kind: 'Site',
      metadata: { namespace: 'default', name: 'one' },
      spec: { text: 'a' },
    });
  };
  const conversion = async () =>
    (await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)).spec.conversion;
  return { client, lines, newSession, names, createSite, conversion };
}

const CONFIGURATION = 'site-controller-npm-start';

describe('A session in a cluster', () => {
  it('prints and creates what the program needs, and removes it', async () => {
    const { client, lines, newSession, names, conversion } = newCluster();
    await newSession().start();
    assert.deepEqual(await names(), [NAME.name, CONFIGURATION]);
    assert.deepEqual(
      lines.map((line) => line.split(';')[0]),
      [
        `create CustomResourceDefinition ${NAME.name}`,
        `create ValidatingWebhookConfiguration ${CONFIGURATION}`,
      ],
    );
    const { webhooks = [] } = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, {
      name: CONFIGURATION,
    });
    const [config] = webhooks.map(({ clientConfig }) => clientConfig);
    assert.match(config?.url ?? '', /^https:\/\/127\.0\.0\.1:9443\/validate/);
    assert.equal(config?.caBundle, Buffer.from(AUTHORITY).toString('base64'));
    assert.match((await conversion())?.webhook?.clientConfig?.url ?? '', /9443\/convert$/);
    // The process restarted.
    const second = newSession();
    await second.start();
    lines.length = 0;
    await second.end();
    assert.deepEqual(lines, [
      `removed ValidatingWebhookConfiguration ${CONFIGURATION}`,
      `removed CustomResourceDefinition ${NAME.name}`,
    ]);
    assert.deepEqual(await names(), []);
  });

  it('keeps a CRD with objects, without the conversion that no longer runs', async () => {
    const { client, lines, newSession, names, createSite, conversion } = newCluster();
    const session = newSession();
    await session.start();
    // The program has ended.
    await client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: CONFIGURATION });
    await createSite();
    lines.length = 0;
    await session.end();
    assert.deepEqual(lines, [
      `CustomResourceDefinition ${NAME.name} stays: it has objects; it has no conversion`,
    ]);
    assert.deepEqual(await names(), [NAME.name]);
    assert.equal((await conversion())?.strategy, 'None');
  });

  it('keeps a CRD that existed, with its former conversion', async () => {
    const { client, lines, newSession, names } = newCluster();
    const former = { ...DEFINITION, spec: { ...DEFINITION.spec, conversion: FORMER } };
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, former);
    for (const session of [newSession(), newSession()]) await session.start();
    lines.length = 0;
    await newSession().end();
    assert.match(
      lines.at(-1) ?? '',
      /stays: it existed before; it has its former conversion again/,
    );
    assert.deepEqual(await names(), [NAME.name]);
    const { metadata, spec: restored } = await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME);
    assert.deepEqual([restored.conversion, metadata.annotations], [FORMER, undefined]);
  });

  it('leaves an installation as it was, whose next apply has no conflict', async () => {
    const { client, lines, newSession, conversion } = newCluster();
    const service = { namespace: 'system', name: 'site-controller-webhook' };
    const installed = {
      ...SITES.definition,
      metadata: NAME,
      spec: {
        ...SITES.definition.spec,
        conversion: {
          strategy: 'Webhook',
          webhook: { clientConfig: { service }, conversionReviewVersions: ['v1'] },
        },
      },
    };
    const install = (body: typeof installed) =>
      client.patch(
        CUSTOM_RESOURCE_DEFINITIONS,
        NAME,
        { type: 'apply', body },
        { fieldManager: 'kubectl' },
      );
    const before = (await install(installed)).spec.conversion;
    const configuration = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'site-controller' },
    };
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration);
    const session = newSession();
    await session.start();
    assert.match((await conversion())?.webhook?.clientConfig?.url ?? '', /9443\/convert$/);
    assert.match(lines.at(-1) ?? '', /^ValidatingWebhookConfiguration site-controller .* stays/);
    await session.end();
    assert.deepEqual(await conversion(), before);
    const scale = { specReplicasPath: '.spec.a', statusReplicasPath: '.status.a' };
    const versions = installed.spec.versions.map((version) => ({
      ...version,
      subresources: { status: {}, scale },
    }));
    await install({ ...installed, spec: { ...installed.spec, versions } });
  });

  it('leaves an object of another owner', async () => {
    const { client, lines, newSession, names } = newCluster();
    const metadata = { name: CONFIGURATION };
    const kind = { apiVersion: 'admissionregistration.k8s.io/v1' };
    const other = { ...kind, kind: 'ValidatingWebhookConfiguration', metadata };
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, other);
    const session = newSession();
    await session.start();
    assert.match(lines[0] ?? '', /^leave ValidatingWebhookConfiguration/);
    await session.end();
    assert.deepEqual(await names(), [CONFIGURATION]);
  });
});
