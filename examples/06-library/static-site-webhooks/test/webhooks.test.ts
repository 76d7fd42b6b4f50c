import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isApiError } from 'crd-controller';
import { installWebhooks } from 'crd-controller/testing';
import { STATIC_SITES } from '../../static-site/src/generated/static-site.ts';
import { load, startCluster } from '../../static-site/test/cluster.ts';
import { webhooks } from '../src/webhooks.ts';

/** Starts a cluster with the controller, whose server calls the webhooks, and creates the sample. */
async function start(context: TestContext) {
  const { server, client, clock } = await startCluster(context, 'static-site');
  await installWebhooks(server, client, webhooks, { clock });
  const created = await client.create(STATIC_SITES, load('samples/static-site.yaml'));
  const annotate = (annotations: Record<string, string>) =>
    client.patch(STATIC_SITES, created.metadata, {
      type: 'merge',
      body: { metadata: { annotations } },
    });
  return { created, annotate };
}

test('records who created an object', async (context) => {
  const { created } = await start(context);
  assert.ok(created.metadata.annotations?.['example.com/created-by']);
});

test('rejects a change of the creator, and no other change', async (context) => {
  const { annotate } = await start(context);
  await assert.rejects(
    annotate({ 'example.com/created-by': 'somebody' }),
    (error) => isApiError(error, 'invalid') && /created-by must not change/.test(error.message),
  );
  await annotate({ 'example.com/note': 'mine' });
});
