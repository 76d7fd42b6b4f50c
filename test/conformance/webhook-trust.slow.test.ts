import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import type { CertificateChain } from '../support/certificate-chains.ts';
import { certificateChains, ChainServer } from '../support/certificate-chains.ts';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { configMap, configMaps, CRDS } from './objects.ts';

const isEmbedded = (process.env['CONTROL_PLANE'] ?? 'embedded') === 'embedded';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

let api: Api;
let server: ChainServer;

before(async () => {
  api = await Api.start();
  server = await ChainServer.start((incoming, outgoing) => void answer(incoming, outgoing));
});

async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  let text = '';
  incoming.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(incoming, 'end');
  const { request, ...review }: Json = JSON.parse(text);
  const convertedObjects = request.objects?.map((object: Json) => ({
    ...object,
    apiVersion: request.desiredAPIVersion,
  }));
  const response = convertedObjects
    ? { uid: request.uid, convertedObjects, result: { status: 'Success' } }
    : { uid: request.uid, allowed: true };
  outgoing.setHeader('content-type', 'application/json');
  outgoing.end(JSON.stringify({ ...review, response }));
}

after(async () => {
  await api.close();
  await server.close();
});

const CHAINS = certificateChains().filter(({ host }) => !host.endsWith('.local'));

function clientConfig({ host, anchors }: CertificateChain): Json {
  const caBundle = Buffer.from(anchors).toString('base64');
  return { url: `https://${host}:${server.port}/`, caBundle };
}

function failure(host: string, timeout: string, reason: string): string {
  return `Post "https://${host}:${server.port}/?timeout=${timeout}": tls: failed to verify certificate: x509: ${reason}`;
}

test('webhooks trust the certificates in their CA bundle as ends of a chain', async () => {
  const namespace = await api.namespace();
  await api.made(
    api.post(CONFIGURATIONS, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: namespace },
      webhooks: CHAINS.map((chain, index) => ({
        name: `chain-${index}.example.com`,
        clientConfig: clientConfig(chain),
        rules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['configmaps'] },
        ],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        objectSelector: { matchLabels: { chain: String(index) } },
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      })),
    }),
  );
  const create = async (index: number) => {
    const chain = CHAINS[index];
    if (chain) server.use(chain);
    const object = configMap('x');
    object.metadata.labels = { chain: String(index) };
    const { status, body } = await api.post(`${configMaps(namespace)}?dryRun=All`, object);
    return status === 201 ? undefined : String(body.message);
  };
  const refusedOne = CHAINS.findIndex(({ refused }) => refused !== undefined);
  await api.until('the webhooks are active', async () => (await create(refusedOne)) !== undefined);
  for (const [index, { title, host, refused, refusedByOpenssl = refused }] of CHAINS.entries()) {
    const reason = isEmbedded ? refusedByOpenssl : refused;
    const wanted = reason && `failed to call webhook: ${failure(host, '10s', reason)}`;
    const message = await create(index);
    const isAsWanted = wanted ? message?.includes(wanted) : message === undefined;
    assert.ok(isAsWanted, `${title}: ${message}`);
  }
  await api.delete(`${CONFIGURATIONS}/${namespace}`);
});

const CONVERSIONS = new Set([
  'intermediate',
  'common name',
  'expired root and the certificate of the server',
]);

test('conversion webhooks trust the same certificates', async () => {
  const namespace = await api.namespace();
  const group = 'trust.example.com';
  const version = (name: string, storage: boolean): Json => ({
    name,
    storage,
    served: true,
    schema: { openAPIV3Schema: { type: 'object' } },
  });
  const conversion = (chain: CertificateChain): Json => ({
    strategy: 'Webhook',
    webhook: { clientConfig: clientConfig(chain), conversionReviewVersions: ['v1'] },
  });
  const [first, ...rest] = CHAINS.filter(({ title }) => CONVERSIONS.has(title));
  assert.ok(first);
  await api.install({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `anchors.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'anchors', kind: 'Anchor' },
      versions: [version('v1', true), version('v2', false)],
      conversion: conversion(first),
    },
  });
  for (const chain of [first, ...rest]) {
    server.use(chain);
    const { host, title, refused } = chain;
    const wanted = refused && failure(host, '30s', refused);
    await api.made(
      api.patch(`${CRDS}/anchors.${group}`, { spec: { conversion: conversion(chain) } }),
    );
    await api.until(title, async () => {
      const { status, body } = await api.post(
        `/apis/${group}/v2/namespaces/${namespace}/anchors?dryRun=All`,
        { apiVersion: `${group}/v2`, kind: 'Anchor', metadata: { name: 'a' } },
      );
      return wanted ? String(body.message).includes(wanted) : status === 201;
    });
  }
});
