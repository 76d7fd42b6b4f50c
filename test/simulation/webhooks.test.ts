import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiError } from '../../src/api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import { installWebhooks } from '../../src/webhook/install.ts';
import { webhookNames } from '../../src/webhook/manifests.ts';
import { Webhooks } from '../../src/webhook/webhooks.ts';
import { BOXES_V1, BOXES_V2, boxV1, boxV2, declareBoxes } from '../support/boxes.ts';
import { recordingLogger } from '../support/recording-logger.ts';

const NAMES = webhookNames('boxes', 'default');

/** An API server in virtual time that calls declared functions in this process. */
async function installed(webhooks: Webhooks) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger([], 0);
  const server = new ApiServer({ clock });
  const warnings: string[] = [];
  const client = new HttpClient({
    handler: server.handler,
    server: 'https://test',
    clock,
    onWarning: (warning) => warnings.push(warning),
  });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, BOXES_V2.definition);
  await installWebhooks(server, client, webhooks, { clock, names: NAMES });
  server.registerWebhooks(webhooks.functions(`https://${NAMES.dnsName}`, { clock, log }));
  return { client, clock, lines, warnings };
}

test('the embedded API server calls declared functions in this process', async () => {
  const { client, warnings } = await installed(declareBoxes(new Webhooks()));
  const created = await client.create(BOXES_V1, boxV1('a', { size: '2x3' }));
  assert.deepEqual(created.spec, { size: '2x3', owner: 'admin' });
  const at = { namespace: 'default', name: 'a' };
  assert.deepEqual((await client.get(BOXES_V2, at)).spec, {
    width: 2,
    height: 3,
    owner: 'admin',
  });
  await client.patch(BOXES_V1, at, { type: 'merge', body: { spec: { owner: 'bob' } } });
  assert.deepEqual(warnings, ['The owner changes']);
  await assert.rejects(
    client.create(BOXES_V1, boxV1('flat', { size: '2x0' })),
    ({ kind, details }: ApiError) => {
      assert.equal(kind, 'invalid');
      assert.deepEqual(details?.causes, [
        {
          reason: 'FieldValueInvalid',
          field: 'spec.height',
          message: 'Invalid value: 0: must not be flat',
        },
      ]);
      return true;
    },
  );
});

test('the failure policy decides about a function that hangs or fails', async () => {
  const hang = () => new Promise<undefined>(() => undefined);
  const fail = () => {
    throw new Error('broken');
  };
  const { client, clock, lines } = await installed(
    declareBoxes(new Webhooks())
      .validates(BOXES_V2, hang, { name: 'hangs', failurePolicy: 'Ignore', timeoutSeconds: 5 })
      .validates(BOXES_V2, fail, { name: 'fails', operations: ['UPDATE'] }),
  );
  const creating = client.create(BOXES_V2, boxV2('a', { width: 1, height: 1 }));
  await clock.advance(4500);
  const box = await creating;
  assert.deepEqual(
    lines.map(({ message, fields }) => [message, fields['status']]),
    [['Webhook function timed out', 504]],
  );
  const updating = client.update(BOXES_V2, { ...box, spec: { ...box.spec, width: 2 } });
  const rejected = assert.rejects(updating, /the function failed/);
  await clock.advance(4500);
  await rejected;
});
