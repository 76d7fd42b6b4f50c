import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { isWriteFenced, WriteFence } from '../../../src/client/write-fence.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler, HttpRequest } from '../../../src/util/http.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { configMap } from './server.ts';

function server(answers: readonly number[] = []) {
  const sent: HttpRequest[] = [];
  const handler: HttpHandler = async (request) => {
    const status = answers[sent.length] ?? 200;
    sent.push(request);
    const body = status === 200 ? configMap('settings') : { kind: 'Status', code: status };
    return {
      status,
      headers: { 'content-type': 'application/json', 'retry-after': '5' },
      body: (async function* () {
        yield Buffer.from(JSON.stringify(body));
      })(),
    };
  };
  return { sent, handler };
}

test('passes reads, and rejects all writes until a guard is set', async () => {
  const { sent, handler } = server();
  // A fence without a guard rejects writes.
  const client = new HttpClient({ handler: new WriteFence().wrap(handler), server: 'test' });
  const at = { namespace: 'default', name: 'settings' };
  await client.get(CONFIG_MAPS, at);
  const writes = [
    () => client.create(CONFIG_MAPS, configMap('settings')),
    () => client.update(CONFIG_MAPS, configMap('settings')),
    () => client.patch(CONFIG_MAPS, at, { type: 'merge', body: {} }),
    () => client.delete(CONFIG_MAPS, at),
  ];
  for (const write of writes) {
    await assert.rejects(
      write(),
      (error) => isApiError(error, 'unavailable') && isWriteFenced(error),
    );
  }
  assert.deepEqual(
    sent.map(({ method }) => method),
    ['GET'],
  );
});

test('checks a write when it is retried', async () => {
  const clock = new FakeClock();
  const { sent, handler } = server([503, 200]);
  let leads = true;
  const fence = new WriteFence();
  fence.guardedBy(() => leads);
  const client = new HttpClient({ handler: fence.wrap(handler), server: 'test', clock });
  const outcome = assert.rejects(client.update(CONFIG_MAPS, configMap('settings')), isWriteFenced);
  await settle();
  leads = false;
  await clock.advance(5000);
  await outcome;
  assert.equal(sent.length, 1);
});

test('checks a write that waits for a connection when it is sent', async () => {
  const { sent, handler } = server();
  let leads = true;
  const fence = new WriteFence();
  fence.guardedBy(() => leads);
  const slow: HttpHandler = async (request) => {
    leads = false;
    request.beforeSend?.();
    return handler(request);
  };
  const client = new HttpClient({ handler: fence.wrap(slow), server: 'test' });
  await assert.rejects(client.create(CONFIG_MAPS, configMap('settings')), isWriteFenced);
  assert.equal(sent.length, 0);
});

test('checks writes of events apart', async () => {
  const { sent, handler } = server();
  const fence = new WriteFence();
  fence.guardedBy(
    () => false,
    () => true,
  );
  const guarded = fence.wrap(handler);
  const paths = {
    '/api/v1/namespaces/default/events?fieldManager=x': true,
    '/api/v1/namespaces/default/events/web.1': true,
    '/apis/events.k8s.io/v1/namespaces/default/events': true,
    '/api/v1/namespaces/events/pods': false,
    '/api/v1/namespaces/default/configmaps/events': false,
    '/apis/example.com/v1/namespaces/default/events': false,
  };
  for (const [path, mayPass] of Object.entries(paths)) {
    const before = sent.length;
    const write = guarded({ method: 'POST', path, headers: {} });
    await (mayPass ? write : assert.rejects(write, isWriteFenced));
    assert.equal(sent.length - before, mayPass ? 1 : 0, path);
  }
});

test('keeps the check that a request has itself', async () => {
  const { sent, handler } = server();
  const fence = new WriteFence();
  fence.guardedBy(() => true);
  const beforeSend = () => {
    throw new Error('closed meanwhile');
  };
  const write = fence.wrap(handler)({ method: 'POST', path: '/api', headers: {}, beforeSend });
  await assert.rejects(write, /closed meanwhile/);
  assert.equal(sent.length, 0);
});
