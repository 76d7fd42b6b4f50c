import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { after, before, describe, test } from 'node:test';
import { noWebhookMetrics } from '../../../src/metrics/no-metrics.ts';
import type { WebhookMetrics } from '../../../src/metrics/webhook-metrics.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import { required } from '../../../src/webhook/field-errors.ts';
import { WebhookServer } from '../../../src/webhook/webhook-server.ts';
import { Webhooks } from '../../../src/webhook/webhooks.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { BOXES_V1, BOXES_V2 } from './kinds.ts';

const VALIDATE = '/validate-test-example-com-v1-box';
const JSON_TYPE = { 'content-type': 'application/json' };

/** Answers of slow reviews wait for it. */
const slow = new Deferred();
const slowStarted = new Deferred();

const webhooks = new Webhooks()
  .validates(BOXES_V1, ({ spec }) => (spec.size === '' ? [required('spec.size')] : []))
  .validates(
    BOXES_V1,
    () => {
      slowStarted.resolve();
      return slow.promise;
    },
    { name: 'slow' },
  )
  .converts(BOXES_V1, BOXES_V2, { up: ({ spec }) => ({ spec }), down: ({ spec }) => ({ spec }) });

function review(size: string): string {
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u1',
      resource: { group: 'test.example.com', version: 'v1', resource: 'boxes' },
      operation: 'CREATE',
      object: { kind: 'Box', metadata: { name: 'x' }, spec: { size } },
    },
  });
}

describe('WebhookServer', () => {
  const stop = new AbortController();
  // Node.js compares the certificate with the Host header. A function in a request would make the agent close its connection.
  const agent = new Agent({ keepAlive: true, checkServerIdentity: () => undefined });
  const { log, lines } = recordingLogger([], 4);
  const refused: number[] = [];
  const metrics: WebhookMetrics = {
    ...noWebhookMetrics,
    path: (path) => ({ ...noWebhookMetrics.path(path), refused: (code) => refused.push(code) }),
  };
  let server: WebhookServer;
  let running: Promise<void>;
  let address: string;
  let ca: string;

  before(async () => {
    const authority = await createCertificateAuthority({ commonName: 'webhooks' });
    const pair = await authority.issue({
      commonName: 'webhooks',
      ipAddresses: ['127.0.0.1'],
      usages: 'server',
    });
    ca = authority.certificatePem;
    const certificate = { load: () => Promise.resolve(pair), watch: untilAborted };
    server = new WebhookServer(
      webhooks,
      { bindAddress: '127.0.0.1:0', certificate },
      { log, metrics },
    );
    assert.notEqual(server.readiness.check(), undefined);
    running = server.run(stop.signal);
    address = await server.listening;
  });

  after(async () => {
    stop.abort();
    await running;
    agent.destroy();
  });

  async function send(
    path: string,
    body: string | readonly Buffer[],
    { method = 'POST', headers = JSON_TYPE }: { method?: string; headers?: object } = {},
  ): Promise<{
    readonly status: number | undefined;
    readonly text: string;
    readonly type: string | undefined;
    readonly connection: string | undefined;
  }> {
    const url = `https://${address}${path}`;
    const options = { method, headers: { ...headers }, ca, agent };
    const sent = request(url, options);
    // The server may close the connection before it has read the body.
    sent.on('error', () => undefined);
    const chunks = typeof body === 'string' ? [body] : body;
    for (const chunk of chunks) if (chunk.length > 0) sent.write(chunk);
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response as AsyncIterable<Buffer>) text += chunk.toString();
    const { 'content-type': type, connection } = response.headers;
    return { status: response.statusCode, text, type, connection };
  }

  test('answers many reviews at the same time', async () => {
    assert.equal(server.readiness.check(), undefined);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        send(`${VALIDATE}?timeout=5s`, review(at % 2 ? 'a' : '')),
      ),
    );
    assert.deepEqual(
      answers.map(({ status, text, type }) => [status, JSON.parse(text).response.allowed, type]),
      answers.map((_, at) => [200, at % 2 === 1, 'application/json']),
    );
    assert.equal(lines.filter(({ message }) => message === 'Answered a review').length, 60);
  });

  test('refuses other methods, paths and content types', async () => {
    assert.equal((await send(VALIDATE, '', { method: 'GET' })).status, 405);
    assert.equal((await send('/mutate-test-example-com-v1-box', review('a'))).status, 404);
    const headers = { 'content-type': 'application/yaml' };
    assert.equal((await send(VALIDATE, review('a'), { headers })).status, 415);
    const { status, type } = await send(VALIDATE, '');
    assert.deepEqual([status, type], [400, 'text/plain; charset=utf-8']);
    assert.deepEqual(refused, [405, 415], 'before a review');
  });

  test('accepts each Host, and logs and counts what it refuses before a review', async () => {
    for (const host of [
      'boxes.default.svc',
      'boxes.default.svc:443',
      '10.0.0.1:9443',
      '[fd00::1]',
    ]) {
      const headers = { ...JSON_TYPE, host };
      assert.equal((await send(VALIDATE, review('a'), { headers })).status, 200, host);
    }
    refused.length = 0;
    const before = lines.length;
    const headers = { ...JSON_TYPE, origin: 'https://page.example' };
    for (let times = 0; times < 3; times++) {
      assert.equal((await send(VALIDATE, review('a'), { headers })).status, 403);
    }
    assert.deepEqual(refused, [403, 403, 403]);
    const written = lines.slice(before).map(({ message, fields }) => [message, fields?.['status']]);
    assert.deepEqual(written, [['Refused a request to a webhook', 403]]);
  });

  test('refuses bodies that are too long, with and without a content length', async () => {
    const headers = { ...JSON_TYPE, 'content-length': String(7 * 1024 ** 2 + 1) };
    assert.equal((await send(VALIDATE, '{}', { headers })).status, 413);
    const chunk = Buffer.alloc(1024 ** 2, ' ');
    const body = Array.from({ length: 8 }, () => chunk);
    assert.equal((await send(VALIDATE, body)).status, 413);
    assert.equal((await send('/convert', body)).status, 400);
  });

  test('answers the reviews in progress before it stops', async () => {
    const answer = send(`${VALIDATE}-slow`, review('a'));
    await slowStarted.promise;
    // Its connection is idle afterwards.
    await send(VALIDATE, review('a'));
    stop.abort();
    slow.resolve();
    assert.equal((await answer).status, 200);
    const { status, connection } = await send(VALIDATE, review('a'));
    assert.deepEqual([status, connection], [200, 'close'], 'over an idle connection');
    agent.destroy();
    const before = lines.length;
    await running;
    const suppressed = lines.slice(before).map(({ fields }) => fields['status']);
    assert.deepEqual(suppressed, [403, 413], 'the suppressed lines');
  });
});
