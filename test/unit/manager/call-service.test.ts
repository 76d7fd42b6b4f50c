import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { callService, ServiceError } from '../../../src/manager/call-service.ts';
import type { ServiceCall } from '../../../src/manager/call-service.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { FakeFetch } from '../../../src/util/fake-fetch.ts';
import { TerminalError } from '../../../src/workqueue/outcome.ts';

const SECRET = 'hunter2';
const URL_WITH_SECRET = `https://service.test/${SECRET}?token=${SECRET}#${SECRET}`;

function start() {
  const service = new FakeFetch();
  const clock = new FakeClock();
  const stop = new AbortController();
  return { service, clock, stop, context: { clock, fetch: service.fetch, signal: stop.signal } };
}

/** Returns the error of a call that fails, after the check that it has no secret. */
async function failure(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ServiceError, String(error));
  assert.ok(!`${error.stack} ${String(error.cause)}`.includes(SECRET), error.message);
  return error;
}

/** Runs a real HTTP server; the test ends only if its connections end. */
async function listen(context: TestContext, handle: RequestListener): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  context.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('sends JSON, text and bytes, and returns the response', async () => {
  const { context, service } = start();
  service.answer(Response.json({ id: 1 }, { status: 201 }));
  const headers = { authorization: `Bearer ${SECRET}` };
  const url = 'https://service.test/records';
  const response = await callService(context, 'POST', url, { headers, body: { name: 'a' } });
  assert.deepEqual([response.status, await response.json()], [201, { id: 1 }]);
  const sent = service.requests[0];
  assert.equal(sent?.headers.get('authorization'), `Bearer ${SECRET}`);
  assert.equal(sent?.headers.get('content-type'), 'application/json');
  assert.deepEqual(await sent?.json(), { name: 'a' });
  await callService(context, 'PUT', url, { body: 'text', headers: { 'content-type': 'text/csv' } });
  await callService(context, 'PUT', new URL(url), { body: new TextEncoder().encode('bytes') });
  const bodies = service.requests.slice(1).map((request) => request.text());
  assert.deepEqual(await Promise.all(bodies), ['text', 'bytes']);
  assert.equal(service.requests[1]?.headers.get('content-type'), 'text/csv');
});

test('returns the headers and all parts of the body of the response', async () => {
  const { context, service } = start();
  const parts = ['one ', 'two ', 'three'].map((part) => new TextEncoder().encode(part));
  const body = new ReadableStream({
    start: (stream) => {
      for (const part of parts) stream.enqueue(part);
      stream.close();
    },
  });
  service.answer(new Response(body, { headers: { etag: 'a' } }));
  const response = await callService(context, 'GET', 'https://service.test');
  assert.equal(response.headers.get('etag'), 'a');
  assert.equal(await response.text(), 'one two three');
});

test('throws an error with a reason by the status, unless the status is accepted', async () => {
  const { context, service } = start();
  const reasons = new Map<number, string>();
  for (const status of [400, 404, 409, 408, 425, 429, 302, 500, 503]) {
    service.answer(new Response(`${SECRET}${'x'.repeat(2000)}`, { status }));
    const error = await failure(callService(context, 'PUT', URL_WITH_SECRET));
    assert.equal(error.status, status);
    assert.equal(error.body.length, 1024);
    assert.match(error.message, /^PUT to https:\/\/service\.test failed: .*\d$/);
    reasons.set(status, error.reason);
  }
  const rejected = [...reasons].flatMap(([status, reason]) =>
    reason === 'ServiceRejected' ? [status] : [],
  );
  assert.deepEqual(rejected, [400, 404, 409]);
  assert.deepEqual(new Set(reasons.values()), new Set(['ServiceRejected', 'ServiceFailed']));
  service.answer('DELETE', 404);
  const accepted = await callService(context, 'DELETE', URL_WITH_SECRET, { accept: [404, 410] });
  assert.equal(accepted.status, 404);
});

test('waits for the Retry-After of a failure, at most five minutes', async () => {
  const { clock, context, service } = start();
  const in90s = new Date(clock.now() + 90_000).toUTCString();
  for (const [header, expected] of [
    ['30', 30_000],
    [in90s, 90_000],
    ['999999999', 300_000],
    ['soon', undefined],
    ['-5', undefined],
    [new Date(0).toUTCString(), undefined],
  ] as const) {
    service.answer(new Response(null, { status: 503, headers: { 'retry-after': header } }));
    const { retryAfterMs } = await failure(callService(context, 'GET', URL_WITH_SECRET));
    assert.equal(retryAfterMs, expected, header);
  }
});

test('limits the time of a call, and throws the reason of the signal if that aborts', async () => {
  const { clock, context, service, stop } = start();
  service.respond = () => new Promise(() => undefined);
  const late = failure(callService(context, 'GET', URL_WITH_SECRET));
  await clock.advance(10_000);
  assert.equal((await late).reason, 'ServiceUnreachable');
  const stalled = new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(1)) });
  service.answer(new Response(stalled));
  const body = failure(callService(context, 'GET', URL_WITH_SECRET, { timeoutMs: 500 }));
  await clock.advance(500);
  assert.equal((await body).reason, 'ServiceUnreachable');
  const reason = new Error('the sync took too long');
  const stopped = assert.rejects(callService(context, 'GET', URL_WITH_SECRET), reason);
  stop.abort(reason);
  await stopped;
});

test('observes each request with its origin, status, duration and error, without secrets', async () => {
  const { clock, context, service, stop } = start();
  const calls: ServiceCall[] = [];
  const observed = { ...context, onServiceCall: (call: ServiceCall) => void calls.push(call) };
  const origin = 'https://service.test:8443';
  const url = `${origin}/${SECRET}?token=${SECRET}#${SECRET}`;
  service.answer('DELETE', 404);
  await callService(observed, 'DELETE', url, { accept: [404] });
  service.answer('PUT', 503);
  await failure(callService(observed, 'PUT', url));
  service.answer('POST', new Error('refused'));
  await failure(callService(observed, 'POST', url));
  service.respond = () => new Promise(() => undefined);
  const late = failure(callService(observed, 'GET', url));
  await clock.advance(10_000);
  await late;
  const stopped = assert.rejects(callService(observed, 'GET', url));
  stop.abort();
  await stopped;
  await assert.rejects(callService(observed, 'GET', `https://${SECRET}@service.test`));
  assert.deepEqual(new Set(calls.map((call) => call.origin)), new Set([origin]));
  assert.deepEqual(
    calls.map(({ method, status, ms, error }) => {
      const reason = error instanceof ServiceError ? error.reason : (error as Error)?.name;
      return [method, status, ms, reason];
    }),
    [
      ['DELETE', 404, 0, undefined],
      ['PUT', 503, 0, 'ServiceFailed'],
      ['POST', undefined, 0, 'ServiceUnreachable'],
      ['GET', undefined, 10_000, 'ServiceUnreachable'],
      ['GET', undefined, 0, 'AbortError'],
    ],
  );
});

test('reports the error of the network, and no other text that may have a secret', async (context) => {
  const { context: fake, service } = start();
  service.answer(new Error(`cannot send ${SECRET}`));
  const hidden = await failure(callService(fake, 'GET', URL_WITH_SECRET));
  assert.equal(hidden.reason, 'ServiceUnreachable');
  // A host with several addresses has an error without a message.
  for (const message of ['', 'connect ECONNREFUSED 192.0.2.1:443']) {
    const cause = Object.assign(new AggregateError([], message), { code: 'ECONNREFUSED' });
    service.answer(new TypeError(`fetch of ${SECRET} failed`, { cause }));
    const refused = await failure(callService(fake, 'GET', URL_WITH_SECRET));
    assert.ok(refused.message.endsWith(` failed: ${message || 'ECONNREFUSED'}`), refused.message);
  }
  const real = { clock: fake.clock, signal: fake.signal };
  const url = await listen(context, (_, response) => response.destroy());
  const closed = await failure(callService(real, 'GET', `${url}/${SECRET}`));
  assert.match(
    closed.message,
    /^GET to http:\/\/127\.0\.0\.1:\d+ failed: (?!the connection failed)/,
  );
  assert.equal(closed.reason, 'ServiceUnreachable');
  const invalid = [
    callService(fake, 'GET', `https://${SECRET}@service.test`),
    callService(fake, 'GET', `https://:${SECRET}@service.test`),
    callService(fake, 'GET', `file:///${SECRET}`),
    callService(fake, 'GET', SECRET),
    callService(fake, 'GET', URL_WITH_SECRET, { headers: { authorization: `a\n${SECRET}` } }),
    callService(fake, 'GET', URL_WITH_SECRET, { body: SECRET }),
  ];
  for (const call of invalid) {
    await assert.rejects(call, (error: unknown) => {
      assert.ok(error instanceof TerminalError);
      assert.equal(error.reason, 'InvalidServiceRequest');
      return !`${error.stack} ${String(error.cause)}`.includes(SECRET);
    });
  }
  assert.equal(service.requests.length, 3);
});

test('does not follow redirects, and cancels a body that is too long', async (context) => {
  const { context: fake } = start();
  const real = { clock: fake.clock, signal: fake.signal };
  const closed = Promise.withResolvers<void>();
  const paths: string[] = [];
  const url = await listen(context, ({ url: path = '' }, response) => {
    paths.push(path);
    if (path === '/redirect') return response.writeHead(302, { location: '/other' }).end();
    response.on('close', closed.resolve);
    const write = (): void =>
      void (response.destroyed || response.write('x'.repeat(65_536), write));
    return write();
  });
  assert.equal((await failure(callService(real, 'GET', `${url}/redirect`))).status, 302);
  assert.equal((await failure(callService(real, 'GET', `${url}/endless`))).reason, 'ServiceFailed');
  await closed.promise;
  assert.deepEqual(paths, ['/redirect', '/endless']);
});

test('accepts a body of 1 MiB in several chunks, and none that is a byte longer', async () => {
  const { context, service } = start();
  const bodyOf = (...lengths: readonly number[]) =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          for (const length of lengths) controller.enqueue(new Uint8Array(length));
          controller.close();
        },
      }),
    );
  service.answer(bodyOf(1_048_575, 1), bodyOf(1_048_576, 1));
  const response = await callService(context, 'GET', 'https://service.test/');
  assert.equal((await response.arrayBuffer()).byteLength, 1_048_576);
  const error = await failure(callService(context, 'GET', 'https://service.test/'));
  assert.match(error.message, /more than 1048576 bytes/);
});
